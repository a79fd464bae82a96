//! UDP at a given rate as a carrier: the source that the simulator runs, and a far end that
//! counts.
//!
//! A datagram begins with 24 bytes: "mpud", its kind (data, end, report, hello, welcome), its
//! number, and the token of the run.
//!
//! A run begins with a hello, which the far end answers with the token. The token is a keyed hash
//! of the requesting address. The far end therefore stores nothing about a host that cannot receive
//! the token, and no other host can add to a run or end it. The end is repeated until the far end
//! reports how much of this run's data it has received. Until then, the bytes sent count as
//! progress.

use super::carrier::{Carrier, Progress};
use crate::clock::{Clock, sharpen_timers};
use crate::poll::{Poller, Ready};
use crate::tpa::any_port;
use meshpace_core::{Duration, Time};
use meshpace_transport::udp::{Config, Source};
use meshpace_transport::{Machine, Output};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of the header in bytes.
pub const HEADER: usize = 24;
/// Interval at which a hello or an end is repeated.
const REPEAT: Duration = Duration::from_millis(200);
/// Maximum number of times that an end is sent.
const ATTEMPTS: u32 = 10;

/// Kind of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Data. The number counts datagrams from 0.
    Data,
    /// End of the data. The number is that of the datagrams sent.
    End,
    /// Report of the far end. The number is that of the payload bytes received.
    Report,
    /// Request to begin a run. The number is chosen by the sender, which identifies the answer by
    /// it.
    Hello,
    /// Permission to begin the run, with its token.
    Welcome,
}

/// Identifier of a run.
pub type Token = u64;

/// Encodes the header of a datagram of a run.
pub fn header(kind: Kind, number: u64, token: Token) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(b"mpud");
    bytes[7] = kind as u8;
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes[16..].copy_from_slice(&token.to_be_bytes());
    bytes
}

/// Decodes kind, number and token of a datagram. `None` if it is not a datagram of this protocol.
pub fn understand(bytes: &[u8]) -> Option<(Kind, u64, Token)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let kind = match header[..8] {
        [b'm', b'p', b'u', b'd', 0, 0, 0, 0] => Kind::Data,
        [b'm', b'p', b'u', b'd', 0, 0, 0, 1] => Kind::End,
        [b'm', b'p', b'u', b'd', 0, 0, 0, 2] => Kind::Report,
        [b'm', b'p', b'u', b'd', 0, 0, 0, 3] => Kind::Hello,
        [b'm', b'p', b'u', b'd', 0, 0, 0, 4] => Kind::Welcome,
        _ => return None,
    };
    let word = |at: usize| header[at..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    Some((kind, word(8)?, word(16)?))
}

/// UDP datagrams to one host.
#[derive(Debug)]
pub struct Udp {
    to: SocketAddr,
    token: Token,
    config: Config,
    socket: Option<UdpSocket>,
    source: Source,
    poller: Poller,
    ready: Vec<Ready>,
    /// Time at which the source has to be polled again.
    wakeup: Time,
    progress: Progress,
    /// Number of bytes written and not sent.
    waiting: u64,
    /// Number of payload bytes that the far end has reported for all runs before this one.
    reported: u64,
    /// Time at which the end is sent next, and the number of times it was sent. `None` before the
    /// end.
    ending: Option<(Time, u32)>,
    buffer: Vec<u8>,
}

impl Udp {
    /// Creates a carrier that is not open. `config` must pass [`Config::check`].
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if a segment is shorter than the header or there is no rate.
    /// Also the error of the system if it provides no timer.
    pub fn new(to: SocketAddr, config: Config) -> io::Result<Udp> {
        if (config.segment as usize) < HEADER || config.rate.is_none() {
            let text = format!("UDP needs a rate and datagrams of {HEADER} bytes at least");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        sharpen_timers();
        Ok(Udp {
            to,
            token: 0,
            source: Source::new(&config),
            buffer: vec![0; config.segment as usize],
            config,
            socket: None,
            poller: Poller::new()?,
            ready: Vec::new(),
            wakeup: Time::NEVER,
            progress: Progress::default(),
            waiting: 0,
            reported: 0,
            ending: None,
        })
    }

    fn explain(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.to))
    }

    fn send(&mut self, kind: Kind, number: u64, length: usize) -> io::Result<()> {
        self.buffer[..HEADER].copy_from_slice(&header(kind, number, self.token));
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        match socket.send(&self.buffer[..length]) {
            Ok(_) => self.progress.packets += 1,
            // The datagram is lost, as can happen to any datagram.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(self.explain(error)),
        }
        Ok(())
    }

    fn pump(&mut self) -> io::Result<()> {
        self.wakeup = loop {
            match self.source.poll(Clock.now()) {
                Output::Transmit(datagram) => {
                    self.send(Kind::Data, datagram.number, usize::from(datagram.payload).max(HEADER))?;
                    self.progress.acknowledged += u64::from(datagram.payload);
                    self.waiting -= u64::from(datagram.payload);
                }
                Output::Wait(until) => break until,
                Output::Idle => break Time::NEVER,
            }
        };
        let Some((next, times)) = self.ending else { return Ok(()) };
        let now = Clock.now();
        if self.wakeup == Time::NEVER && now >= next && !self.progress.is_over {
            if times >= ATTEMPTS {
                let text = format!("{}: nobody reports what arrived", self.to);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.send(Kind::End, self.source.stats().segments_sent, HEADER)?;
            self.ending = Some((now + REPEAT, times + 1));
        }
        Ok(())
    }

    /// Requests a token from the far end until it answers.
    fn introduce(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        let mut nonce = [0; 8];
        crate::tpa::random(&mut nonce)?;
        let nonce = u64::from_be_bytes(nonce);
        let mut again = Time::ZERO;
        let mut bytes = [0; HEADER];
        self.token = 0;
        while !stop.load(Ordering::Relaxed) {
            let now = Clock.now();
            if now >= until {
                let text = format!("{}: nobody answers: is `meshpace recv --transport udp` there?", self.to);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if now >= again {
                again = now + REPEAT;
                self.send(Kind::Hello, nonce, HEADER)?;
            }
            self.poller.wait(again.min(until), &mut self.ready)?;
            while let Some(Ok(length)) = self.socket.as_ref().map(|socket| socket.recv(&mut bytes)) {
                if let Some((Kind::Welcome, number, token)) = understand(&bytes[..length])
                    && number == nonce
                {
                    self.token = token;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    fn listen(&mut self) -> io::Result<()> {
        let mut bytes = [0; HEADER];
        loop {
            let Some(socket) = &self.socket else { return Ok(()) };
            match socket.recv(&mut bytes) {
                Ok(length) => {
                    if let Some((Kind::Report, received, token)) = understand(&bytes[..length])
                        && token == self.token
                        && self.ending.is_some()
                        && !self.progress.is_over
                    {
                        self.reported += received;
                        self.progress.acknowledged = self.reported;
                        self.progress.is_over = true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(self.explain(error)),
            }
        }
    }
}

impl Carrier for Udp {
    fn open(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        self.progress.stats += *self.source.stats();
        let socket = UdpSocket::bind(any_port(self.to))?;
        socket.connect(self.to).map_err(|error| self.explain(error))?;
        socket.set_nonblocking(true)?;
        self.poller.add(&socket, 0)?;
        self.socket = Some(socket);
        self.introduce(until, stop)?;
        self.source = Source::new(&self.config);
        self.source.open(Clock.now());
        (self.ending, self.progress.is_over, self.waiting) = (None, false, 0);
        self.progress.acknowledged = self.reported;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A few datagrams are accepted in advance, so that the source always has data.
        let ahead = 4 * u64::from(self.config.segment);
        let taken = ahead.saturating_sub(self.waiting).min(bytes.len() as u64);
        self.waiting += taken;
        self.source.write(Clock.now(), taken);
        self.pump()?;
        Ok(taken as usize)
    }

    fn close(&mut self) -> io::Result<()> {
        self.source.close(Clock.now());
        self.ending = Some((Time::ZERO, 0));
        self.pump()
    }

    fn abort(&mut self) {
        // Waiting data are dropped. The far end is asked how much of the sent data it has received.
        let sent = *self.source.stats();
        self.progress.stats += sent;
        (self.source, self.wakeup, self.waiting) = (Source::new(&self.config), Time::NEVER, 0);
        self.ending = Some((Time::ZERO, 0));
        let patience = Clock.now() + Duration::from_secs(2);
        while !self.progress.is_over && Clock.now() < patience {
            if self.wait(patience).is_err() {
                return;
            }
        }
    }

    fn wait(&mut self, until: Time) -> io::Result<()> {
        let again = self.ending.map_or(Time::NEVER, |(next, _)| next);
        self.poller.wait(until.min(self.wakeup).min(again), &mut self.ready)?;
        self.listen()?;
        self.pump()
    }

    fn progress(&mut self) -> io::Result<Progress> {
        let mut progress = self.progress;
        progress.stats += *self.source.stats();
        Ok(progress)
    }
}
