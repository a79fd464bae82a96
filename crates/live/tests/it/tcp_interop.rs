//! Tests our TCP with the kernel's, as client and as server, over a clean link and over one that
//! loses and reorders packets.

use crate::tcp_common::{
    PEER, PORT, Peer, World, accept, ip, peer, python_receiver, python_receiver_on, python_sender, receive, secs, send,
    some, transport,
};
use meshpace_live::testbed::{Namespace, veth};
use std::net::SocketAddrV4;

/// Bytes of a transfer over the clean link.
const MANY: u64 = 100_000_000;
fn world(is_bad: bool) -> Option<World> {
    if is_bad { World::bad(false) } else { World::plain() }
}

/// We connect to a Python program and send.
fn as_client(name: &str, bytes: u64, is_bad: bool) {
    let Some(world) = world(is_bad) else { return };
    let mut python = world.python(&python_receiver());
    let sent = world.ours(|| {
        let mut stack = World::device(1500);
        let id = stack.connect(peer(), &transport(name)).unwrap();
        let start = crate::tcp_common::now();
        let sent = send(&mut stack, id, bytes, secs(600));
        let took = crate::tcp_common::now().since(start).as_secs_f64();
        let stats = *stack.connection(id).unwrap().stats();
        eprintln!(
            "{name}: {:.1} Mbit/s, {} segments, {} again, {} timeouts, {:?}",
            bytes as f64 * 8e-6 / took,
            stats.segments_sent,
            stats.retransmissions,
            stats.timeouts,
            stack.trouble()
        );
        assert_eq!(stack.trouble().malformed + stack.trouble().checksums, 0);
        if is_bad {
            assert!(stats.retransmissions > 0, "nothing was lost");
        }
        sent
    });
    assert_eq!(python.output(), sent);
}

/// A Python program connects to us and sends.
fn as_server(name: &str, bytes: u64, is_bad: bool) {
    let Some(world) = world(is_bad) else { return };
    let (received, mut python) = world.ours(|| {
        let mut stack = World::device(1500);
        stack.listen(PORT, &transport(name)).unwrap();
        let python = world.python(&python_sender(bytes));
        let id = accept(&mut stack, PORT, secs(20));
        let start = crate::tcp_common::now();
        let received = receive(&mut stack, id, secs(600));
        let took = crate::tcp_common::now().since(start).as_secs_f64();
        eprintln!("{name} from the kernel: {:.1} Mbit/s", bytes as f64 * 8e-6 / took);
        assert_eq!(stack.trouble().malformed + stack.trouble().checksums, 0);
        (received, python)
    });
    assert_eq!(python.output(), received);
}

#[test]
fn newreno_sends_to_a_python_socket() {
    as_client("newreno", MANY, false);
}

#[test]
fn newreno_receives_from_a_python_socket() {
    as_server("newreno", MANY, false);
}

#[test]
fn tcp_ap_sends_to_a_python_socket() {
    as_client("tcp-ap", MANY, false);
}

#[test]
fn tcp_ap_receives_from_a_python_socket() {
    as_server("tcp-ap", MANY, false);
}

#[test]
fn over_a_bad_link() {
    for name in ["newreno", "tcp-ap", "newreno+sack"] {
        as_client(name, some(), true);
        as_server(name, some(), true);
    }
}

#[test]
fn other_transports() {
    for name in ["few", "cwl", "cubic", "tcp-ap-oid", "tcp-ap-released", "newreno+dyn-delack"] {
        as_client(name, 1_000_000, false);
        as_server(name, 1_000_000, false);
    }
}

/// The peer is behind a router and a link of 600 bytes. Our packets may be fragmented, so they
/// arrive. The kernel's may not, so the kernel learns the MTU itself.
/// may not, so it learns of the MTU itself.
#[test]
fn through_a_link_too_narrow_for_full_segments() {
    let Some(world) = World::plain() else { return };
    let peer = std::net::Ipv4Addr::new(10, 82, 0, 2);
    let beyond = Namespace::new().unwrap();
    let router = &world.link.sides[1];
    veth::join([router, &beyond], "far", [std::net::Ipv4Addr::new(10, 82, 0, 1), peer], 600).unwrap();
    router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
    beyond.run(|| ip(&["route", "add", "10.64.0.0/10", "via", "10.82.0.1"]));
    world.ours(|| ip(&["route", "add", "10.82.0.0/24", "via", &PEER.to_string()]));
    let mut receiver = beyond.run(|| Peer::python(&python_receiver_on(peer)));
    let sent = world.ours(|| {
        let mut stack = World::device(1500);
        let id = stack.connect(SocketAddrV4::new(peer, PORT), &transport("newreno")).unwrap();
        send(&mut stack, id, 2_000_000, secs(60))
    });
    assert_eq!(receiver.output(), sent);
    let (received, mut sender) = world.ours(|| {
        let mut stack = World::device(1500);
        stack.listen(PORT, &transport("newreno")).unwrap();
        let sender = beyond.run(|| Peer::python(&python_sender(2_000_000)));
        let id = accept(&mut stack, PORT, secs(20));
        (receive(&mut stack, id, secs(60)), sender)
    });
    assert_eq!(sender.output(), received);
}
