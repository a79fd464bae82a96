//! The loop that joins the radios of the kernel and the mesh between them under the machine's
//! clock.
//!
//! In a virtual machine that counts instructions this clock is virtual, and so is the result.

use super::config::Config;
use super::medium::{Medium, Totals};
use super::socket::Socket;
use crate::lateness::{Lateness, Summary};
use meshpace_core::{Duration, Time};
use meshpace_live::Clock;
use meshpace_live::clock::sharpen_timers;
use meshpace_live::poll::Poller;
use meshpace_mesh::radio::ofdm::SLOT;
use rustix::io::Errno;
use std::io;

/// Number of datagrams that are read before the mesh is advanced.
const AT_ONCE: usize = 64;
/// Longest datagram, bytes: a frame and its attributes.
const DATAGRAM: usize = 1 << 16;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Counts of the frames that crossed the medium.
    pub totals: Totals,
    /// Lateness of the reports to the kernel, compared with the time of the mesh.
    pub lateness: Summary,
    /// Messages that the kernel refused, because a radio was not up or because the kernel had
    /// dropped the frame itself.
    pub refused: u64,
    /// Number of times that the kernel had more frames than fit into the socket's buffer.
    pub overruns: u64,
}

/// Serves the radios of `config` for `span`, or for ever if it is `None`. `ready` is called when
/// the kernel has accepted the medium.
///
/// # Errors Errors of the system. They include that mac80211_hwsim is not loaded or has another
/// medium.
pub fn run(config: &Config, seed: u64, span: Option<Duration>, ready: impl FnOnce()) -> io::Result<Report> {
    let socket = Socket::register()?;
    let poller = Poller::new()?;
    poller.add(&socket, 0)?;
    sharpen_timers();
    let mut medium = Medium::new(config, socket.family(), seed);
    let (mut out, mut waiting, mut buffer) = (Vec::new(), Vec::new(), vec![0; DATAGRAM]);
    let (mut lateness, mut refused, mut overruns) = (Lateness::default(), 0, 0);
    ready();
    let began = Clock.now();
    let end = span.map_or(Time::NEVER, |span| Time::ZERO + span);
    loop {
        let now = Time::ZERO + Clock.now().since(began);
        medium.advance(now, &mut out);
        for message in out.drain(..) {
            let late = (Time::ZERO + Clock.now().since(began)).since(message.due);
            lateness.record(late, 1, SLOT, SLOT);
            if socket.send(&message.message).is_err() {
                refused += 1;
            }
        }
        if now >= end {
            break;
        }
        let mut has_more = false;
        for turn in 0..AT_ONCE {
            match socket.try_receive(&mut buffer) {
                Ok(0) => break,
                Ok(length) => medium.on_datagram(&buffer[..length]),
                Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => overruns += 1,
                Err(error) => return Err(error),
            }
            has_more = turn + 1 == AT_ONCE;
        }
        if !has_more {
            let next = medium.next_event().min(end);
            let deadline = if next == Time::NEVER { next } else { began + next.since(Time::ZERO) };
            poller.wait(deadline, &mut waiting)?;
        }
    }
    Ok(Report { totals: medium.totals(), lateness: lateness.summary(), refused, overruns })
}
