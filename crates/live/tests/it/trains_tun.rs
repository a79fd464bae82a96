//! Tests quiet trains in real time behind TUN devices: between two of our stacks over a link that
//! loses and reorders packets, and with the kernel's TCP, which does not support them.

use crate::tcp_common::{
    PEER, PORT, World, accept, exchange, ip, peer, python_receiver, python_sender, receive, secs, send,
};
use meshpace_live::tcp::{Device, Limits, Protocol, Stack};
use meshpace_transport::{Config, PathInfo, names};
use std::net::{Ipv4Addr, SocketAddrV4};

/// The second of our stacks, behind the host on side 1.
const SECOND_HOST: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

fn trains() -> Protocol {
    match names::lookup("quiet-train") {
        Some(Config::Train(config)) => Protocol::from(&config),
        other => panic!("{other:?}"),
    }
}

/// `MESHPACE_BAD_MB` megabytes; 300 kB by default.
fn bytes() -> u64 {
    std::env::var("MESHPACE_BAD_MB").map_or(300_000, |text| text.parse::<u64>().expect("a number") * 1_000_000)
}

#[test]
fn both_ways_between_two_of_our_stacks_over_a_bad_link() {
    let Some(world) = World::bad(false) else { return };
    let sides = &world.link.sides;
    sides[1].run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
    let via = PEER.to_string();
    sides[0].run(|| ip(&["route", "add", "10.79.0.0/24", "via", &via]));
    let (listens, listening) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            sides[1].run(|| {
                let device = Device::create("second", SECOND_HOST, SECOND, 1500).unwrap();
                let mut stack = Stack::new(device, Limits::default()).unwrap();
                stack.set_path(
                    PathInfo { hops: 1, rate: meshpace_core::Rate::from_mbps(54), received_power_dbm: None },
                    false,
                );
                stack.listen(PORT, trains()).unwrap();
                listens.send(()).unwrap();
                let id = accept(&mut stack, PORT, secs(60));
                assert!(stack.connection(id).unwrap().has_trains());
                exchange(&mut stack, id, bytes(), 1, secs(3600))
            })
        });
        listening.recv().unwrap();
        let [sent, heard] = world.ours(|| {
            let mut stack = World::device(1500);
            let id = stack.connect(SocketAddrV4::new(SECOND, PORT), trains()).unwrap();
            let start = crate::tcp_common::now();
            let both = exchange(&mut stack, id, bytes(), 0, secs(3600));
            let connection = stack.connection(id).unwrap();
            let (took, stats) = (crate::tcp_common::now().since(start).as_secs_f64(), connection.stats());
            eprintln!(
                "trains: {:.1} Mbit/s each way, {} segments, {} again, {} timeouts",
                bytes() as f64 * 8e-6 / took,
                stats.segments_sent,
                stats.retransmissions,
                stats.timeouts
            );
            assert!(connection.has_trains());
            both
        });
        assert_ne!(sent, heard);
        assert_eq!(there.join().unwrap(), [heard, sent]);
    });
}

#[test]
fn the_kernel_gets_a_plain_tcp() {
    let Some(world) = World::plain() else { return };
    let mut python = world.python(&python_receiver());
    let sent = world.ours(|| {
        let mut stack = World::device(1500);
        let id = stack.connect(peer(), trains()).unwrap();
        let sent = send(&mut stack, id, bytes(), secs(3600));
        assert!(!stack.connection(id).unwrap().has_trains());
        sent
    });
    assert_eq!(python.output(), sent);
}

#[test]
fn the_kernel_opens_a_plain_tcp() {
    let Some(world) = World::plain() else { return };
    let (received, mut python) = world.ours(|| {
        let mut stack = World::device(1500);
        stack.listen(PORT, trains()).unwrap();
        let python = world.python(&python_sender(bytes()));
        let id = accept(&mut stack, PORT, secs(60));
        assert!(!stack.connection(id).unwrap().has_trains());
        (receive(&mut stack, id, secs(3600)), python)
    });
    assert_eq!(python.output(), received);
}
