//! Tests that TPA streams on the loopback behave as `std::net` promises for its own streams.
#![expect(clippy::disallowed_methods, reason = "timeouts are measured against the clock")]

use crate::common::{exchange, listener, ms, noise, nowhere, pair, quick};
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::{Options, PathSource, Runtime, TpaListener, TpaPort, TpaStream};
use meshpace_transport::PathInfo;
use meshpace_transport::tpa::ack::Rule;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

#[test]
fn bytes_arrive_in_both_directions() {
    let (client, server) = pair(Options::default());
    exchange(client, server, &noise(1, 3_000_000), &noise(2, 1_000_001));
}

#[test]
fn every_named_tpa_carries_data() {
    for name in ["tpa-2", "tpa-3", "tpa*-2", "tpa*-3", "tpa-ap-3", "tpa*-ap-3"] {
        let Ok(options) = Options::named(name) else { panic!("{name}") };
        let (client, server) = pair(options);
        exchange(client, server, &noise(3, 200_000), b"short");
    }
    assert_eq!(Options::named("newreno").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_link_that_loses_reorders_and_doubles_changes_nothing() {
    let options = quick();
    let listener = listener(options.clone());
    let bad = |seed| Impairment {
        delay: meshpace_core::Duration::from_millis(2),
        loss: Loss::Random(0.05),
        duplicate: 0.05,
        reorder: 0.05,
        seed,
        ..Impairment::default()
    };
    let relay = Relay::new(listener.local_addr().unwrap(), bad(1), bad(2), false).unwrap();
    let client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    let server = listener.accept().unwrap().0;
    exchange(client, server, &noise(4, 500_000), &noise(5, 300_000));
}

#[test]
fn many_connections_share_two_ports() {
    let listener = listener(Options::default());
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        for i in 0..20 {
            scope.spawn(move || {
                let mut stream = TpaStream::connect(address).unwrap();
                stream.write_all(&noise(i, 20_000)).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                assert!(got == noise(i, 20_000), "client {i}");
                stream.close().unwrap();
            });
        }
        for stream in listener.incoming().take(20) {
            scope.spawn(move || {
                let mut stream = stream.unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                stream.write_all(&got).unwrap();
                stream.close().unwrap();
            });
        }
    });
    // One port can open connections to several listeners.
    let port = TpaPort::bind("127.0.0.1:0").unwrap();
    let others = [crate::common::listener(Options::default()), crate::common::listener(Options::default())];
    let streams = others.each_ref().map(|other| port.connect(other.local_addr().unwrap()).unwrap());
    assert_eq!(streams[0].local_addr().unwrap(), streams[1].local_addr().unwrap());
    // One port can open several connections to one listener: their tags distinguish them.
    let mut again = port.connect(others[0].local_addr().unwrap()).unwrap();
    let (first, second) = (others[0].accept().unwrap().0, others[0].accept().unwrap().0);
    assert_eq!(first.peer_addr().unwrap(), second.peer_addr().unwrap());
    (&second).write_all(b"for the second").unwrap();
    let mut got = [0; 14];
    again.read_exact(&mut got).unwrap();
    assert_eq!(got, *b"for the second");
}

/// Options with which a block that is not full waits longer than any test.
fn waiting_to_fill() -> Options {
    let mut options = Options::default();
    options.transport.waits_to_fill = true;
    options.transport.fill_timeout = meshpace_core::Duration::from_secs(3600);
    options
}

#[test]
fn questions_and_answers_do_not_wait_for_a_block_to_fill() {
    let mut options = waiting_to_fill();
    options.transport.waits_to_fill = Options::default().transport.waits_to_fill;
    let (mut client, mut server) = pair(options);
    [&client, &server].iter().for_each(|end| end.set_read_timeout(Some(ms(20_000))).unwrap());
    let mut got = [0; 16];
    for _ in 0..100 {
        client.write_all(b"question").unwrap();
        client.write_all(b", in two").unwrap();
        server.read_exact(&mut got).unwrap();
        server.write_all(&got).unwrap();
        client.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"question, in two");
    }
}

#[test]
fn who_waits_to_fill_a_block_can_flush_or_stop_waiting() {
    let (client, server) = pair(waiting_to_fill());
    assert!(!client.nodelay().unwrap() && !server.nodelay().unwrap());
    let arrives = |text: &str, patience: u64| {
        server.set_read_timeout(Some(ms(patience))).unwrap();
        let mut got = vec![0; text.len()];
        let read = (&server).read_exact(&mut got).map(|()| got);
        read.is_ok_and(|got| got == text.as_bytes())
    };
    (&client).write_all(b"flushed").unwrap();
    assert!(!arrives("flushed", 50), "it did not wait");
    client.flush().unwrap();
    assert!(arrives("flushed", 20_000));
    // The method of the trait has the same effect.
    (&client).write_all(b"again").unwrap();
    Write::flush(&mut &client).unwrap();
    assert!(arrives("again", 20_000));
    (&client).write_all(b"waited").unwrap();
    client.set_nodelay(true).unwrap();
    assert!(arrives("waited", 20_000) && client.nodelay().unwrap());
    (&client).write_all(b"at once").unwrap();
    assert!(arrives("at once", 20_000));
}

#[test]
fn the_end_of_the_stream_is_told_once_everything_is_read() {
    let (mut client, mut server) = pair(Options::default());
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).unwrap();
    assert_eq!(text, "last words");
    assert_eq!(client.write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    // Half closed: the other direction still works.
    server.write_all(b"answer").unwrap();
    server.close().unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
}

#[test]
fn a_peer_that_does_not_read_stops_the_writer_and_not_for_ever() {
    let (mut client, mut server) = pair(Options::default());
    client.set_write_timeout(Some(ms(300))).unwrap();
    let sent = noise(6, 2_000_000);
    let mut written = 0;
    let error = loop {
        match client.write(&sent[written..]) {
            Ok(length) => written += length,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    // The limit is two rings and a block.
    assert!(written < 600_000, "{written} bytes were taken");
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        got
    });
    client.set_write_timeout(None).unwrap();
    client.write_all(&sent[written..]).unwrap();
    client.close().unwrap();
    assert!(reader.join().unwrap() == sent);
}

#[test]
fn closing_waits_until_all_has_arrived_and_says_whether_it_has() {
    // This is more than the reader's end accepts before it reads. A part stays here as long as
    // nobody reads.
    let sent = noise(10, 300_000);
    let stuck = || {
        let (client, server) = pair(Options::default());
        client.set_nonblocking(true).unwrap();
        let mut written = 0;
        while written < sent.len() {
            match (&client).write(&sent[written..]) {
                Ok(length) => written += length,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        client.set_nonblocking(false).unwrap();
        (client, server)
    };
    let (client, _server) = stuck();
    client.set_linger(ms(300)).unwrap();
    let start = Instant::now();
    let error = client.close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(start.elapsed() >= ms(300));
    // Dropping the stream waits for the same time.
    let (client, _server) = stuck();
    client.set_linger(ms(300)).unwrap();
    let start = Instant::now();
    drop(client);
    assert!(start.elapsed() >= ms(300));
    // With a reader, closing waits for the reader.
    let (client, mut server) = stuck();
    let reader = std::thread::spawn(move || {
        std::thread::sleep(ms(200));
        let mut got = vec![0; 300_000];
        server.read_exact(&mut got).unwrap();
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        got
    });
    client.set_linger(ms(60_000)).unwrap();
    client.close().unwrap();
    // Data that has not been read has at least arrived: the reader receives all of it.
    assert!(reader.join().unwrap() == sent);
}

#[test]
fn a_reader_that_is_late_has_nothing_repeated() {
    let mut options = quick();
    options.transport.segment = 1000;
    options.transport.congestion.window = 12;
    options.transport.ack = Rule::EveryWindow;
    // The buffer has room for five blocks and a half. The last segments of the sixth block would
    // not fit.
    options.receive_buffer = 5 * 12_000 + 6_000;
    options.transport.rto.margin = meshpace_core::Duration::from_secs(20);
    let (client, mut server) = pair(options);
    let writer = std::thread::spawn(move || {
        let mut client = client;
        client.write_all(&[7; 240_000]).unwrap();
        while client.unacknowledged() > 0 {
            std::thread::sleep(ms(5));
        }
        client.stats()
    });
    let mut got = 0;
    while got < 240_000 {
        std::thread::sleep(ms(100));
        let mut piece = vec![0; 60_000];
        got += server.read(&mut piece).unwrap();
    }
    let stats = writer.join().unwrap();
    assert_eq!((stats.retransmissions, stats.timeouts), (0, 0), "{stats:?}");
}

#[test]
fn timeouts_and_non_blocking() {
    let (mut client, server) = pair(Options::default());
    client.set_read_timeout(Some(ms(50))).unwrap();
    let start = Instant::now();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(start.elapsed() >= ms(50));
    assert_eq!(client.set_read_timeout(Some(ms(0))).unwrap_err().kind(), ErrorKind::InvalidInput);
    client.set_nonblocking(true).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let listener = crate::common::listener(Options::default());
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(server);
}

#[test]
fn errors_say_what_happened() {
    let refused = TpaStream::connect(nowhere()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    // A port that uses TPA and does not listen.
    let port = TpaPort::bind("127.0.0.1:0").unwrap();
    let refused = TpaStream::connect(port.local_addr().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused}");
    let taken = TpaListener::bind(port.local_addr().unwrap()).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse, "{taken}");
    assert!(taken.to_string().contains("127.0.0.1"), "{taken}");
    let other = port.connect("[::1]:9").unwrap_err();
    assert!(other.to_string().starts_with("no IPv4 address"), "{other}");
    assert_eq!(TpaStream::connect("127.0.0.1:0").unwrap_err().kind(), ErrorKind::InvalidInput);
    // A socket that never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let start = Instant::now();
    let late = TpaStream::connect_timeout(&silent.local_addr().unwrap(), ms(200)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut, "{late}");
    assert!(start.elapsed() < ms(2000));
}

#[test]
fn whoever_closes_without_reading_resets() {
    let (mut client, server) = pair(Options::default());
    client.write_all(&noise(7, 10_000)).unwrap();
    // Wait until it has arrived.
    while client.unacknowledged() > 0 {
        std::thread::yield_now();
    }
    drop(server);
    let mut byte = [0];
    let error = client.read(&mut byte).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn a_dropped_listener_resets_what_nobody_accepted() {
    // In some rounds the listener has already learned that its acceptance arrived, in others it has
    // not.
    for _ in 0..20 {
        let listener = listener(Options::default());
        let mut client = TpaStream::connect(listener.local_addr().unwrap()).unwrap();
        drop(listener);
        let error = client.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    let mut options = quick();
    options.silence_timeout = meshpace_core::Duration::from_millis(700);
    let listener = listener(options.clone());
    // The link drops all packets after the first 30.
    let cut = || Impairment { loss: Loss::Indices((30..1_000_000).collect()), ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), cut(), cut(), false).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    let _server = listener.accept().unwrap().0;
    let start = Instant::now();
    let error = loop {
        if let Err(error) = client.write(&[0; 10_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(start.elapsed() < ms(3000));
    assert!(error.to_string().starts_with("no answer from 127.0.0.1"), "{error}");
}

#[test]
fn a_peer_whose_process_ends_is_noticed() {
    // A plain socket answers the handshake and is then closed. The kernel reports an unreachable
    // port.
    let options = quick();
    let listener = listener(options.clone());
    let relay =
        Relay::new(listener.local_addr().unwrap(), Impairment::default(), Impairment::default(), false).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    drop(relay);
    let error = loop {
        if let Err(error) = client.write(&[0; 10_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}

#[test]
fn connecting_without_waiting() {
    let listener = listener(Options::default());
    let port = TpaPort::bind("127.0.0.1:0").unwrap();
    // The link has a delay of 50 ms in each direction, so nothing is open yet when the call
    // returns.
    let delay = || Impairment { delay: meshpace_core::Duration::from_millis(50), ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), delay(), delay(), false).unwrap();
    let mut client = port.connect_nonblocking(relay.address()).unwrap();
    assert!(!client.is_open().unwrap());
    assert_eq!(client.write(b"early").unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(client.shutdown(Shutdown::Both).unwrap_err().kind(), ErrorKind::NotConnected);
    while !client.is_open().unwrap() {
        std::thread::yield_now();
    }
    client.set_nonblocking(false).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(8, 20_000), b"back");
    // The first call of any kind returns the reason.
    let mut refused = port.connect_nonblocking(nowhere()).unwrap();
    let error = loop {
        match refused.write(b"?") {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            other => break other.unwrap_err(),
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    assert_eq!(refused.is_open().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    // A stream that is dropped while it opens is forgotten. The same port may connect to the same
    // address again.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let start = Instant::now();
    drop(port.connect_nonblocking(silent.local_addr().unwrap()).unwrap());
    let again = port.connect_nonblocking(silent.local_addr().unwrap()).unwrap();
    std::thread::sleep(ms(50));
    assert!(!again.is_open().unwrap(), "no error");
    drop(again);
    assert!(start.elapsed() < ms(5000));
}

/// Path source that blocks its caller at the fourth call, as if the process had been stopped.
#[derive(Debug, Default)]
struct Absent(AtomicU32);

impl PathSource for Absent {
    fn path(&self, _: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 3 {
            std::thread::sleep(ms(7000));
        }
        None
    }
}

#[test]
fn who_was_absent_does_not_hold_the_silence_against_the_peer() {
    let absent = Arc::new(Absent::default());
    let mut options = quick();
    // The peer may have data in flight when this end is absent, so its silence timeout is longer.
    let listener = listener(options.clone());
    options.silence_timeout = meshpace_core::Duration::from_secs(5);
    let delay = || Impairment { delay: meshpace_core::Duration::from_millis(10), ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), delay(), delay(), false).unwrap();
    options.path = Some(Arc::clone(&absent) as _);
    // This end has a thread of its own, because the peer's thread must not be blocked.
    let runtime = Runtime::start().unwrap();
    let port = TpaPort::on(&runtime, "127.0.0.1:0", options).unwrap();
    let client = port.connect(relay.address()).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(9, 500_000), b"still here");
    assert!(absent.0.load(Ordering::Relaxed) > 3, "it never was absent");
}
