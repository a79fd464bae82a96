//! Options that `tpa_setsockopt` and `tpa_getsockopt` know.

use crate::fault::Errno;
use crate::state::State;
use libc::c_int;
use meshpace_core::{Duration, Rate};
use meshpace_live::tpa::keys::parse;
use meshpace_live::tpa::{KeyList, Options, Security, TpaStream, path};
use meshpace_transport::{PathInfo, tpa};
use std::sync::Arc;

/// The level of the options below; SOL_SOCKET is that of SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER, SO_RCVBUF, SO_SNDBUF and SO_ERROR.
pub const SOL_TPA: c_int = 0x5450;
/// int: whether calls return EAGAIN, and tpa_connect EINPROGRESS, instead of waiting. Default 0.
pub const TPA_NONBLOCK: c_int = 1;
/// char[]: the transport, a TPA of `meshpace transports`. Before tpa_bind and tpa_connect. Default "tpa-2".
pub const TPA_TRANSPORT: c_int = 2;
/// int: bytes of payload in a full segment, 64 to 65463. Before tpa_bind and tpa_connect. Default 1460, or what fits the way.
pub const TPA_SEGMENT: c_int = 3;
/// int: 1 for no encryption, for experiments. Before tpa_bind and tpa_connect. Default 0: encrypted with whoever answers.
pub const TPA_PLAIN: c_int = 4;
/// 32 bytes: a secret that both ends know. Before tpa_bind and tpa_connect.
pub const TPA_SECRET: c_int = 5;
/// 32 bytes: our private key (X25519); with TPA_PEERS. Before tpa_bind and tpa_connect. Cannot be read back.
pub const TPA_KEY: c_int = 6;
/// Public keys of the peers, 32 bytes each; who connects knows exactly one. Before tpa_bind and tpa_connect. While the socket listens it can be
/// changed, also to no key at all: the list holds for those who connect from then on, and a peer whose key is not on it gets ECONNREFUSED
/// within a round trip.
pub const TPA_PEERS: c_int = 7;
/// 32 bytes, to be read: the public key of TPA_KEY.
pub const TPA_PUBLIC_KEY: c_int = 8;
/// int, milliseconds: silence after which the peer is asked for a sign of life; 0 for never. Before tpa_bind and tpa_connect. Default
/// 30000.
pub const TPA_KEEP_ALIVE: c_int = 9;
/// int, milliseconds: how long a connection may carry no data before it ends; 0 for ever. Before tpa_bind and tpa_connect. Default 0.
pub const TPA_IDLE: c_int = 10;
/// int, milliseconds: how long to send without hearing anything from the peer. Before tpa_bind and tpa_connect. Default 120000.
pub const TPA_SILENCE: c_int = 11;
/// int, milliseconds: how long to try to connect. Before tpa_bind and tpa_connect. Default 30000.
pub const TPA_CONNECT_TIMEOUT: c_int = 12;
/// int: hops to the peer, for adaptive pacing; set before tpa_bind and tpa_connect. Read from a connection: as its peer's last packet
/// seems to have come, 0 if nobody knows.
pub const TPA_HOPS: c_int = 13;
/// int, bit/s: the channel's data rate, for adaptive pacing. Before tpa_bind and tpa_connect. Default 2000000.
pub const TPA_CHANNEL_RATE: c_int = 14;
/// int, to be read: bytes sent whose arrival is not known yet.
pub const TPA_UNACKNOWLEDGED: c_int = 15;

/// int: 1 if what is sent leaves as soon as the protocol lets it: at once while nothing is unacknowledged, else with the acknowledgement.
/// 0 if less than a block of twelve segments waits up to 100 ms for more, or until tpa_flush; small writes then take fewer packets. At any
/// time; accepted sockets have that of the listening one. Default 1.
pub const TPA_NODELAY: c_int = 16;

/// 32 bytes, to be read from a connection: the public key of the peer, which has proved that it holds the private one. ENODATA where no keys are
/// known, ENOTCONN until the connection is open.
pub const TPA_PEER_KEY: c_int = 17;
/// int, to be read from a socket that listens: connections refused because the peer's key was not in TPA_PEERS.
pub const TPA_REFUSED_KEYS: c_int = 18;

/// Options that were set.
#[derive(Clone)]
pub(crate) struct Settings {
    options: Options,
    transport: String,
    key: Option<[u8; 32]>,
    peers: Vec<[u8; 32]>,
    /// The list of those keys that a listening socket asks: it can be changed.
    admitted: KeyList,
    hops: Option<u8>,
    rate: Rate,
    pub(crate) nonblocking: bool,
    receive: Option<std::time::Duration>,
    send: Option<std::time::Duration>,
    /// Time for which closing waits; zero has it reset the connection.
    pub(crate) linger: Option<std::time::Duration>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            options: Options::default(),
            transport: "tpa-2".to_owned(),
            key: None,
            peers: Vec::new(),
            admitted: KeyList::default(),
            hops: None,
            rate: Rate::from_mbps(2),
            nonblocking: false,
            receive: None,
            send: None,
            linger: None,
        }
    }
}

impl Settings {
    /// The options of a port.
    pub(crate) fn options(&self) -> Result<Options, Errno> {
        let mut options = self.options.clone();
        match (&self.key, &self.peers[..]) {
            (None, []) => {}
            (Some(own), [_, ..]) => {
                options.security = Security::Keys { own: *own, peers: self.peers.clone() };
                self.admitted.set(self.peers.iter().copied());
                options.admission = Some(self.admitted.admission());
            }
            // One is of no use without the other.
            _ => return Err(Errno::from(libc::EINVAL)),
        }
        let rate = self.rate;
        options.path = Some(match self.hops {
            Some(hops) => Arc::new(path::Fixed(PathInfo { hops, rate, received_power_dbm: None })),
            None => Arc::new(path::TimeToLive { rate }),
        });
        Ok(options)
    }

    /// Settings of a socket that a listener with these has accepted.
    pub(crate) fn of_accepted(&self) -> Settings {
        let mut settings = Settings::default();
        settings.options.transport.waits_to_fill = self.options.transport.waits_to_fill;
        settings
    }

    /// Has a connection wait as was set.
    pub(crate) fn apply(&self, stream: &TpaStream) -> Result<(), Errno> {
        stream.set_read_timeout(self.receive)?;
        stream.set_write_timeout(self.send)?;
        stream.set_interruptible(true)?;
        let nodelay = !self.options.transport.waits_to_fill;
        if stream.nodelay()? != nodelay {
            stream.set_nodelay(nodelay)?;
        }
        if let Some(linger) = self.linger {
            stream.set_linger(linger)?;
        }
        Ok(())
    }

    /// Sets an option of a socket that is `state`.
    pub(crate) fn set(&mut self, state: &State, (level, name): (c_int, c_int), value: &[u8]) -> Result<(), Errno> {
        let invalid = Errno::from(libc::EINVAL);
        match (level, name) {
            (SOL_TPA, TPA_NONBLOCK) => {
                self.nonblocking = int(value)? != 0;
                return Ok(());
            }
            (SOL_TPA, TPA_NODELAY) => self.options.transport.waits_to_fill = int(value)? == 0,
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => self.receive = timeout(value)?,
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => self.send = timeout(value)?,
            (libc::SOL_SOCKET, libc::SO_LINGER) => self.linger = linger(value)?,
            (SOL_TPA, TPA_PEERS) if matches!(state, State::Listening(_)) && self.key.is_some() => {
                self.peers = keys(value)?;
                self.admitted.set(self.peers.iter().copied());
                return Ok(());
            }
            // The others are the port's, which is made once.
            _ if !matches!(state, State::Fresh) => return Err(invalid),
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => self.options.receive_buffer = positive(value)? as usize,
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => self.options.send_buffer = positive(value)? as usize,
            (SOL_TPA, TPA_TRANSPORT) => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = std::str::from_utf8(name).map_err(|_| Errno::from(libc::EINVAL))?;
                let waits_to_fill = self.options.transport.waits_to_fill;
                self.options.transport = tpa::Config { waits_to_fill, ..Options::named(name)?.transport };
                self.transport = name.to_owned();
            }
            (SOL_TPA, TPA_SEGMENT) => self.options.transport.segment = positive(value)?,
            (SOL_TPA, TPA_PLAIN) => {
                self.options.security = if int(value)? != 0 { Security::Plain } else { Security::Opportunistic };
            }
            (SOL_TPA, TPA_SECRET) => self.options.security = Security::Shared(key(value)?),
            (SOL_TPA, TPA_KEY) => self.key = Some(key(value)?),
            (SOL_TPA, TPA_PEERS) => self.peers = keys(value)?,
            (SOL_TPA, TPA_KEEP_ALIVE) => self.options.keep_alive = span(value)?,
            (SOL_TPA, TPA_IDLE) => self.options.idle_timeout = span(value)?,
            (SOL_TPA, TPA_SILENCE) => self.options.silence_timeout = span(value)?.ok_or(invalid)?,
            (SOL_TPA, TPA_CONNECT_TIMEOUT) => self.options.connect_timeout = span(value)?.ok_or(invalid)?,
            (SOL_TPA, TPA_HOPS) => self.hops = Some(u8::try_from(positive(value)?).map_err(|_| invalid)?),
            (SOL_TPA, TPA_CHANNEL_RATE) => self.rate = Rate::from_bps(u64::from(positive(value)?)),
            _ => return Err(Errno::from(libc::ENOPROTOOPT)),
        }
        self.options.check()?;
        match state {
            State::Connected(stream) => self.apply(stream),
            State::Listening(listener) => Ok(listener.set_timeout(self.receive)?),
            State::Fresh | State::Bound(_) => Ok(()),
        }
    }
}

/// The value of an option.
pub(crate) fn get(state: &State, settings: &Settings, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
    let options = &settings.options;
    let stream = match state {
        State::Connected(stream) => Some(stream),
        _ => None,
    };
    let number = |number: usize| Ok(c_int::try_from(number).unwrap_or(c_int::MAX).to_ne_bytes().to_vec());
    let span = |span: Option<Duration>| number(span.map_or(0, |span| (span.0 / 1_000_000) as usize));
    match (level, name) {
        (SOL_TPA, TPA_NONBLOCK) => number(usize::from(settings.nonblocking)),
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => Ok(timeval(settings.receive)),
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => Ok(timeval(settings.send)),
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let seconds = settings.linger.map_or(0, |span| span.as_secs() as c_int);
            Ok([c_int::from(settings.linger.is_some()), seconds].map(c_int::to_ne_bytes).concat())
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => number(options.receive_buffer),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => number(options.send_buffer),
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let error = stream.map_or(Ok(None), |stream| stream.take_error())?;
            number(error.map_or(0, |error| Errno::from(error).number as usize))
        }
        (SOL_TPA, TPA_TRANSPORT) => Ok([settings.transport.as_bytes(), &[0]].concat()),
        (SOL_TPA, TPA_SEGMENT) => number(options.transport.segment as usize),
        (SOL_TPA, TPA_PLAIN) => number(usize::from(options.security == Security::Plain)),
        (SOL_TPA, TPA_PEERS) => Ok(settings.peers.concat()),
        (SOL_TPA, TPA_PUBLIC_KEY) => {
            let own = settings.key.as_ref().ok_or(Errno::from(libc::EINVAL))?;
            Ok(Security::public_key(own).to_vec())
        }
        (SOL_TPA, TPA_PEER_KEY) => {
            let stream = stream.ok_or(Errno::from(libc::ENOTCONN))?;
            match stream.peer_key()? {
                Some(key) => Ok(key.to_vec()),
                None if stream.is_open()? => Err(Errno::from(libc::ENODATA)),
                None => Err(Errno::from(libc::ENOTCONN)),
            }
        }
        (SOL_TPA, TPA_REFUSED_KEYS) => match state {
            State::Listening(listener) => number(listener.counters().refused as usize),
            _ => Err(Errno::from(libc::EINVAL)),
        },
        (SOL_TPA, TPA_KEEP_ALIVE) => span(options.keep_alive),
        (SOL_TPA, TPA_IDLE) => span(options.idle_timeout),
        (SOL_TPA, TPA_SILENCE) => span(Some(options.silence_timeout)),
        (SOL_TPA, TPA_CONNECT_TIMEOUT) => span(Some(options.connect_timeout)),
        (SOL_TPA, TPA_HOPS) => {
            let hops = stream.map_or(settings.hops, |stream| stream.hops());
            number(usize::from(hops.unwrap_or(0)))
        }
        (SOL_TPA, TPA_CHANNEL_RATE) => number(settings.rate.as_bps_f64() as usize),
        (SOL_TPA, TPA_NODELAY) => number(usize::from(!options.transport.waits_to_fill)),
        (SOL_TPA, TPA_UNACKNOWLEDGED) => number(stream.map_or(0, |stream| stream.unacknowledged())),
        _ => Err(Errno::from(libc::ENOPROTOOPT)),
    }
}

fn int(value: &[u8]) -> Result<c_int, Errno> {
    value.try_into().map(c_int::from_ne_bytes).map_err(|_| Errno::from(libc::EINVAL))
}

fn positive(value: &[u8]) -> Result<u32, Errno> {
    u32::try_from(int(value)?).ok().filter(|number| *number > 0).ok_or(Errno::from(libc::EINVAL))
}

/// Milliseconds; none for 0.
fn span(value: &[u8]) -> Result<Option<Duration>, Errno> {
    let span = u64::try_from(int(value)?).map_err(|_| Errno::from(libc::EINVAL))?;
    Ok((span > 0).then(|| Duration::from_millis(span)))
}

fn key(value: &[u8]) -> Result<[u8; 32], Errno> {
    // As a key of 32 bytes, or as it stands in a file.
    let text = || std::str::from_utf8(value).ok().and_then(|text| parse(text.trim_end_matches('\0')));
    value.try_into().ok().or_else(text).ok_or(Errno::from(libc::EINVAL))
}

/// Public keys, one after the other, that peers can have.
fn keys(value: &[u8]) -> Result<Vec<[u8; 32]>, Errno> {
    let keys = value.chunks(32).map(key).collect::<Result<Vec<_>, _>>()?;
    if keys.iter().any(Security::is_weak) { Err(Errno::from(libc::EINVAL)) } else { Ok(keys) }
}

/// A `struct timeval`; none for zero.
fn timeout(value: &[u8]) -> Result<Option<std::time::Duration>, Errno> {
    let (seconds, micros) = value.split_at_checked(size_of::<libc::time_t>()).ok_or(Errno::from(libc::EINVAL))?;
    let seconds = seconds.try_into().map(libc::time_t::from_ne_bytes).map_err(|_| Errno::from(libc::EINVAL))?;
    let micros = micros.try_into().map(libc::suseconds_t::from_ne_bytes).map_err(|_| Errno::from(libc::EINVAL))?;
    let (Ok(seconds), 0..1_000_000) = (u64::try_from(seconds), micros) else { return Err(Errno::from(libc::EDOM)) };
    let span = std::time::Duration::new(seconds, micros as u32 * 1000);
    Ok((!span.is_zero()).then_some(span))
}

fn timeval(span: Option<std::time::Duration>) -> Vec<u8> {
    let span = span.unwrap_or_default();
    let (seconds, micros) = (span.as_secs() as libc::time_t, span.subsec_micros() as libc::suseconds_t);
    [&seconds.to_ne_bytes()[..], &micros.to_ne_bytes()].concat()
}

/// A `struct linger`; none for one that is off.
fn linger(value: &[u8]) -> Result<Option<std::time::Duration>, Errno> {
    let (on, seconds) = value.split_at_checked(size_of::<c_int>()).ok_or(Errno::from(libc::EINVAL))?;
    let seconds = u64::try_from(int(seconds)?).map_err(|_| Errno::from(libc::EINVAL))?;
    Ok((int(on)? != 0).then(|| std::time::Duration::from_secs(seconds)))
}
