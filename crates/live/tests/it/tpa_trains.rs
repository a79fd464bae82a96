//! Tests quiet trains inside TPA's datagrams, over a path that loses, delays and duplicates
//! packets, encrypted and plain.
#![expect(clippy::disallowed_methods, reason = "a writer is held up, and transfers take their time, in real time")]

use crate::common::{exchange, ms, noise, quick};
use crate::puppet::Puppet;
use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::path::Fixed;
use meshpace_live::tpa::{Options, Security, TpaListener, TpaPort, TpaStream};
use meshpace_transport::{Config, PathInfo, names};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

const PATH: PathInfo = PathInfo { hops: 1, rate: Rate::from_mbps(11), received_power_dbm: None };

fn trains(security: Security) -> Options {
    let Some(Config::Train(config)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let mut options = Options { trains: Some(config), path: Some(Arc::new(Fixed(PATH))), security, ..quick() };
    if bytes() > 1_000_000 {
        // Same settings as those with which TPA sends as much over such a link, in a test of capi.
        options.transport.segment = 8960;
        (options.send_buffer, options.receive_buffer) = (1 << 20, 1 << 20);
    }
    options
}

fn listening(options: Options) -> TpaListener {
    TpaPort::with_options("127.0.0.1:0", options).unwrap().listen(4).unwrap()
}

/// Bytes of a transfer: `MESHPACE_LOSSY_MB` megabytes, or 200 kB by default.
fn bytes() -> usize {
    std::env::var("MESHPACE_LOSSY_MB").map_or(200_000, |text| text.parse::<usize>().expect("a number") * 1_000_000)
}

fn lossy(seed: u64) -> Impairment {
    Impairment {
        delay: Duration::from_millis(5),
        loss: Loss::Random(0.02),
        duplicate: 0.01,
        reorder: 0.02,
        reorder_delay: Duration::from_millis(3),
        seed,
        ..Impairment::default()
    }
}

#[test]
fn both_ways_over_a_lossy_link() {
    for security in [Security::Opportunistic, Security::Plain] {
        let listener = listening(trains(security.clone()));
        let relay = Relay::new(listener.local_addr().unwrap(), lossy(1), lossy(2), false).unwrap();
        let start = std::time::SystemTime::now();
        let client = TpaPort::with_options("127.0.0.1:0", trains(security.clone())).unwrap();
        let client = client.connect(relay.address()).unwrap();
        let server = listener.accept().unwrap().0;
        client.set_linger(ms(60_000)).unwrap();
        server.set_linger(ms(60_000)).unwrap();
        exchange(client, server, &noise(1, bytes()), &noise(2, bytes()));
        eprintln!("{security:?}: {} bytes both ways in {:?}", bytes(), start.elapsed().unwrap());
    }
}

#[test]
fn an_application_that_does_not_read_stops_its_peer_until_it_does() {
    let listener = listening(trains(Security::Opportunistic));
    let client = TpaPort::with_options("127.0.0.1:0", trains(Security::Opportunistic)).unwrap();
    let client = client.connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let all = noise(3, 1_000_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&client).write_all(&all).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        });
        // This is more than the window and both buffers, so the writer has to wait.
        std::thread::sleep(ms(300));
        assert!(client.unacknowledged() > 100_000);
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        assert!(got == all, "{} bytes", got.len());
    });
    server.close().unwrap();
    client.close().unwrap();
}

#[test]
fn a_closed_window_is_asked_about_with_a_whole_segment_and_nothing_is_lost() {
    // A window of whole segments does not fill the ring. After a short first write, segments cross
    // the end of the ring.
    let narrow = || Options { receive_buffer: 64 << 10, ..trains(Security::Opportunistic) };
    let listener = listening(narrow());
    let client = TpaPort::with_options("127.0.0.1:0", narrow()).unwrap();
    let client = client.connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let all = noise(4, 1_000_000);
    (&client).write_all(&all[..1300]).unwrap();
    while client.unacknowledged() > 0 {
        std::thread::sleep(ms(10));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&client).write_all(&all[1300..]).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        });
        std::thread::sleep(ms(1000));
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        assert!(got == all, "{} bytes", got.len());
    });
    server.close().unwrap();
    client.close().unwrap();
}

#[test]
fn an_acceptance_announces_what_there_is_room_for() {
    let listener = listening(Options { receive_buffer: 64 << 10, ..trains(Security::Plain) });
    let mut puppet = Puppet::new(listener.local_addr().unwrap());
    puppet.opening.trains = true;
    puppet.ask();
    puppet.request();
    let answer = puppet.answer().expect("an acceptance");
    // TPA's 1452 bytes are reduced by the 26 bytes by which the header of a train is longer. 45
    // segments fit, and one less is announced.
    assert_eq!((answer.terms.segment, answer.segment.window), (1452, 44));
}

#[test]
fn trains_that_heed_marks_are_refused() {
    let Some(Config::Train(config)) = names::lookup("quiet-train+marks") else { panic!("no quiet trains") };
    let error = TpaPort::with_options("127.0.0.1:0", Options { trains: Some(config), ..quick() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("trains.control.marks"), "{error}");
}

#[test]
fn who_speaks_something_else_is_told() {
    let listener = listening(trains(Security::Opportunistic));
    let client = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
    let error = client.connect(listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains("it speaks quiet trains, this end TPA"), "{error}");
}

#[test]
fn a_listener_that_takes_tpa_too_leaves_the_choice_to_who_opens() {
    let listener = listening(Options { takes_tpa: true, ..trains(Security::Opportunistic) });
    listener.set_timeout(Some(ms(60_000))).unwrap();
    let to = listener.local_addr().unwrap();
    let of_trains = TpaPort::with_options("127.0.0.1:0", trains(Security::Opportunistic)).unwrap();
    let of_tpa = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
    // 146,000 bytes are 100 segments of TPA and 102 of trains, which are 26 bytes shorter.
    let ways: [&dyn Fn() -> std::io::Result<TpaStream>; 3] =
        [&|| of_trains.connect(to), &|| of_trains.connect_tpa(to), &|| of_tpa.connect(to)];
    let sent = ways.map(|open| {
        let client = open().unwrap();
        let server = listener.accept().unwrap().0;
        let bytes = noise(3, 146_000);
        let reading = std::thread::spawn(move || {
            let mut got = vec![0; 146_000];
            (&server).read_exact(&mut got).unwrap();
            (server, got)
        });
        (&client).write_all(&bytes).unwrap();
        let (server, got) = reading.join().unwrap();
        assert!(got == bytes);
        let sent = client.stats().segments_sent - client.stats().retransmissions;
        exchange(client, server, b"", b"");
        sent
    });
    let [trains, by_choice, tpa] = sent;
    assert!(by_choice < 102 && tpa < 102 && trains >= 102, "{sent:?}");
}

#[test]
fn a_reset_and_a_peer_that_vanishes_end_it() {
    let listener = listening(trains(Security::Opportunistic));
    let client = TpaPort::with_options("127.0.0.1:0", trains(Security::Opportunistic)).unwrap();
    let mut stream = client.connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    server.abort();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // A silent connection is probed. It continues as long as the probes are answered.
    let alive = |security| Options {
        keep_alive: Some(Duration::from_secs(1)),
        silence_timeout: Duration::from_millis(1500),
        ..trains(security)
    };
    let listener = listening(alive(Security::Plain));
    let relay =
        Relay::new(listener.local_addr().unwrap(), Impairment::default(), Impairment::default(), false).unwrap();
    let client = TpaPort::with_options("127.0.0.1:0", alive(Security::Plain)).unwrap();
    let mut stream = client.connect(relay.address()).unwrap();
    let mut server = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(ms(2500))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "both are there");
    drop(relay);
    server.set_read_timeout(Some(ms(20_000))).unwrap();
    let kind = server.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::TimedOut | ErrorKind::ConnectionRefused), "{kind:?}");
}
