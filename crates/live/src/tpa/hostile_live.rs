//! Tests with a hostile peer on real sockets. The peer has the keys, and forges source addresses on
//! loopback that stand for victims.
//!
//! The code of an honest session (`session::port`) seals the peer's datagrams; the hostile peer
//! adds forged ones. The addresses of the victims belong to separate sockets, which count what
//! arrives and answer nothing.
#![expect(clippy::disallowed_methods, reason = "the attack takes place in real time")]

use crate::Clock;
use crate::tpa::{Options, TpaListener, TpaPort};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng};
use meshpace_session::Security;
use meshpace_session::connection::forging::Forgery;
use meshpace_session::engine::AnySegment;
use meshpace_session::handshake::InnerTransport;
use meshpace_session::path_frame::PathFrame;
use meshpace_session::{Arrived, Port};
use meshpace_transport::flags::Flags;
use meshpace_transport::{bbr, tpa, train};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

const SECRET: Security = Security::Shared([7; 32]);

/// Options of a port that uses this inner transport.
fn options(inner: InnerTransport) -> Options {
    let trains = (inner != InnerTransport::Tpa).then(train::Config::default);
    Options { security: SECRET, trains, bbr: inner == InnerTransport::Bbr, ..Options::default() }
}

/// A hostile peer.
struct Hostile {
    port: Port<()>,
    /// Socket of its own address, at which it receives.
    own: UdpSocket,
    /// Socket of the victim's address. The hostile peer does not see what arrives there.
    victim: UdpSocket,
    target: SocketAddr,
    inner: InnerTransport,
    /// Bytes sent from the victim's address.
    /// Bytes received at the victim's address.
    as_victim: usize,
    at_victim: usize,
}

impl Hostile {
    fn new(inner: InnerTransport, listens: bool) -> Hostile {
        let [own, victim] = ["127.0.0.2:0", "127.0.0.66:0"].map(|address| UdpSocket::bind(address).unwrap());
        [&own, &victim].into_iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let settings = (*options(inner).service().settings).clone();
        let rng = Rng::stream(1, Purpose::Test, 66);
        let port = Port::seeded(Clock.now(), own.local_addr().unwrap(), settings, rng, listens);
        let target = own.local_addr().unwrap();
        Hostile { port, own, victim, target, inner, as_victim: 0, at_victim: 0 }
    }

    /// Receives datagrams, runs the honest code on them, and sends its answers from the hostile
    /// peer's own address.
    fn turn(&mut self) {
        let mut buffer = [0; 65_536];
        let now = Clock.now();
        while let Ok((length, from)) = self.own.recv_from(&mut buffer) {
            self.target = from;
            let arrived = self.port.receive(now, from, &mut buffer[..length], |_| ());
            if let Arrived::Told(id) | Arrived::Accepted(id) = arrived {
                self.port.settle(id, now);
            }
        }
        while let Ok((length, _)) = self.victim.recv_from(&mut buffer) {
            self.at_victim += length;
        }
        self.port.wake_endpoint(now);
        let ids: Vec<u64> = self.port.parties.keys().copied().collect();
        for id in ids {
            if self.port.parties[&id].session.next_wakeup() <= now {
                self.port.work(id, now);
                self.port.settle(id, now);
            }
            self.port.forget_if_due(id, now);
        }
        for (to, bytes) in self.port.leaving() {
            let _ = self.own.send_to(&bytes, to);
        }
    }

    /// Sends `content` from the victim's address. Returns the number of the datagram; `None` if
    /// there is no connection.
    fn forge(&mut self, content: Forgery<'_>) -> Option<u64> {
        let party = self.port.parties.values_mut().next()?;
        let number = party.session.forge(content, &mut self.port.out)?;
        for (_, bytes) in self.port.leaving() {
            self.as_victim += self.victim.send_to(&bytes, self.target).unwrap_or(0);
        }
        Some(number)
    }

    /// Sends from the victim's address, and answers the path challenges that were sent there with
    /// guessed values.
    fn attack(&mut self) {
        let question = match self.inner {
            InnerTransport::Tpa => AnySegment::Tpa(tpa::Segment { flags: Flags::SYN, ..Default::default() }),
            InnerTransport::Trains => AnySegment::Train(train::Segment { flags: Flags::SYN, ..Default::default() }),
            InnerTransport::Bbr => AnySegment::Bbr(bbr::Segment { flags: Flags::SYN, ..Default::default() }),
        };
        let Some(number) = self.forge(Forgery::Segment(question, &[])) else { return };
        for guess in [number, !number, number + 1, number.wrapping_sub(1), 0] {
            self.forge(Forgery::Path(PathFrame::Response(guess)));
        }
    }

    /// Attacks for the time `span`.
    fn run(&mut self, span: Duration) {
        let until = Clock.now() + span;
        let mut attacks_at = Clock.now();
        while Clock.now() < until {
            self.turn();
            if Clock.now() >= attacks_at {
                attacks_at = Clock.now() + Duration::from_millis(50);
                self.attack();
            }
            std::thread::sleep(PAUSE);
        }
        self.turn();
    }

    fn check(&self, role: &str) {
        let Hostile { as_victim, at_victim, inner, .. } = self;
        println!("{inner:?}, {role}: {at_victim} bytes to the victim for {as_victim} from its address");
        assert!(*as_victim > 1000, "{inner:?}, {role}: the attack took place");
        assert!(*at_victim <= 3 * as_victim, "{inner:?}, {role}: {at_victim} bytes for {as_victim}");
    }
}

const INNER: [InnerTransport; 3] = [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr];

/// Duration of each attack.
const ATTACK: Duration = Duration::from_secs(2);

/// Time between two checks of a socket.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// Data that the application of the attacked end wants to send: more than the buffers and windows
/// can hold at first.
static DATA: [u8; 1 << 18] = [7; 1 << 18];

/// Accepts connections until the listener is closed, and writes to each as much as it takes without
/// waiting. The connections stay open until then.
fn serve(listener: &TpaListener) {
    let mut accepted = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(true).unwrap();
        let _ = (&stream).write(&DATA);
        accepted.push(stream);
    }
}

/// Connects several honest clients, each of which also receives data. Returns the longest time
/// until a client was connected.
fn slowest_client(address: SocketAddr, inner: InnerTransport) -> std::time::Duration {
    let connect = |_| {
        let port = TpaPort::with_options("127.0.0.1:0", options(inner)).unwrap();
        let begun = Instant::now();
        let mut client = port.connect(address).unwrap();
        let connected = begun.elapsed();
        let mut got = [0; 1000];
        client.read_exact(&mut got).unwrap();
        assert!(got == DATA[..1000]);
        connected
    };
    (0..5).map(connect).max().unwrap_or_default()
}

#[test]
fn a_listener_sends_no_victim_much_more_than_came_from_there() {
    for inner in INNER {
        let port = TpaPort::with_options("127.0.0.1:0", options(inner)).unwrap();
        let listener = port.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let mut hostile = Hostile::new(inner, false);
        hostile.target = address;
        let id = hostile.port.open_seeded(Clock.now(), address, inner, |_| ());
        hostile.port.work(id, Clock.now());
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener));
            let slowest = scope.spawn(|| slowest_client(address, inner));
            hostile.run(ATTACK);
            let slowest = slowest.join().unwrap();
            println!("{inner:?}: the slowest of the honest clients was connected after {slowest:?}");
            // One second is what it takes at most where nothing else keeps the processor busy.
            assert!(slowest < std::time::Duration::from_secs(20), "{slowest:?}");
            listener.close();
        });
        assert_eq!(listener.counters().moves, 0, "{inner:?}");
        hostile.check("a listener under attack");
    }
}

#[test]
fn who_opens_sends_no_victim_of_its_far_end_much_more_than_came_from_there() {
    for inner in INNER {
        let mut hostile = Hostile::new(inner, true);
        let address = hostile.own.local_addr().unwrap();
        let port = TpaPort::with_options("127.0.0.1:0", options(inner)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let stream = port.connect(address).unwrap();
                stream.set_nonblocking(true).unwrap();
                let _ = (&stream).write(&DATA);
                // As long as the attack; what has not left by then is of no interest.
                std::thread::sleep(std::time::Duration::from_nanos(ATTACK.0));
                stream.set_linger(std::time::Duration::ZERO).unwrap();
            });
            hostile.run(ATTACK);
        });
        assert_eq!(port.counters().moves, 0, "{inner:?}");
        hostile.check("who opens under attack");
    }
}
