//! Tests of TCP connections through one session of a tunnel, whose bulk data is carried by quiet
//! trains.
#![expect(clippy::disallowed_methods, reason = "transfers take their time")]

use crate::common::{ms, noise, nowhere, quick};
use crate::tunnel::{
    Tunnel, breaks_off_before_a_client_that_reads_nothing, echo, exchange, page, page_bytes, parrot,
    refuses_targets_that_are_not_there_or_not_allowed, server, settled, to,
};
use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::{Impairment, Loss};
use meshpace_live::tpa::path::Fixed;
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tunnel::{Allowed, CarriedBy, Connector, Counters};
use meshpace_transport::{Config, PathInfo, names};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Options of both ends: the path is one hop of radio.
fn options() -> Options {
    let Some(Config::Train(trains)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let path = PathInfo { hops: 1, rate: Rate::from_mbps(54), received_power_dbm: None };
    Options {
        trains: Some(trains),
        takes_tpa: true,
        path: Some(Arc::new(Fixed(path))),
        ..meshpace_live::tunnel::options(quick().transport)
    }
}

fn port() -> TpaPort {
    TpaPort::with_options((HERE, 0), options()).unwrap()
}

fn tunnel(over: Option<[Impairment; 2]>) -> Tunnel {
    Tunnel::new(CarriedBy::Session, &options(), Allowed::Anywhere, over)
}

#[test]
fn two_hundred_streams_of_one_session_closed_by_halves() {
    let tunnel = tunnel(None);
    let at = tunnel.to(server(echo));
    std::thread::scope(|scope| {
        for seed in 0..200 {
            scope.spawn(move || {
                let sent = noise(seed, 5000 + 100 * seed as usize);
                assert!(exchange(at, &sent).unwrap() == sent, "stream {seed}");
            });
        }
    });
    let sent: u64 = (0..200).map(|seed| 5000 + 100 * seed).sum();
    for totals in tunnel.totals() {
        assert_eq!((totals.open, totals.opened, totals.refused, totals.aborted), (0, 200, 0, 0), "{totals:?}");
        assert_eq!((totals.sent, totals.received), (sent, sent));
        assert_eq!((totals.carried_by, totals.hops), (Some(CarriedBy::Session), Some(1)));
        assert!(totals.stats.segments_sent > 0, "{totals:?}");
    }
}

/// Time without a byte in either direction after which a tunnel counts as stalled. The duration of
/// a transfer says nothing: the sender sleeps before each segment, and on a busy machine each of
/// 8,500 sleeps ends milliseconds late.
const STANDSTILL: std::time::Duration = std::time::Duration::from_secs(60);

/// Distinguishes a slow tunnel from a stalled one.
struct Progress<'a> {
    counters: &'a Counters,
    carried: u64,
    since: Instant,
}

impl Progress<'_> {
    fn of(counters: &Counters) -> Progress<'_> {
        Progress { counters, carried: 0, since: Instant::now() }
    }

    /// Calls `work`, a read or write which fails after a second without a byte, until it succeeds.
    /// The error is that of `work`, or [`ErrorKind::TimedOut`] if the tunnel is stalled.
    fn wait<T>(&mut self, mut work: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
        loop {
            let done = work();
            let totals = self.counters.totals();
            if totals.sent + totals.received != self.carried {
                (self.carried, self.since) = (totals.sent + totals.received, Instant::now());
            }
            match done {
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.since.elapsed() < STANDSTILL => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let what = format!("nothing carried for {STANDSTILL:?}: {totals:?}");
                    return Err(std::io::Error::new(ErrorKind::TimedOut, what));
                }
                done => return done,
            }
        }
    }

    /// Sends `said` and returns the echo, as [`exchange`] does, for as long as the tunnel carries
    /// anything.
    fn exchange(&mut self, at: SocketAddr, said: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(ms(1000)))?;
        stream.set_write_timeout(Some(ms(1000)))?;
        let mut written = 0;
        while written < said.len() {
            written += self.wait(|| stream.write(&said[written..]))?;
        }
        stream.shutdown(Shutdown::Write)?;
        let (mut got, mut block) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match self.wait(|| stream.read(&mut block))? {
                0 => return Ok(got),
                length => got.extend_from_slice(&block[..length]),
            }
        }
    }
}

#[test]
fn much_at_once_arrives_whole() {
    let tunnel = tunnel(None);
    let at = tunnel.to(server(echo));
    let counters = tunnel.connector.counters();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let counters = &counters;
            scope.spawn(move || {
                let sent = noise(seed, 1_500_000);
                let got = Progress::of(counters).exchange(at, &sent).unwrap();
                assert!(got == sent, "stream {seed}");
            });
        }
    });
    let [near, far] = tunnel.totals();
    assert_eq!((near.sent, near.received, far.aborted), (6_000_000, 6_000_000, 0));
}

#[test]
fn who_connects_decides_and_one_listener_serves_both() {
    let tunnel = tunnel(None);
    let target = server(echo);
    let plain = Connector::new(TpaPort::with_options((HERE, 0), quick()).unwrap(), tunnel.far);
    let (by_session, by_tpa) = (tunnel.to(target), to(&plain, target));
    for round in 0..3 {
        for at in [by_session, by_tpa] {
            let sent = noise(round, 50_000);
            assert!(exchange(at, &sent).unwrap() == sent);
        }
    }
    assert_eq!(settled(&plain.counters()).carried_by, Some(CarriedBy::Tpa));
    let [near, far] = tunnel.totals();
    assert_eq!((near.opened, far.opened, far.aborted, near.carried_by), (3, 6, 0, Some(CarriedBy::Session)));
}

#[test]
fn a_slow_reader_holds_its_own_writer_back_and_nobody_else() {
    let tunnel = tunnel(None);
    // The server reads nothing until the test allows it.
    static SEEN: AtomicBool = AtomicBool::new(false);
    let slow = tunnel.to(server(|stream| {
        while !SEEN.load(Ordering::Relaxed) {
            std::thread::sleep(ms(10));
        }
        echo(stream);
    }));
    let mut writer = TcpStream::connect(slow).unwrap();
    writer.set_write_timeout(Some(ms(1000))).unwrap();
    let sent = noise(1, 40_000_000);
    let mut written = 0;
    while written < sent.len()
        && let Ok(length) = writer.write(&sent[written..])
    {
        written += length;
    }
    assert!(written < sent.len(), "somebody takes without end");
    let said = noise(2, 300_000);
    assert!(exchange(tunnel.to(server(echo)), &said).unwrap() == said);
    SEEN.store(true, Ordering::Relaxed);
}

#[test]
fn what_is_broken_off_is_not_taken_for_an_end() {
    let tunnel = tunnel(None);
    let broken = tunnel.to(server(|mut stream| {
        stream.write_all(b"half of it").unwrap();
        let _ = stream.read(&mut [0]);
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    }));
    // Another stream of the same session begins before and continues afterwards.
    let mut other = TcpStream::connect(tunnel.to(server(parrot))).unwrap();
    other.write_all(b"x").unwrap();
    other.read_exact(&mut [0]).unwrap();
    let mut stream = TcpStream::connect(broken).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream.write_all(b"?").unwrap();
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    other.write_all(b"y").unwrap();
    let mut got = [0];
    other.read_exact(&mut got).unwrap();
    assert_eq!(got, *b"y");
    drop(other);
    let totals = tunnel.totals();
    assert!(totals.iter().all(|totals| (totals.opened, totals.aborted) == (2, 1)), "{totals:?}");
}

#[test]
fn what_is_broken_off_does_not_wait_for_a_client_that_reads_nothing() {
    breaks_off_before_a_client_that_reads_nothing(&tunnel(None));
}

#[test]
fn targets_that_are_not_there_or_not_allowed() {
    refuses_targets_that_are_not_there_or_not_allowed(CarriedBy::Session, &options());
}

#[test]
fn a_page_over_a_lossy_link_that_goes_down_meanwhile() {
    let bad = |seed| Impairment {
        delay: Duration::from_millis(5),
        loss: Loss::Random(0.02),
        duplicate: 0.01,
        reorder: 0.02,
        outage: Some((Duration::from_millis(500), Duration::from_millis(1500))),
        seed,
        ..Impairment::default()
    };
    let tunnel = tunnel(Some([bad(1), bad(2)]));
    let at = tunnel.to(server(page));
    let start = Instant::now();
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    drop(stream);
    let body = got.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(Sha256::digest(&got[body..]), Sha256::digest(noise(7, page_bytes())));
    assert!(start.elapsed() >= ms(1500), "the link was not down: {:?}", start.elapsed());
    let [near, far] = tunnel.totals();
    assert!(far.stats.retransmissions > 0, "the link lost nothing");
    assert_eq!((near.aborted, far.aborted), (0, 0));
}

#[test]
fn where_the_far_end_is_gone_every_stream_is_reset_and_the_next_opens_a_session() {
    let options =
        Options { keep_alive: Some(Duration::from_secs(1)), silence_timeout: Duration::from_secs(3), ..options() };
    let way = [Impairment::default(), Impairment::default()];
    let tunnel = Tunnel::new(CarriedBy::Session, &options, Allowed::Anywhere, Some(way));
    let at = tunnel.to(server(parrot));
    let mut streams: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(at).unwrap()).collect();
    for stream in &mut streams {
        stream.set_read_timeout(Some(ms(60_000))).unwrap();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    tunnel.relay().set_down(true);
    for stream in &mut streams {
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    let [near, far] = tunnel.totals();
    assert_eq!((near.open, near.aborted, far.open, far.aborted), (0, 20, 0, 20), "{near:?} {far:?}");
    // The next stream waits for a session. It gets one when the path works again.
    let at = tunnel.to(server(echo));
    std::thread::scope(|scope| {
        let again = scope.spawn(|| exchange(at, b"again").unwrap());
        std::thread::sleep(ms(1000));
        assert!(!again.is_finished(), "nothing gets through");
        tunnel.relay().set_down(false);
        assert_eq!(again.join().unwrap(), b"again");
    });
    let [near, far] = tunnel.totals();
    assert_eq!((near.opened, near.refused, far.opened, far.aborted), (21, 0, 21, 20), "{near:?} {far:?}");
}

#[test]
fn nobody_at_the_far_end_is_told_with_the_first_connection() {
    let far = nowhere();
    let connector = Connector::in_session(port(), far);
    // All streams that begin during the attempt share its result.
    let at = to(&connector, nowhere());
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(move || assert!(TcpStream::connect(at).unwrap().read(&mut [0]).is_err(), "a reset and no end"));
        }
    });
    let totals = settled(&connector.counters());
    assert_eq!((totals.opened, totals.refused), (0, 5), "{totals:?}");
}

#[test]
fn bbr_carries_much_whole_and_that_is_told_at_both_ends() {
    let tunnel = Tunnel::new(CarriedBy::Bbr, &Options { bbr: true, ..options() }, Allowed::Anywhere, None);
    let at = tunnel.to(server(echo));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let sent = noise(seed, 3_000_000);
                assert!(exchange(at, &sent).unwrap() == sent, "stream {seed}");
            });
        }
    });
    for totals in tunnel.totals() {
        assert_eq!((totals.opened, totals.aborted, totals.sent), (4, 0, 12_000_000), "{totals:?}");
        assert_eq!(totals.carried_by, Some(CarriedBy::Bbr));
    }
}

#[test]
fn an_address_has_sixteen_sessions_and_an_idle_one_gives_way_to_the_next() {
    let tunnel = tunnel(None);
    let there = server(parrot);
    // Opens a session with one stream in it that has sent data and received an answer, if the
    // session is accepted.
    let begin = || {
        let connector = Connector::in_session(port(), tunnel.far);
        let mut stream = TcpStream::connect(to(&connector, there)).unwrap();
        stream.set_read_timeout(Some(ms(60_000))).unwrap();
        let is_answered = stream.write_all(b"x").and_then(|()| stream.read_exact(&mut [0])).is_ok();
        is_answered.then_some((connector, stream))
    };
    let mut kept: Vec<_> = (0..16).map(|number| begin().unwrap_or_else(|| panic!("session {number}"))).collect();
    assert!(begin().is_none(), "there are 17");
    for (_, stream) in &mut kept {
        stream.write_all(b"y").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    // The session stays open when its stream is closed, and carries nothing.
    let (_idle, stream) = kept.remove(0);
    drop(stream);
    let start = Instant::now();
    while begin().is_none() {
        assert!(start.elapsed() < ms(60_000), "an idle session keeps others out");
    }
}

#[test]
fn what_is_no_session_is_answered_or_left() {
    let tunnel = tunnel(None);
    let plain = TpaPort::with_options((HERE, 0), quick()).unwrap();
    // Garbage in a carrier ends only that carrier's session: half a preamble, a carrier of unknown
    // kind, and frames of unknown kind after a correct preamble.
    let beginnings = [&[2, 9][..], &[2, 0, 7][..], &[[2, 1].as_slice(), &[7; 16], &[0xff; 100]].concat()];
    for said in beginnings {
        let mut stream = plain.connect(tunnel.far).unwrap();
        stream.write_all(said).unwrap();
        stream.set_read_timeout(Some(ms(40_000))).unwrap();
        let mut got = [0; 8];
        assert!(!matches!(stream.read(&mut got), Ok(2..)), "{said:?}");
        stream.abort();
    }
    assert_eq!(exchange(tunnel.to(server(echo)), b"still there").unwrap(), b"still there");
    // A second session with the same exit is independent.
    let another = Connector::in_session(port(), tunnel.far);
    assert_eq!(exchange(to(&another, server(echo)), b"both").unwrap(), b"both");
}
