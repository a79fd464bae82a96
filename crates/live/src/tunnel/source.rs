//! Whether this machine's own address towards a far end has changed: then it says something, so that the far end learns the new one. A session
//! that only receives would otherwise be silent until it is asked for a sign of life.

use super::counters::Counters;
use crate::hosts::Host;
use crate::tpa::any_port;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

/// How often the far end is told, one look apart: the first words may be lost, or have no way yet.
const TOLD: u32 = 4;

/// Our address towards the far end, as the kernel's routes have it; none without a way there.
fn address(far: &Host) -> Option<IpAddr> {
    let far = far.last()?;
    let socket = UdpSocket::bind(any_port(far)).ok()?;
    // Connecting a datagram socket sends nothing.
    socket.connect(far).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}

/// Looks until the connector is no more.
///
/// # Errors
///
/// No thread can be had.
pub(super) fn watch(far: Host, counters: Counters, has_ended: Weak<AtomicBool>) -> io::Result<()> {
    let mut known = address(&far);
    let mut left = 0;
    thread::Builder::new().name("source".into()).stack_size(super::pipe::STACK).spawn(move || {
        while has_ended.upgrade().is_some_and(|has_ended| !has_ended.load(Ordering::Acquire)) {
            #[expect(clippy::disallowed_methods, reason = "real time: it is asked now and then")]
            thread::sleep(LOOK);
            let now = address(&far);
            if now.is_some() && now != known {
                (known, left) = (now, TOLD);
            }
            if left > 0 {
                left -= 1;
                counters.probe();
            }
        }
    })?;
    Ok(())
}
