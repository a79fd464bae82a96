//! Tests TPA over UDP against strangers: random bytes, forged and replayed segments, paths with a
//! small MTU.
#![expect(clippy::disallowed_methods, reason = "garbage comes for a while of real time")]

use crate::common::{exchange, listener, ms, noise, pair, quick};
use crate::puppet::{Puppet, plain};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng};
use meshpace_live::testbed::{Impairment, Link, Relay, tun_link::ADDRESSES};
use meshpace_live::tpa::handshake::{self, BYTES, Cookie, Kind, Opening};
use meshpace_live::tpa::{Limits, Options, TpaListener, TpaPort, TpaStream};
use meshpace_testing::{Class, skipped};
use meshpace_transport::tpa::{self, Flags, Segment};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

fn still_works(listener: &TpaListener, options: Options) {
    let port = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    let client = port.connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    exchange(client, server, &noise(1, 50_000), b"fine");
}

#[test]
fn who_has_been_told_that_it_listens_refuses_nobody() {
    // The request arrives before the thread that runs the connections has handled either.
    for _ in 0..200 {
        let listener = listener(plain());
        Puppet::new(listener.local_addr().unwrap()).ask();
    }
}

#[test]
fn garbage_is_counted_and_nothing_else() {
    let listener = listener(quick());
    let (client, server) = (TpaStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap().0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
            let targets = [listener.local_addr().unwrap(), client_address(&client)];
            let mut rng = Rng::stream(1, Purpose::Test, 0);
            for count in 0.. {
                let length = rng.below(60) as usize;
                let bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
                let _ = stranger.send_to(&bytes, targets[count % 2]);
                if count % 100 == 0 {
                    std::thread::sleep(ms(1));
                }
                if done.load(Ordering::Relaxed) && count > 5000 {
                    return;
                }
            }
        });
        let (client, server) = (&client, &server);
        scope.spawn(move || (&*client).write_all(&noise(2, 1_000_000)).unwrap());
        let mut got = vec![0; 1_000_000];
        (&*server).read_exact(&mut got).unwrap();
        assert!(got == noise(2, 1_000_000));
        done.store(true, Ordering::Relaxed);
    });
    let counters = listener.counters();
    // 8 of 60 lengths are shorter than a tag. None of the others contains a known tag.
    assert!(counters.malformed > 200 && counters.strays > 1000, "{counters:?}");
}

fn client_address(stream: &TpaStream) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], stream.local_addr().unwrap().port()))
}

#[test]
fn a_peer_that_says_anything_breaks_nothing_but_its_own_connection() {
    let listener = listener(plain());
    for seed in 0..40 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let puppet = Puppet::new(listener.local_addr().unwrap()).open();
        let mut stream = listener.accept().unwrap().0;
        stream.set_nonblocking(true).unwrap();
        stream.write_all(&noise(seed, 5000)).unwrap();
        for _ in 0..500 {
            let near = |rng: &mut Rng, block: u16| (block + 4094 + rng.below(5) as u16) % 4096;
            let carries = rng.below(2) == 0;
            let segment = Segment {
                block: near(&mut rng, puppet.block),
                place: if carries { 1 << rng.below(12) } else { 0 },
                ack_block: near(&mut rng, puppet.other),
                ack_places: rng.below(4096) as u16,
                tx: rng.below(8) as u8,
                ack_tx: rng.below(8) as u8,
                window: rng.next_u64() as u8,
                congested: rng.below(2) == 0,
                last: rng.below(2) == 0,
                // Resets have a test of their own.
                flags: [Flags::NONE, Flags::ACK, Flags::FIN, Flags::SYN, Flags::ACK][rng.below(5) as usize],
                ..Segment::default()
            };
            let length = [1, 700, 1452, 1453][rng.below(4) as usize];
            puppet.say(segment, &noise(seed, length)[..if carries { length } else { 0 }]);
            let _ = stream.read(&mut [0; 3000]);
        }
        stream.abort();
    }
    still_works(&listener, plain());
}

#[test]
fn a_reset_counts_only_inside_the_window() {
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).open();
    let mut stream = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(ms(100))).unwrap();
    let reset =
        |block, ack_block| Segment { block, ack_block, flags: Flags::RST.with(Flags::ACK), ..Segment::default() };
    // All numbers are tried except the three that are valid: this block, the next block, and the
    // block that a reset answers.
    let mut tx = 0;
    for distance in 2..4096 {
        puppet.say(reset((puppet.block + distance) % 4096, (puppet.other + 1) % 4096), &[]);
        if distance % 100 == 0 || distance == 4095 {
            // The answer to this segment shows that all the others have been read and that the
            // connection is alive.
            tx += 1;
            puppet
                .say(Segment { block: puppet.block, place: 1, tx, congested: true, ..Segment::default() }, &[1; 1452]);
            let (answer, _) = puppet.hear().expect("an acknowledgement");
            assert_eq!((answer.flags, answer.ack_tx), (Flags::ACK, tx));
        }
    }
    stream.read_exact(&mut [0; 1452]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    puppet.say(reset(puppet.block, 0), &[]);
    stream.set_read_timeout(Some(ms(10_000))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn nothing_is_kept_of_a_request_without_a_cookie() {
    let listener = listener(plain());
    let mut puppet = Puppet::new(listener.local_addr().unwrap());
    // A client that does not receive the answers cannot connect, however often it sends a request.
    for _ in 0..50 {
        puppet.ask();
        puppet.opening.cookie = [7; 16];
    }
    // A cookie is of no use to another client that has read it.
    puppet.ask();
    let mut thief = Puppet::new(listener.local_addr().unwrap());
    (thief.opening.opener, thief.opening.cookie) = (puppet.opening.opener, puppet.opening.cookie);
    thief.ask();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let counters = listener.counters();
    assert_eq!(counters.challenges, 52, "{counters:?}");
    // An answer is not longer than its request.
    puppet.opening.cookie = Cookie::default();
    puppet.request();
    let mut buffer = [0; 2048];
    assert_eq!(puppet.socket.recv(&mut buffer).unwrap(), BYTES);
}

#[test]
fn a_forged_answer_opens_nothing() {
    // A server that does not know the tag.
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let forger = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let (length, client) = server.recv_from(&mut buffer).unwrap();
        let (request, _) = Opening::decode(&buffer[..length]).unwrap();
        let flags = Flags::SYN.with(Flags::ACK);
        let segment = Segment { ack_block: request.segment.block, window: 255, flags, ..Segment::default() };
        for kind in [Kind::Acceptance, Kind::Challenge, Kind::Refusal] {
            let forged = Opening { kind, opener: request.opener ^ 1, acceptor: 9, cookie: [1; 16], segment, ..request };
            server.send_to(&forged.encode(&[], 0), client).unwrap();
        }
        server.send_to(&handshake::stray(request.opener ^ 1), client).unwrap();
        server
    });
    let error = TpaStream::connect_timeout(&address, ms(500)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    drop(forger.join().unwrap());
}

#[test]
fn datagrams_of_connections_that_are_over_are_answered_with_their_tag() {
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap());
    puppet.say(Segment { block: 5, place: 1, ack_block: 9, flags: Flags::ACK, ..Segment::default() }, b"late");
    let mut buffer = [0; 2048];
    let length = puppet.socket.recv(&mut buffer).unwrap();
    assert_eq!(handshake::understand_stray(&buffer[..length]), Some(puppet.other_tag));
    // Such a datagram is never answered.
    puppet.socket.send(&handshake::stray(5)).unwrap();
    puppet.socket.set_read_timeout(Some(ms(200))).unwrap();
    assert!(puppet.socket.recv(&mut buffer).is_err());
    assert_eq!(listener.counters().strays, 1);
}

/// Sends a datagram with the right tag that neither acknowledges nor continues anything: all flags
/// and places are unset.
fn say_nothing(puppet: &Puppet, trains: bool) {
    let header = if trains { 38 } else { 12 };
    puppet.socket.send(&[&puppet.other_tag.to_be_bytes()[..], &vec![0; header]].concat()).unwrap();
}

#[test]
fn who_finishes_no_handshake_takes_no_place() {
    for trains in [None, Some(meshpace_transport::train::Config::default())] {
        let limits = Limits { connections: 2, ..Limits::default() };
        let connect_timeout = Duration::from_secs(10);
        let options = Options { limits, connect_timeout, trains, ..plain() };
        let listener = listener(options.clone());
        let _silent = [0, 1].map(|_| {
            let mut puppet = Puppet::new(listener.local_addr().unwrap());
            puppet.opening.trains = options.trains.is_some();
            let puppet = puppet.half_open();
            say_nothing(&puppet, options.trains.is_some());
            puppet
        });
        // The datagrams of the puppets came first. The tests run one after the other, because an
        // ended connection stays for a while.
        still_works(&listener, options);
        assert_eq!(listener.counters().crowded, 0);
    }
}

#[test]
fn who_finishes_no_handshake_keeps_no_port() {
    let listener = listener(plain());
    let address = listener.local_addr().unwrap();
    let puppet = Puppet::new(address).half_open();
    say_nothing(&puppet, false);
    // The answer shows that all earlier datagrams have been read.
    Puppet::new(address).ask();
    drop(listener);
    let bound = eventually(|| TpaPort::with_options(address, plain()).is_ok());
    assert!(bound, "the port is still in use");
}

/// True if the condition becomes true within 10 s.
fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    (0..500).any(|_| {
        let so = is_so();
        if !so {
            std::thread::sleep(ms(20));
        }
        so
    })
}

#[test]
fn who_asks_for_a_sign_of_life_before_the_handshake_is_finished_finishes_it() {
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).half_open();
    puppet.say(Segment { block: puppet.block, window: 255, flags: Flags::SYN, ..Segment::default() }, &[]);
    let stream = listener.accept().unwrap().0;
    assert!(stream.is_open().unwrap());
    // The peer receives the answer to its keep-alive.
    let mut buffer = [0; 2048];
    let length = puppet.socket.recv(&mut buffer).unwrap();
    assert_eq!((length, &buffer[..8]), (8 + 12, &puppet.opening.opener.to_be_bytes()[..]));
}

/// Repeats an unchanged request until it gets an answer that is not an acceptance with the tag
/// `but`.
fn insist(puppet: &Puppet, but: u64) -> Opening {
    puppet.socket.set_read_timeout(Some(ms(100))).unwrap();
    let ask = || {
        puppet.request();
        puppet.answer().filter(|answer| answer.acceptor != but || answer.kind != Kind::Acceptance)
    };
    (0..100).find_map(|_| ask()).expect("an answer")
}

#[test]
fn a_request_that_found_no_place_finds_one_later_with_the_same_cookie() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let listener = listener(Options { limits, ..plain() });
    let address = listener.local_addr().unwrap();
    let _first = Puppet::new(address).open();
    let first = listener.accept().unwrap().0;
    let mut second = Puppet::new(address);
    second.ask();
    second.request();
    assert!(eventually(|| listener.counters().crowded == 1));
    first.abort();
    // An honest client does not accept a second challenge with the cookie that it already has.
    assert_eq!(insist(&second, 0).kind, Kind::Acceptance);
    assert_eq!(listener.counters().challenges, 2);
}

#[test]
fn a_handshake_that_had_to_give_way_begins_again_with_the_same_cookie() {
    let limits = Limits { half_open: 1, ..Limits::default() };
    let mut options = Options { limits, ..plain() };
    // Acceptances are sent only as answers to requests.
    options.transport.rto.initial = Duration::from_secs(60);
    let listener = listener(options);
    let address = listener.local_addr().unwrap();
    let first = Puppet::new(address).half_open();
    let mut second = Puppet::new(address);
    second.ask();
    // Each has to wait until the other's handshake is one second old.
    assert_eq!(insist(&second, 0).kind, Kind::Acceptance);
    assert_eq!(insist(&first, first.other_tag).kind, Kind::Acceptance);
    assert_eq!(listener.counters().challenges, 2);
}

#[test]
fn replayed_packets_change_nothing() {
    let options = quick();
    let listener = listener(options.clone());
    let all = || Impairment { duplicate: 1.0, ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), all(), all(), true).unwrap();
    let client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(3, 100_000), &noise(4, 100_000));
    // The whole conversation is repeated from another address. No connection opens, and nothing is
    // delivered.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for passed in relay.take_record().iter().filter(|passed| passed.from == 0) {
        stranger.send_to(&passed.bytes, listener.local_addr().unwrap()).unwrap();
    }
    listener.set_timeout(Some(ms(300))).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_timeout(Some(ms(20_000))).unwrap();
    still_works(&listener, quick());
}

#[test]
fn a_narrow_path() {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    let link = Link::new(Impairment::default(), Impairment::default(), 600, false).unwrap();
    let to = SocketAddr::from((ADDRESSES[1], 5000));
    let listener = link.sides[1].run(|| TpaPort::with_options(to, quick()).unwrap().listen(4).unwrap());
    // Segments are made to fit if this is allowed. Otherwise the error names the segment size that
    // would fit.
    let (client, server) = link.sides[0].run(|| {
        let port = TpaPort::with_options("0.0.0.0:0", Options { fit_mtu: false, ..quick() }).unwrap();
        let error = port.connect(to).unwrap_err();
        assert!(error.to_string().contains("1460 bytes need an MTU of 1532"), "{error}");
        assert!(error.to_string().contains("has 600"), "{error}");
        let client = TpaPort::with_options("0.0.0.0:0", quick()).unwrap().connect(to).unwrap();
        (client, listener.accept().unwrap().0)
    });
    exchange(client, server, &noise(5, 100_000), &noise(6, 100_000));
    // The path's MTU becomes smaller while the connection is open.
    let mut client = link.sides[0].run(|| {
        let client = TpaPort::with_options("0.0.0.0:0", quick()).unwrap().connect(to).unwrap();
        meshpace_live::tun::ip(&["link", "set", "lossy", "mtu", "500"]).unwrap();
        client
    });
    let error = loop {
        if let Err(error) = client.write(&[0; 10_000]) {
            break error;
        }
    };
    assert!(error.to_string().contains("segments of 528 bytes need an MTU of 600"), "{error}");
    assert!(error.to_string().contains("has 500"), "{error}");
}

#[test]
fn opening_bytes_of_any_kind_decode_to_nothing_or_to_themselves() {
    let mut decoded = 0;
    for seed in 0..50_000 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let length = if rng.below(4) == 0 { rng.below(80) as usize } else { 62 };
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        // Half of them begin with a valid header.
        if rng.below(2) == 0 && length == 62 {
            bytes[..8].fill(0);
            // The protection is in the lower half, the cipher and quiet trains are in the upper
            // half.
            let protection = (rng.below(16) << 4 | rng.below(5)) as u8;
            (bytes[8], bytes[9], bytes[10]) = (3, rng.below(6) as u8, protection);
            // TPA's header has no place, and its unused bits are zero.
            bytes[49] &= 0xf0;
            (bytes[50], bytes[56], bytes[57], bytes[59], bytes[60], bytes[61]) = (0, 0, 0, bytes[59] & !3, 0, 0);
        }
        if let Some((opening, noise)) = Opening::decode(&bytes) {
            decoded += 1;
            assert_eq!(opening.encode(noise, 0)[..], bytes[..62 + noise.len()]);
            let _ = opening.terms.apply(&tpa::Config::default());
        }
    }
    assert!(decoded > 1000, "{decoded}");
}

#[test]
fn pairs_survive_each_other() {
    let (a, b) = pair(quick());
    let (c, d) = pair(quick());
    a.abort();
    exchange(c, d, &noise(7, 50_000), &noise(8, 50_000));
    let mut b = b;
    assert_eq!(b.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
