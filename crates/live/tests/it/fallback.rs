//! Tests of TPA with a fallback to TCP: which of them is used, what is remembered about a peer, and
//! for how long. TCP must not be used in place of keys.
#![expect(clippy::disallowed_methods, reason = "memory fades with the clock")]

use crate::common::{listener, ms, noise, nowhere, quick};
use meshpace_core::Duration;
use meshpace_live::fallback::{Dialer, Fallback, Race, Stream};
use meshpace_live::testbed::{Impairment, Relay};
use meshpace_live::tpa::handshake::{BYTES, Cookie, Kind, Opening, Protection};
use meshpace_live::tpa::{Options, Security, TpaListener, TpaPort, keys};
use meshpace_testing::ports::wait_until_free;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Starts a TCP echo server. Returns its address.
fn tcp_echo() -> SocketAddr {
    counted_tcp_echo().0
}

/// Starts a TCP echo server. Returns its address and the number of its connections.
fn counted_tcp_echo() -> (SocketAddr, Arc<AtomicUsize>) {
    // Tests bind the same port number for UDP, some of them twice.
    let listener = TcpListener::bind(nowhere()).unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let had = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            had.fetch_add(1, Ordering::Relaxed);
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got).and_then(|_| stream.write_all(&got));
        }
    });
    (address, count)
}

/// Starts an echo server for TPA.
fn tpa_echo(tpa: TpaListener) {
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = tpa.accept() {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got).and_then(|_| stream.write_all(&got));
        }
    });
}

/// Refusal by an attacker who can read a request and has no keys: 62 bytes. If the request uses no
/// known keys, the refusal demands keys. In the other case it says that the keys do not fit.
fn forged_refusal(request: &[u8]) -> Option<Vec<u8>> {
    let (request, _) = Opening::decode(request).filter(|(opening, _)| opening.kind == Kind::Request)?;
    let knows_peer = matches!(request.protection, Protection::NnPsk0 | Protection::Ik);
    let protection = if knows_peer { request.protection } else { Protection::Ik };
    let cookie = Cookie::default();
    let forged = Opening { kind: Kind::Refusal, protection, acceptor: 0, cookie, ..request }.encode(&[], 0);
    assert_eq!(forged.len(), BYTES);
    Some(forged)
}

/// Forwards datagrams between `at` and `to` for one client. It first answers each of the first
/// `forged` datagrams with a refusal.
fn front(at: SocketAddr, to: SocketAddr, forged: usize) {
    let front = UdpSocket::bind(at).unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(to).unwrap();
    let (there, answers) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    let (tell, client) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        for number in 0.. {
            let Ok((length, from)) = there.recv_from(&mut buffer) else { return };
            if number == 0 {
                let _ = tell.send(from);
            }
            if let Some(refusal) = forged_refusal(&buffer[..length]).filter(|_| number < forged) {
                let _ = there.send_to(&refusal, from);
            }
            let _ = back.send(&buffer[..length]);
        }
    });
    std::thread::spawn(move || {
        let Ok(client) = client.recv() else { return };
        let mut buffer = [0; 65_536];
        while let Ok(length) = answers.recv(&mut buffer) {
            let _ = front.send_to(&buffer[..length], client);
        }
    });
}

/// An attacker at `at` who has no keys and refuses every request, until this is dropped. Counts the
/// requests.
struct Forger {
    asked: Arc<AtomicUsize>,
    over: Option<std::thread::JoinHandle<()>>,
    at: SocketAddr,
}

impl Forger {
    fn new(at: SocketAddr) -> Forger {
        let socket = UdpSocket::bind(at).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let over = std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok((length @ 1.., from)) = socket.recv_from(&mut buffer) {
                if let Some(refusal) = forged_refusal(&buffer[..length]) {
                    count.fetch_add(1, Ordering::Relaxed);
                    socket.send_to(&refusal, from).unwrap();
                }
            }
        });
        Forger { asked, over: Some(over), at }
    }

    /// True if it was asked `times` since the last time. A request that was sent waits in its socket: on a busy machine it may be read late.
    #[expect(clippy::disallowed_methods, reason = "a busy machine takes its time")]
    fn was_asked(&self, times: usize) -> bool {
        let given_up = Instant::now() + ms(60_000);
        while self.asked.load(Ordering::Relaxed) < times && Instant::now() < given_up {
            std::thread::sleep(ms(1));
        }
        self.asked.swap(0, Ordering::Relaxed) >= times
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], self.at).unwrap();
        self.over.take().unwrap().join().unwrap();
        wait_until_free(self.at.port());
    }
}

/// Options with keys, and with a time limit for opening a connection in ms.
fn keyed(security: Security, patience: u64) -> Options {
    Options { security, connect_timeout: Duration::from_millis(patience), ..quick() }
}

/// Exchanges data over the stream, whatever its transport is. Returns true if it is TPA.
fn exchange(mut stream: Stream) -> bool {
    let said = noise(1, 20_000);
    stream.write_all(&said).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == said, "{} bytes", got.len());
    matches!(stream, Stream::Tpa(_))
}

/// Number of TPA requests that a socket which answers nothing has received since the last call.
fn requests(silent: &UdpSocket) -> usize {
    silent.set_nonblocking(true).unwrap();
    (0..).take_while(|_| silent.recv(&mut [0; 2048]).is_ok()).count()
}

#[test]
fn the_default_race_is_that_of_the_page() {
    let Race { head_start, patience, memory } = Race::default();
    assert_eq!([head_start, patience, memory].map(Duration::as_secs_f64), [0.25, 1.0, 600.0]);
}

#[test]
fn a_peer_with_tpa_gets_it_even_if_its_tcp_is_faster() {
    let echo = tcp_echo();
    // TPA uses a path with a round-trip time of 60 ms and needs two round trips. TCP has no delay
    // and uses the same port number.
    let slow = || Impairment { delay: Duration::from_millis(30), ..Impairment::default() };
    let tpa = listener(quick());
    let relay = Relay::new(tpa.local_addr().unwrap(), slow(), slow(), false).unwrap();
    tpa_echo(tpa);
    // The relay has the port number of TCP.
    front(echo, relay.address(), 0);
    let race = Race { head_start: Duration::ZERO, patience: Duration::from_secs(60), ..Race::default() };
    let dialer = Dialer::new(quick(), race);
    assert!(exchange(dialer.connect(echo).unwrap()));
    assert!(exchange(dialer.connect(echo).unwrap()), "and again, by memory");
    drop(relay);
}

#[test]
fn a_peer_without_tpa_is_remembered_for_a_while() {
    let echo = tcp_echo();
    // This firewall drops UDP.
    let silent = UdpSocket::bind(echo).unwrap();
    let memory = Duration::from_secs(2);
    let race = Race { head_start: Duration::from_millis(20), patience: Duration::from_millis(100), memory };
    // On a busy machine TCP may be connected before TPA has sent anything. Then the request is
    // repeated after the memory has expired.
    let is_asked = |dialer: &Dialer| {
        (0..20).any(|number| {
            std::thread::sleep(if number > 0 { ms(2100) } else { ms(0) });
            requests(&silent);
            assert!(!exchange(dialer.connect(echo).unwrap()));
            requests(&silent) > 0
        })
    };
    let dialer = Dialer::new(quick(), race);
    assert!(is_asked(&dialer), "TPA was not tried");
    let remembered = std::time::Instant::now();
    assert!(!exchange(dialer.connect(echo).unwrap()));
    if remembered.elapsed() < ms(1500) {
        assert_eq!(requests(&silent), 0, "a peer that had none is asked again at once");
    }
    std::thread::sleep(ms(2100));
    assert!(is_asked(&dialer), "it may have TPA by now");
    // Another dialer has a memory of its own.
    assert!(is_asked(&Dialer::new(quick(), race)));
}

#[test]
fn refused_at_once_or_changed_meanwhile() {
    // No socket has the UDP port. The host reports this, so TCP starts at once, however long the
    // head start of TPA is.
    let echo = tcp_echo();
    let race = Race {
        head_start: Duration::from_secs(3600),
        patience: Duration::from_secs(3600),
        memory: Duration::from_secs(3600),
    };
    let dialer = Dialer::new(quick(), race);
    assert!(!exchange(dialer.connect(echo).unwrap()));
    // If neither works, the error contains both reasons.
    let error = dialer.connect(nowhere()).unwrap_err().to_string();
    assert!(error.contains("neither TPA (") && error.contains("nor TCP ("), "{error}");
    // A peer that had TPA and has it no longer.
    let port = TpaPort::with_options(echo, Options::default()).unwrap();
    let tpa = port.listen(4).unwrap();
    let other = Dialer::new(quick(), race);
    let opened = other.connect(echo).unwrap();
    assert!(matches!(opened, Stream::Tpa(_)));
    drop((tpa.accept().unwrap(), opened));
    drop((tpa, port));
    wait_until_free(echo.port());
    assert!(!exchange(other.connect(echo).unwrap()));
}

#[test]
fn with_keys_no_tcp_is_tried_whatever_becomes_of_tpa() {
    let [(own, of_own), (_, of_other)] = [(); 2].map(|()| keys::generate().unwrap());
    let secret = || Security::Shared([7; 32]);
    let race = Race { head_start: Duration::ZERO, patience: Duration::ZERO, ..Race::default() };
    let listening = |at: SocketAddr, security| {
        let options = Options { security, ..quick() };
        TpaPort::with_options(at, options).unwrap().listen(4).unwrap()
    };
    // Connects twice, because of the memory. Both attempts must fail with an error that contains
    // `why`, and without TCP.
    let fails = |(at, tcp): &(SocketAddr, Arc<AtomicUsize>), security: Security, why: &str| {
        let dialer = Dialer::new(keyed(security, 1000), race);
        for _ in 0..2 {
            let error = dialer.connect(*at).expect_err("plaintext, although keys are set");
            let said = error.to_string();
            assert!(said.contains(why) && said.contains("TCP is not tried"), "{said}");
        }
        assert_eq!(tcp.load(Ordering::Relaxed), 0, "{why}");
    };
    // A wrong secret, a wrong key, and a peer that accepts neither.
    let echo = counted_tcp_echo();
    let tpa = listening(echo.0, Security::Shared([8; 32]));
    fails(&echo, secret(), "the keys do not fit");
    fails(&echo, Security::Keys { own, peers: vec![of_other] }, "it wants encryption with a shared secret, this end");
    drop(tpa);
    let echo = counted_tcp_echo();
    let tpa = listening(echo.0, Security::Keys { own, peers: vec![of_own] });
    fails(&echo, Security::Keys { own, peers: vec![of_other] }, "the keys do not fit");
    drop(tpa);
    // UDP is dropped, no socket has the port, or an attacker sends refusals.
    let echo = counted_tcp_echo();
    let silent = UdpSocket::bind(echo.0).unwrap();
    fails(&echo, secret(), "no answer from");
    drop(silent);
    wait_until_free(echo.0.port());
    fails(&echo, secret(), "nobody listens on UDP port");
    let forger = Forger::new(echo.0);
    let begun = Instant::now();
    fails(&echo, secret(), "refuses the connection: the keys do not fit");
    assert!(begun.elapsed() >= ms(2000), "a refusal that nobody has proved ends the waiting");
    assert!(forger.was_asked(3), "nobody is asked again");
}

#[test]
fn a_forged_refusal_keeps_no_connection_with_keys_from_being_opened() {
    let (echo, tcp) = counted_tcp_echo();
    let options = keyed(Security::Shared([7; 32]), 20_000);
    let tpa = listener(options.clone());
    // The attacker is faster than the peer. It also answers the request that contains the cookie.
    front(echo, tpa.local_addr().unwrap(), 2);
    tpa_echo(tpa);
    let race = Race { head_start: Duration::ZERO, patience: Duration::ZERO, ..Race::default() };
    assert!(exchange(Dialer::new(options, race).connect(echo).unwrap()));
    assert_eq!(tcp.load(Ordering::Relaxed), 0);
}

#[test]
fn with_keys_plaintext_is_what_somebody_asked_for_in_so_many_words() {
    let (echo, tcp) = counted_tcp_echo();
    let security = Security::Shared([7; 32]);
    let patience = Duration::from_millis(700);
    let race = Race { head_start: Duration::ZERO, patience, ..Race::default() };
    let dialer = Dialer::new(keyed(security.clone(), 20_000), race).fallback(Fallback::Plaintext);
    // A forged refusal does not make TCP start earlier, and is not remembered.
    let forger = Forger::new(echo);
    for _ in 0..2 {
        let begun = Instant::now();
        assert!(!exchange(dialer.connect(echo).unwrap()));
        assert!(begun.elapsed() >= ms(700), "{:?}", begun.elapsed());
        assert!(forger.was_asked(1), "TPA was not tried");
    }
    drop(forger);
    // Nor does a report of the network that the port is closed, nor silence.
    let begun = Instant::now();
    assert!(!exchange(dialer.connect(echo).unwrap()));
    assert!(begun.elapsed() >= ms(700), "{:?}", begun.elapsed());
    let silent = UdpSocket::bind(echo).unwrap();
    for _ in 0..2 {
        assert!(!exchange(dialer.connect(echo).unwrap()));
        assert!(requests(&silent) > 0, "TPA was not tried");
    }
    drop(silent);
    wait_until_free(echo.port());
    assert_eq!(tcp.load(Ordering::Relaxed), 5);
    tpa_echo(TpaPort::with_options(echo, keyed(security.clone(), 20_000)).unwrap().listen(4).unwrap());
    let race = Race { patience: Duration::from_secs(60), ..race };
    let patient = Dialer::new(keyed(security, 20_000), race).fallback(Fallback::Plaintext);
    assert!(exchange(patient.connect(echo).unwrap()), "TCP, although the peer has TPA and the secret");
}

#[test]
fn without_keys_a_refusal_is_believed_and_forgotten() {
    let echo = tcp_echo();
    let race = Race { head_start: Duration::from_secs(3600), patience: Duration::from_secs(3600), ..Race::default() };
    let dialer = Dialer::new(quick(), race);
    let forger = Forger::new(echo);
    for _ in 0..2 {
        assert!(!exchange(dialer.connect(echo).unwrap()));
        assert!(forger.was_asked(1), "one forged refusal decides about later connections");
    }
    drop(forger);
    tpa_echo(TpaPort::with_options(echo, quick()).unwrap().listen(4).unwrap());
    assert!(exchange(dialer.connect(echo).unwrap()));
    // Without TCP, this is an error at once.
    let forger = Forger::new(nowhere());
    let error = TpaPort::with_options("127.0.0.1:0", quick()).unwrap().connect(forger.at).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}
