//! Tests of UDP datagrams through a tunnel: they arrive complete at their targets, and answers
//! return to the sender of the request.
#![expect(clippy::disallowed_methods, reason = "datagrams take their time")]

use crate::common::{ms, noise, quick};
use crate::tunnel::{Tunnel, echo, exchange, server};
use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::{Impairment, Loss};
use meshpace_live::tpa::path::Fixed;
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tunnel::{Allowed, CarriedBy, Class, Connector, Totals, UdpForward};
use meshpace_transport::{Config, PathInfo, names};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

/// Options of a tunnel of quiet trains.
fn trains() -> Options {
    let Some(Config::Train(trains)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let path = PathInfo { hops: 1, rate: Rate::from_mbps(54), received_power_dbm: None };
    Options {
        trains: Some(trains),
        takes_tpa: true,
        path: Some(Arc::new(Fixed(path))),
        ..meshpace_live::tunnel::options(quick().transport)
    }
}

/// Local address where datagrams for `target` are accepted.
fn to(tunnel: &Tunnel, target: &str, class: Class) -> SocketAddr {
    let forward = UdpForward { local: "127.0.0.1:0".into(), target: target.into(), class };
    tunnel.connector.serve_datagrams(&forward, |_| {}).unwrap()
}

/// Starts a server that sends every datagram back.
fn parrot() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    address
}

fn client(at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(at).unwrap();
    socket.set_read_timeout(Some(ms(30_000))).unwrap();
    socket
}

/// Payload of the next datagram.
fn heard(client: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let length = client.recv(&mut buffer).expect("a datagram");
    buffer[..length].to_vec()
}

fn totals(tunnel: &Tunnel) -> [Totals; 2] {
    [tunnel.connector.counters().totals(), tunnel.exit.counters().totals()]
}

#[test]
fn datagrams_keep_their_boundaries_and_answers_go_to_who_has_asked() {
    for (by, options) in [(CarriedBy::Session, trains()), (CarriedBy::Tpa, quick())] {
        let tunnel = Tunnel::new(by, &options, Allowed::Anywhere, None);
        let at = to(&tunnel, &parrot().to_string(), Class::Reliable);
        let clients: Vec<UdpSocket> = (0..20).map(|_| client(at)).collect();
        let said = |client: usize, number: usize| noise((client * 100 + number) as u64, [0, 1, 700, 3000][number]);
        for (number, client) in clients.iter().enumerate() {
            (0..4).for_each(|datagram| assert!(client.send(&said(number, datagram)).is_ok()));
        }
        for (number, client) in clients.iter().enumerate() {
            (0..4).for_each(|datagram| assert!(heard(client) == said(number, datagram), "{number}, {datagram}"));
        }
        // The longest UDP datagram, which is longer than a carrier accepts at a time.
        let long = noise(7, 65_507);
        clients[3].send(&long).unwrap();
        assert!(heard(&clients[3]) == long);
        let bytes = 20 * 3701 + 65_507;
        for totals in totals(&tunnel) {
            let carried = totals.datagrams;
            assert_eq!((carried.flows, carried.sent, carried.received, carried.dropped), (20, 81, 81, 0), "{by:?}");
            assert_eq!((totals.sent, totals.received, totals.opened), (bytes, bytes, 0));
        }
    }
}

#[test]
fn datagrams_go_beside_streams_of_the_same_session_over_a_lossy_link() {
    let bad = |seed| Impairment {
        delay: Duration::from_millis(5),
        loss: Loss::Random(0.03),
        duplicate: 0.01,
        reorder: 0.02,
        seed,
        ..Impairment::default()
    };
    let tunnel = Tunnel::new(CarriedBy::Session, &trains(), Allowed::Anywhere, Some([bad(1), bad(2)]));
    let target = parrot().to_string();
    let [reliable, latest] = [Class::Reliable, Class::Latest].map(|class| client(to(&tunnel, &target, class)));
    let at = tunnel.to(server(echo));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sent = noise(1, 400_000);
            assert!(exchange(at, &sent).unwrap() == sent);
        });
        // No more datagrams than the kernel buffers until the tunnel has read them.
        (0..100).for_each(|number| assert!(reliable.send(&noise(number, 500)).is_ok()));
        // The tunnel loses none of them and does not reorder them.
        (0..100).for_each(|number| assert!(heard(&reliable) == noise(number, 500), "{number}"));
        (0..100_u32).for_each(|number| assert!(latest.send(&number.to_be_bytes()).is_ok()));
        let mut last = None;
        while last != Some(99) {
            let number = u32::from_be_bytes(*heard(&latest).first_chunk().unwrap());
            assert!(last < Some(number), "{last:?}, {number}");
            last = Some(number);
        }
    });
    assert!(totals(&tunnel).iter().any(|totals| totals.stats.retransmissions > 0), "the link lost nothing");
}

#[test]
fn what_may_not_go_there_is_told_and_a_list_names_datagrams_as_such() {
    let (target, other) = (parrot().to_string(), parrot().to_string());
    let allowed = Allowed::These(vec![format!("udp:{target}"), other.clone()]);
    let tunnel = Tunnel::new(CarriedBy::Session, &trains(), allowed, None);
    // TCP to this target is allowed, UDP is not.
    let refused = client(to(&tunnel, &other, Class::Latest));
    refused.send(b"x").unwrap();
    let allowed = client(to(&tunnel, &target, Class::Latest));
    allowed.send(b"y").unwrap();
    assert_eq!(heard(&allowed), b"y");
    let start = Instant::now();
    while totals(&tunnel)[0].datagrams.flows != 1 && start.elapsed() < ms(30_000) {
        std::thread::yield_now();
    }
    assert!(totals(&tunnel).iter().all(|totals| totals.datagrams.flows == 1));
    refused.set_read_timeout(Some(ms(1))).unwrap();
    assert!(refused.recv(&mut [0; 8]).is_err());
}

/// Waits until `flows` flows are open at both ends.
fn wait_for_flows(tunnel: &Tunnel, flows: u64) {
    let start = Instant::now();
    while totals(tunnel).iter().any(|totals| totals.datagrams.flows != flows) {
        assert!(start.elapsed() < ms(30_000), "{:?}", totals(tunnel));
        std::thread::yield_now();
    }
}

/// Waits until the port is free. The session may still be delivering the last datagrams.
fn wait_until_free(port: SocketAddr) {
    let start = Instant::now();
    while let Err(error) = UdpSocket::bind(port) {
        assert!(start.elapsed() < ms(30_000), "{port}: {error}");
        std::thread::yield_now();
    }
}

#[test]
fn a_port_of_datagrams_that_is_closed_is_free_and_its_flows_are_over_at_both_ends() {
    for (by, options) in [(CarriedBy::Session, trains()), (CarriedBy::Tpa, quick())] {
        let tunnel = Tunnel::new(by, &options, Allowed::Anywhere, None);
        let target = parrot().to_string();
        let [one, two] = [Class::Reliable, Class::Latest].map(|class| to(&tunnel, &target, class));
        let [first, second] = [one, two].map(client);
        for client in [&first, &second] {
            client.send(b"hello").unwrap();
            assert_eq!(heard(client), b"hello");
        }
        wait_for_flows(&tunnel, 2);
        tunnel.connector.close_datagrams(one);
        wait_until_free(one);
        wait_for_flows(&tunnel, 1);
        second.send(b"still here").unwrap();
        assert_eq!(heard(&second), b"still here");
        // A TCP port with the same number is not affected, and closing a port that is not open does
        // nothing.
        tunnel.connector.close(two);
        tunnel.connector.close_datagrams(one);
        second.send(b"and here").unwrap();
        assert_eq!(heard(&second), b"and here");
        tunnel.connector.end();
        wait_until_free(two);
        wait_for_flows(&tunnel, 0);
    }
}

#[test]
fn an_end_ends_while_it_opens_a_session_for_datagrams() {
    // No server answers at this address.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = TpaPort::with_options("127.0.0.1:0", trains()).unwrap();
    let connector = Connector::in_session(port, silent.local_addr().unwrap());
    let forward = UdpForward { local: "127.0.0.1:0".into(), target: "127.0.0.1:9".into(), class: Class::Latest };
    let at = connector.serve_datagrams(&forward, |_| {}).unwrap();
    client(at).send(b"x").unwrap();
    silent.set_read_timeout(Some(ms(30_000))).unwrap();
    silent.recv(&mut [0; 2048]).expect("a request");
    let start = Instant::now();
    connector.end();
    assert!(start.elapsed() < ms(10_000), "an attempt takes 30 s");
    assert_eq!(connector.counters().totals().sessions, 0);
}
