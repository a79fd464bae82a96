//! Tests TPA over UDP against an attacker who knows both addresses and ports. The attacker cannot
//! read the packets, or can read them but has no keys.
//!
//! The attacker sends from the socket that the peer uses. It does not know the tag, or the keys.
#![expect(clippy::disallowed_methods, reason = "time-outs are measured against the clock")]

use crate::common::{exchange, listener, ms, noise, quick};
use crate::puppet::{Puppet, plain};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng};
use meshpace_live::testbed::{Impairment, Relay};
use meshpace_live::tpa::handshake::{self, Cookie, Kind, Opening};
use meshpace_live::tpa::{Options, PathSource, Runtime, Security, TpaListener, TpaPort, TpaStream, keys};
use meshpace_testing::{Class, skipped};
use meshpace_transport::PathInfo;
use meshpace_transport::tpa::{Flags, Segment, wire};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A datagram of any kind with a tag that is not `right`.
fn forged(rng: &mut Rng, right: u64) -> Vec<u8> {
    let tag = loop {
        // Half of the tags differ from the right one in one bit. A tag that is almost right must be
        // rejected like any other.
        let tag = if rng.below(2) == 0 { rng.next_u64() } else { right ^ 1 << rng.below(64) };
        if tag != right && tag != 0 {
            break tag;
        }
    };
    let flags = [Flags::NONE, Flags::ACK, Flags::FIN, Flags::SYN, Flags::RST, Flags::RST.with(Flags::ACK)];
    let flags = flags[rng.below(6) as usize];
    let carries = rng.below(2) == 0;
    let segment = Segment {
        block: rng.below(4096) as u16,
        place: if carries || flags == Flags::FIN { 1 } else { 0 },
        ack_block: rng.below(4096) as u16,
        ack_places: 0xfff,
        tx: rng.next_u64() as u8,
        ack_tx: rng.next_u64() as u8,
        window: rng.next_u64() as u8,
        last: rng.below(2) == 0,
        flags,
        ..Segment::default()
    };
    let flags = [Flags::SYN, Flags::SYN.with(Flags::ACK)][rng.below(2) as usize];
    let opening = |rng: &mut Rng, kind| {
        let cookie: Cookie = std::array::from_fn(|_| rng.next_u64() as u8);
        let segment = Segment { flags, place: 0, ..segment };
        let opening = Puppet::new("127.0.0.1:9".parse().unwrap()).opening;
        Opening { kind, opener: tag, acceptor: rng.next_u64(), cookie, segment, ..opening }.encode(&[], 0)
    };
    match rng.below(8) {
        0 => handshake::stray(tag).to_vec(),
        1 if rng.below(50) == 0 => {
            let kind = [Kind::Challenge, Kind::Acceptance, Kind::Refusal][rng.below(3) as usize];
            opening(rng, kind)
        }
        _ => {
            let payload: &[u8] = if carries { &[0x66; 1452] } else { &[] };
            [&tag.to_be_bytes()[..], &wire::encode_inside_udp(&segment), payload].concat()
        }
    }
}

/// Number of forged datagrams that a test sends: ten million in the slow run.
fn many() -> usize {
    let usual = if std::env::var("MESHPACE_SLOW").is_ok_and(|value| value == "1") { 10_000_000 } else { 100_000 };
    std::env::var("MESHPACE_FORGED").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[test]
fn findings_1_2_8_forged_data_fin_reset_and_acks_change_nothing_without_the_tag() {
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).open();
    puppet.socket.set_read_timeout(Some(ms(100))).unwrap();
    // The buffer has room for the answers to forged datagrams, so that the expected answer fits
    // too.
    nix::sys::socket::setsockopt(&puppet.socket, nix::sys::socket::sockopt::RcvBuf, &(1 << 20)).unwrap();
    let mut stream = listener.accept().unwrap().0;
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    let parts = 20;
    for part in 0..parts {
        for count in 0..many() / parts {
            puppet.socket.send(&forged(&mut rng, puppet.other_tag)).unwrap();
            // Datagrams are sent only as fast as they are read, because lost ones attack nothing.
            // The probe may be lost too, so it is repeated.
            if count % 400 == 399 {
                let ask = || {
                    puppet.say(Segment { window: 255, flags: Flags::SYN, ..Segment::default() }, &[]);
                    std::iter::from_fn(|| puppet.hear_any()).any(|segment| segment.is_some())
                };
                while !ask() {}
            }
        }
        // Between them, one segment of the stream is sent, the last of its block.
        let (block, payload) = ((puppet.block + part as u16) % 4096, noise(part as u64, 1452));
        puppet.say(Segment { block, place: 1, tx: 1, last: true, ..Segment::default() }, &payload);
        let mut got = vec![0; 1452];
        stream.read_exact(&mut got).unwrap();
        assert!(got == payload, "part {part}");
    }
    assert!(stream.is_open().unwrap());
    let counters = listener.counters();
    assert!(counters.strays as usize > many() / 2, "{counters:?}");
    assert_eq!(counters.forged, 0, "{counters:?}");
}

/// A relay to `server` that changes nothing. Returns the address to connect to, a socket with the
/// client's address as the server sees it, and the server's tag once it has been seen.
fn tapped(server: SocketAddr) -> (SocketAddr, UdpSocket, Arc<AtomicU64>) {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    back.connect(server).unwrap();
    let (address, tag) = (front.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let (forger, noted) = (back.try_clone().unwrap(), Arc::clone(&tag));
    std::thread::spawn(move || {
        front.set_read_timeout(Some(ms(20_000))).unwrap();
        let mut returns = false;
        let mut buffer = [0; 2048];
        while let Ok((length, client)) = front.recv_from(&mut buffer) {
            noted.fetch_max(u64::from_be_bytes(buffer[..8].try_into().unwrap()), Ordering::Relaxed);
            let _ = back.send(&buffer[..length]);
            if !std::mem::replace(&mut returns, true) {
                let (front, back) = (front.try_clone().unwrap(), back.try_clone().unwrap());
                std::thread::spawn(move || {
                    back.set_read_timeout(Some(ms(20_000))).unwrap();
                    let mut buffer = [0; 2048];
                    while let Ok(length) = back.recv(&mut buffer) {
                        let _ = front.send_to(&buffer[..length], client);
                    }
                });
            }
        }
    });
    (address, forger, tag)
}

#[test]
fn findings_1_2_8_forged_datagrams_change_nothing_where_it_is_encrypted_even_with_the_tag() {
    let mut options = quick();
    options.transport.ack_delay = Duration::from_millis(1);
    let listener = listener(options.clone());
    let (address, forger, tag) = tapped(listener.local_addr().unwrap());
    let mut client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(address).unwrap();
    let mut server = listener.accept().unwrap().0;
    let mut rng = Rng::stream(2, Purpose::Test, 0);
    for count in 0..many() {
        if count % 400 == 0 {
            // Datagrams are sent only as fast as they are read, because lost ones attack nothing.
            let piece = (count / 400).to_be_bytes();
            client.write_all(&piece).unwrap();
            let mut got = [0; 8];
            server.read_exact(&mut got).unwrap();
            assert_eq!(got, piece);
        }
        // Nine of ten are from an attacker who cannot read the packets, one is from an attacker who
        // can.
        let right = tag.load(Ordering::Relaxed);
        let mut datagram = forged(&mut rng, right);
        if count % 10 == 0 {
            datagram.resize(8 + rng.below(200) as usize, rng.next_u64() as u8);
            datagram[..8].copy_from_slice(&right.to_be_bytes());
        }
        forger.send(&datagram).unwrap();
    }
    exchange(client, server, &noise(5, 10_000), &noise(6, 10_000));
    let counters = listener.counters();
    assert!((counters.strays + counters.malformed) as usize > many() / 2, "{counters:?}");
    assert!(counters.forged as usize > many() / 20, "{counters:?}");
}

#[test]
fn finding_1_a_block_is_never_begun_before_the_one_before_is_complete() {
    // The tag is right here. The rest of block N must not count as received because block N + 1 has
    // arrived.
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).open();
    let mut stream = listener.accept().unwrap().0;
    let next = (puppet.block + 1) % 4096;
    puppet.say(Segment { block: puppet.block, place: 1, tx: 1, ..Segment::default() }, &noise(1, 1452));
    puppet.say(Segment { block: next, place: 1, tx: 1, last: true, ..Segment::default() }, &[0x66; 1452]);
    puppet.say(Segment { block: next, place: 1, tx: 1, last: true, flags: Flags::FIN, ..Segment::default() }, &[]);
    puppet.say(Segment { block: puppet.block, place: 2, tx: 2, last: true, ..Segment::default() }, &noise(2, 1452));
    let mut got = vec![0; 2904];
    stream.read_exact(&mut got).unwrap();
    assert!(got == [noise(1, 1452), noise(2, 1452)].concat());
    stream.set_read_timeout(Some(ms(100))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn encrypted_datagrams_are_not_forged_changed_or_taken_twice() {
    // An attacker on the path sees everything and replays it. Copies with a changed bit precede the
    // originals.
    let listener = listener(quick());
    let (client, there) = attacked(listener.local_addr().unwrap());
    exchange(client, listener.accept().unwrap().0, &noise(3, 200_000), &noise(4, 100_000));
    let counters = listener.counters();
    assert!(counters.forged > 100, "{counters:?}");
    drop(there);
}

/// A client whose datagrams an attacker on the path sends twice, preceded by a copy with a changed
/// bit.
fn attacked(server: SocketAddr) -> (TpaStream, std::thread::JoinHandle<()>) {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let relay = std::thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        let (toward, front_too) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(ms(20_000))).unwrap();
        }
        let (tell, client) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let Ok(client) = client.recv() else { return };
            let mut buffer = [0; 2048];
            while let Ok(length) = back.recv(&mut buffer) {
                let _ = front_too.send_to(&buffer[..length], client);
            }
        });
        let (mut rng, mut told) = (Rng::stream(5, Purpose::Test, 0), false);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok((length, client)) = front.recv_from(&mut buffer) {
            if !std::mem::replace(&mut told, true) {
                let _ = tell.send(client);
            }
            let datagram = buffer[..length].to_vec();
            let mut changed = datagram.clone();
            let bit = rng.below(length as u64 * 8) as usize;
            changed[bit / 8] ^= 1 << (bit % 8);
            let again = seen.get(rng.below(seen.len().max(1) as u64) as usize);
            // Requests are not changed, because a changed request is refused.
            let opening = datagram[..8] == [0; 8];
            for sent in [(!opening).then_some(&changed), Some(&datagram), Some(&datagram), again].into_iter().flatten()
            {
                let _ = toward.send(sent);
            }
            seen.push(datagram);
        }
    });
    let client = TpaPort::with_options("127.0.0.1:0", quick()).unwrap().connect(address).unwrap();
    (client, relay)
}

#[test]
fn finding_3_icmp_counts_only_if_it_quotes_the_connection() {
    // A port-unreachable message about another connection. That peer's port is closed, but the peer
    // of this connection is alive.
    let options = quick();
    let listener = listener(options.clone());
    let port = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    let client = port.connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    for _ in 0..5 {
        // The kernel reports these errors at the same socket.
        let error = port.connect(crate::common::nowhere()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    }
    exchange(client, server, &noise(1, 20_000), &noise(2, 20_000));
}

#[test]
fn finding_6_a_peer_that_vanished_is_noticed() {
    let mut options = plain();
    (options.keep_alive, options.silence_timeout) = (Some(Duration::from_millis(300)), Duration::from_millis(900));
    let listener = listener(options);
    let mut puppet = Puppet::new(listener.local_addr().unwrap()).open();
    let mut stream = listener.accept().unwrap().0;
    let start = Instant::now();
    // The peer answers two probes and no further ones.
    puppet.socket.set_read_timeout(Some(ms(20_000))).unwrap();
    for _ in 0..2 {
        let (probe, _) = puppet.hear().expect("a probe");
        assert_eq!(probe.flags, Flags::SYN);
        puppet.say(Segment { ack_block: puppet.other, window: 255, flags: Flags::ACK, ..Segment::default() }, &[]);
    }
    puppet.block = 0;
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(start.elapsed() >= ms(1200), "{:?}", start.elapsed());
}

#[test]
fn a_connection_without_data_is_ended_when_that_is_asked_for() {
    let mut options = quick();
    options.idle_timeout = Some(Duration::from_millis(300));
    let listener = listener(options);
    let client =
        TpaPort::with_options("127.0.0.1:0", quick()).unwrap().connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let error = server.read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("no data from or to"), "{error}");
    drop(client);
}

#[test]
fn finding_7_a_conversation_that_is_played_again_is_no_second_transfer() {
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).open();
    let ack = Segment { ack_block: puppet.other, window: 255, flags: Flags::ACK, ..Segment::default() };
    let data = Segment { block: puppet.block, place: 1, tx: 1, last: true, ..Segment::default() };
    let next = (puppet.block + 1) % 4096;
    let fin = Segment { block: next, place: 1, tx: 1, last: true, flags: Flags::FIN, ..Segment::default() };
    let request = puppet.opening.encode(&[], 0);
    let said = [request, puppet.datagram(ack, &[]), puppet.datagram(data, &noise(1, 1452)), puppet.datagram(fin, &[])];
    puppet.say(data, &noise(1, 1452));
    puppet.say(fin, &[]);
    let mut stream = listener.accept().unwrap().0;
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == noise(1, 1452));
    stream.abort();
    drop(stream);
    // The same packets from the same address and port, at once and twice.
    for datagram in said.iter().chain(&said) {
        puppet.socket.send(datagram).unwrap();
    }
    listener.set_timeout(Some(ms(500))).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Path source that panics when it is asked for the second time.
#[derive(Debug, Default)]
struct Faulty(std::sync::atomic::AtomicU32);

impl PathSource for Faulty {
    fn path(&self, _: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 1, "as planned");
        None
    }
}

#[test]
fn finding_12_a_fault_of_the_runtime_reaches_everybody_who_waits() {
    let runtime = Runtime::start().unwrap();
    let listener = TpaPort::on(&runtime, "127.0.0.1:0", quick()).unwrap().listen(4).unwrap();
    let options = Options { path: Some(Arc::new(Faulty::default())), ..quick() };
    let port = TpaPort::on(&runtime, "127.0.0.1:0", options).unwrap();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            loop {
                if let Err(error) = listener.accept() {
                    return error;
                }
            }
        });
        // The path is requested when a connection opens, and again a second later at the latest.
        if let Ok(mut stream) = port.connect(listener.local_addr().unwrap()) {
            stream.set_read_timeout(Some(ms(10_000))).unwrap();
            let error = stream.read(&mut [0]).unwrap_err();
            assert!(error.to_string().contains("panicked"), "{error}");
        }
        let error = accepting.join().unwrap();
        assert!(error.to_string().contains("panicked"), "{error}");
    });
    assert!(port.connect(listener.local_addr().unwrap()).is_err());
    assert!(TpaPort::on(&runtime, "127.0.0.1:0", quick()).is_err());
}

#[test]
fn finding_12_a_port_can_be_bound_again_at_once() {
    let listener = listener(quick());
    let address = listener.local_addr().unwrap();
    for _ in 0..3 {
        let port = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
        let local = port.local_addr().unwrap();
        let client = port.connect(address).unwrap();
        drop(port);
        let (mut server, _) = listener.accept().unwrap();
        let closing = std::thread::spawn(move || {
            let _ = server.read_to_end(&mut Vec::new());
            server.close()
        });
        client.close().unwrap();
        closing.join().unwrap().unwrap();
        let start = Instant::now();
        while let Err(error) = TpaPort::with_options(local, quick()) {
            assert!(start.elapsed() < ms(3000), "{error}");
            std::thread::sleep(ms(5));
        }
    }
}

#[test]
fn finding_12_the_first_request_is_repeated_after_a_second_and_tiny_segments_are_refused() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(ms(10_000))).unwrap();
    let port = TpaPort::bind("127.0.0.1:0").unwrap();
    let client = port.connect_nonblocking(silent.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 2048];
    silent.recv(&mut buffer).unwrap();
    let start = Instant::now();
    silent.recv(&mut buffer).unwrap();
    // An earlier version took three seconds. On a busy machine a timer is late.
    assert!(start.elapsed() < ms(2500), "{:?}", start.elapsed());
    drop(client);
    let listener = listener(plain());
    let mut puppet = Puppet::new(listener.local_addr().unwrap());
    puppet.ask();
    puppet.opening.terms.segment = 1;
    puppet.request();
    puppet.socket.set_read_timeout(Some(ms(300))).unwrap();
    assert!(puppet.answer().is_none());
    assert_eq!(listener.counters().malformed, 1);
}

#[test]
fn over_ipv6() {
    let Ok(port) = TpaPort::with_options("[::1]:0", quick()) else {
        skipped(Class::Rights, "no IPv6 on this machine");
        return;
    };
    let listener = port.listen(4).unwrap();
    let client = TpaPort::with_options("[::]:0", quick()).unwrap().connect(listener.local_addr().unwrap()).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(1, 100_000), &noise(2, 50_000));
    // A listener of all addresses answers from the address to which the request was sent.
    let all = TpaPort::with_options("[::]:0", quick()).unwrap().listen(4).unwrap();
    let to = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, all.local_addr().unwrap().port()));
    let client = TpaStream::connect(to).unwrap();
    exchange(client, all.accept().unwrap().0, b"there", b"back");
}

fn connect(of: Security, to: &TpaListener) -> std::io::Result<TpaStream> {
    // With keys, a refusal does not end the attempt.
    let options = Options { security: of, connect_timeout: meshpace_core::Duration::from_secs(3), ..quick() };
    TpaPort::with_options("127.0.0.1:0", options)?.connect(to.local_addr()?)
}

#[test]
fn only_who_has_the_keys_gets_in_and_others_are_told() {
    let [(a, of_a), (b, of_b), (c, of_c)] = [(); 3].map(|()| keys::generate().unwrap());
    let known = |own, peer| Security::Keys { own, peers: vec![peer] };
    let with = |security| listener(Options { security, ..quick() });
    let secret = with(Security::Shared([7; 32]));
    let keys = with(known(b, of_a));
    let cases = [
        (connect(Security::Shared([8; 32]), &secret), "the keys do not fit"),
        (connect(known(c, of_b), &keys), "it does not admit this end's key"),
        (connect(known(a, of_c), &keys), "the keys do not fit"),
        (connect(Security::Opportunistic, &keys), "it wants encryption with known keys, this end encryption without"),
        (connect(Security::Plain, &secret), "it wants encryption with a shared secret, this end no encryption"),
    ];
    for (refused, why) in cases {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    for (security, listener) in [(Security::Shared([7; 32]), secret), (known(a, of_b), keys)] {
        let client = connect(security, &listener).unwrap();
        exchange(client, listener.accept().unwrap().0, &noise(1, 30_000), b"in");
    }
}

#[test]
fn a_path_that_swallows_large_datagrams_gets_smaller_segments() {
    // Without any report, packets longer than 1000 bytes are dropped in both directions.
    let listener = listener(quick());
    let server = listener.local_addr().unwrap();
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let (there, back) = (front.try_clone().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    back.connect(server).unwrap();
    let toward = back.try_clone().unwrap();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(ms(10_000))).unwrap();
    }
    let (tell, client) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut buffer, mut told) = ([0; 2048], false);
        while let Ok((length, client)) = there.recv_from(&mut buffer) {
            if !std::mem::replace(&mut told, true) {
                let _ = tell.send(client);
            }
            if length <= 1000 {
                let _ = toward.send(&buffer[..length]);
            }
        }
    });
    std::thread::spawn(move || {
        let Ok(client) = client.recv() else { return };
        let mut buffer = [0; 2048];
        while let Ok(length) = back.recv(&mut buffer) {
            if length <= 1000 {
                let _ = front.send_to(&buffer[..length], client);
            }
        }
    });
    let client = TpaPort::with_options("127.0.0.1:0", quick()).unwrap().connect(address).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(1, 30_000), &noise(2, 30_000));
}

#[test]
fn a_relay_may_lose_the_first_words_of_either_side() {
    let options = quick();
    let listener = listener(options.clone());
    let lose = |indices: &[u64]| Impairment {
        loss: meshpace_live::testbed::Loss::Indices(indices.iter().copied().collect()),
        ..Impairment::default()
    };
    // The ACK that ends the handshake is lost, and the listener sends data first.
    let relay = Relay::new(listener.local_addr().unwrap(), lose(&[2]), lose(&[]), false).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    let mut server = listener.accept().unwrap().0;
    server.write_all(b"hello").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
}
