//! Tests of a repeated acceptance, the message that opens a connection. It is not sealed as
//! segments are, and both tags are sent in clear, so anybody who reads the packets can send it. It
//! causes an ACK and nothing else.
#![expect(clippy::disallowed_methods, reason = "who attacks waits in real time for what there is to attack")]

use crate::common::{exchange, listener, ms, noise, quick};
use meshpace_core::Duration;
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::handshake::{Kind, Opening};
use meshpace_live::tpa::path::Fixed;
use meshpace_live::tpa::{Options, TpaPort, TpaStream};
use meshpace_transport::tpa::{Flags, Segment};
use meshpace_transport::{PathInfo, train};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

fn trains() -> Options {
    let path = PathInfo { hops: 1, rate: meshpace_core::Rate::from_mbps(11), received_power_dbm: None };
    Options { trains: Some(train::Config::default()), path: Some(Arc::new(Fixed(path))), ..quick() }
}

/// An attacker on the path who reads everything, can hold back datagrams, and sends from the
/// address of either end.
struct Attacker {
    /// Address to which the client has to connect.
    address: SocketAddr,
    /// The attacker's sockets towards the client and towards the server.
    front: UdpSocket,
    back: UdpSocket,
    /// The client, and the acceptance that it received.
    seen: Receiver<(SocketAddr, Opening)>,
    keeps: Arc<AtomicBool>,
    /// Number of datagrams held back, of the client and of the server.
    kept: Arc<[AtomicU64; 2]>,
}

impl Attacker {
    fn before(server: SocketAddr) -> Attacker {
        let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        back.connect(server).unwrap();
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(ms(20_000))).unwrap();
        }
        let ((tell, seen), (name, named)) = (channel(), channel());
        let (keeps, kept) = (Arc::new(AtomicBool::new(false)), Arc::new([AtomicU64::new(0), AtomicU64::new(0)]));
        let attacker = Attacker {
            address: front.local_addr().unwrap(),
            front: front.try_clone().unwrap(),
            back: back.try_clone().unwrap(),
            seen,
            keeps: Arc::clone(&keeps),
            kept: Arc::clone(&kept),
        };
        let (toward, (keeps_there, kept_there)) = (back.try_clone().unwrap(), (Arc::clone(&keeps), Arc::clone(&kept)));
        let there = front.try_clone().unwrap();
        thread::spawn(move || pass_on(&there, &toward, &name, (&keeps_there, &kept_there[0])));
        thread::spawn(move || pass_back(&back, &front, (&named, &tell), (&keeps, &kept[1])));
        attacker
    }

    /// Sends an acceptance to both ends, as if from the other end, with these flags in its segment.
    fn repeat(&self, client: SocketAddr, acceptance: &Opening, flags: Flags) {
        let Segment { block, ack_block, .. } = acceptance.segment;
        // Each end receives the block numbers that it knows: its own first block and the other's.
        let segment =
            Segment { block, ack_block, ack_places: 1, place: 1, last: true, window: 255, flags, ..Segment::default() };
        let segment = if flags.has(Flags::FIN) { segment } else { Segment { place: 0, last: false, ..segment } };
        let to_client = Opening { segment, ..*acceptance };
        let (opener, acceptor) = (acceptance.acceptor, acceptance.opener);
        let to_server = Opening {
            opener,
            acceptor,
            segment: Segment { block: ack_block, ack_block: block, ..segment },
            ..*acceptance
        };
        self.front.send_to(&to_client.encode(&[], 0), client).unwrap();
        self.back.send(&to_server.encode(&[], 0)).unwrap();
    }
}

fn pass_on(from: &UdpSocket, to: &UdpSocket, name: &Sender<SocketAddr>, (keeps, kept): (&AtomicBool, &AtomicU64)) {
    let (mut buffer, mut named) = ([0; 2048], false);
    while let Ok((length, client)) = from.recv_from(&mut buffer) {
        if !std::mem::replace(&mut named, true) {
            let _ = name.send(client);
        }
        if keeps.load(Ordering::SeqCst) {
            kept.fetch_add(1, Ordering::SeqCst);
        } else {
            let _ = to.send(&buffer[..length]);
        }
    }
}

fn pass_back(
    from: &UdpSocket,
    to: &UdpSocket,
    (named, tell): (&Receiver<SocketAddr>, &Sender<(SocketAddr, Opening)>),
    (keeps, kept): (&AtomicBool, &AtomicU64),
) {
    let mut buffer = [0; 2048];
    let Ok(client) = named.recv() else { return };
    while let Ok(length) = from.recv(&mut buffer) {
        if let Some((opening, _)) = Opening::decode(&buffer[..length]).filter(|(it, _)| it.kind == Kind::Acceptance) {
            let _ = tell.send((client, opening));
        }
        if keeps.load(Ordering::SeqCst) {
            kept.fetch_add(1, Ordering::SeqCst);
        } else {
            let _ = to.send_to(&buffer[..length], client);
        }
    }
}

/// A connection through an attacker: both ends, the attacker, the client's address and the
/// acceptance.
fn attacked(options: &Options) -> (TpaStream, TpaStream, Attacker, SocketAddr, Opening) {
    let listener = listener(options.clone());
    let attacker = Attacker::before(listener.local_addr().unwrap());
    let client = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap().connect(attacker.address).unwrap();
    let server = listener.accept().unwrap().0;
    for end in [&client, &server] {
        end.set_read_timeout(Some(ms(20_000))).unwrap();
    }
    let (address, acceptance) = attacker.seen.recv_timeout(ms(10_000)).expect("an acceptance");
    (client, server, attacker, address, acceptance)
}

/// Sends an acceptance with these flags to both ends while their datagrams are held back. Checks
/// that they continue.
fn goes_on(options: &Options, flags: Flags) {
    let (client, server, attacker, address, acceptance) = attacked(options);
    attacker.keeps.store(true, Ordering::SeqCst);
    thread::scope(|scope| {
        let transfer = scope.spawn(|| exchange(client, server, &noise(1, 10_000), &noise(2, 10_000)));
        // Both ends have sent something that could be acknowledged although it has not arrived.
        while attacker.kept.iter().any(|kept| kept.load(Ordering::SeqCst) == 0) && !transfer.is_finished() {
            thread::sleep(ms(1));
        }
        attacker.repeat(address, &acceptance, flags);
        // The ends receive the acceptances before any datagram that is sent later.
        attacker.keeps.store(false, Ordering::SeqCst);
        transfer.join().unwrap_or_else(|_| panic!("{flags:?}, trains: {}", options.trains.is_some()));
    });
}

#[test]
fn an_acceptance_that_is_said_again_ends_nothing_and_acknowledges_nothing() {
    let (rst, ack) = (Flags::RST, Flags::ACK);
    thread::scope(|scope| {
        for options in [quick(), trains()] {
            for flags in [rst, rst.with(ack), ack.with(Flags::FIN), ack] {
                let options = options.clone();
                scope.spawn(move || goes_on(&options, flags));
            }
        }
    });
}

#[test]
fn an_acceptance_that_is_said_again_is_no_sign_of_life() {
    for options in [quick(), trains()] {
        let trains = options.trains.is_some();
        // This is the shortest keep-alive that quiet trains accept.
        let options =
            Options { keep_alive: Some(Duration::from_secs(1)), silence_timeout: Duration::from_secs(3), ..options };
        let (mut client, server, attacker, address, acceptance) = attacked(&options);
        attacker.keeps.store(true, Ordering::SeqCst);
        client.set_read_timeout(Some(ms(30_000))).unwrap();
        let reading = thread::spawn(move || client.read(&mut [0]).unwrap_err().kind());
        while !reading.is_finished() {
            attacker.repeat(address, &acceptance, Flags::SYN.with(Flags::ACK));
            thread::sleep(ms(20));
        }
        assert_eq!(reading.join().unwrap(), ErrorKind::TimedOut, "trains: {trains}");
        server.abort();
    }
}

#[test]
fn an_acceptance_that_is_repeated_since_its_ack_was_lost_is_acknowledged() {
    let listener = listener(trains());
    let lose = |indices: &[u64]| Impairment {
        loss: Loss::Indices(indices.iter().copied().collect()),
        ..Impairment::default()
    };
    let relay = Relay::new(listener.local_addr().unwrap(), lose(&[2]), lose(&[]), false).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", trains()).unwrap().connect(relay.address()).unwrap();
    let mut server = listener.accept().unwrap().0;
    server.write_all(b"hello").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
}
