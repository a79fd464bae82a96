//! Tests our TCP at a host's own address, through raw sockets, over a veth pair with offloads
//! enabled. Packets from the kernel are not yet divided into segments and have no checksums.

use crate::tcp_common::{
    PORT, Peer, accept, python_receiver_on, python_sender_to, receive, run_for, secs, send, transport,
};
use meshpace_core::Duration;
use meshpace_live::poll::{Poller, Token};
use meshpace_live::tcp::filter::{self, tables};
use meshpace_live::tcp::packet::{self, Packet};
use meshpace_live::tcp::{Id, Interface, Limits, Raw, Stack};
use meshpace_live::testbed::{Namespace, veth};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, has, skipped};
use meshpace_transport::tcp::End;
use meshpace_transport::tcp::wire::Check;
use meshpace_transport::{PathInfo, tcp};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 85, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 85, 0, 2);
const BYTES: u64 = 100_000_000;

/// Raw sockets, with a record of received packets that could not occur on a wire.
struct Watched {
    raw: Raw,
    longest: usize,
    unsummed: u64,
}

impl Interface for Watched {
    fn address(&self) -> Ipv4Addr {
        self.raw.address()
    }
    fn mtu(&self) -> u16 {
        self.raw.mtu()
    }
    fn check(&self) -> Check {
        self.raw.check()
    }
    fn owns_address(&self) -> bool {
        self.raw.owns_address()
    }
    fn claim(&mut self, port: u16) -> io::Result<()> {
        self.raw.claim(port)
    }
    fn release(&mut self, port: u16) {
        self.raw.release(port);
    }
    fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        self.raw.watch(poller, token)
    }
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.raw.receive(into)?;
        self.longest = self.longest.max(length);
        let summed = matches!(packet::decode(&into[..length], Check::Full), Ok(Packet::Tcp { .. }));
        self.unsummed += u64::from(!summed);
        Ok(length)
    }
    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.raw.send(packet)
    }
}

/// Our host and an ordinary one; `None`, with a report, on a machine that cannot have them.
fn hosts() -> Option<[Namespace; 2]> {
    if !has("nft", "nftables") {
        return None;
    }
    let hosts = Namespace::new().and_then(|ours| {
        let theirs = Namespace::new()?;
        veth::join([&ours, &theirs], "pair", [OURS, PEER], 1500)?;
        ours.run(tables)?;
        Ok([ours, theirs])
    });
    let why = |error| format!("no hosts joined by veth with a packet filter ({error}); needs root");
    hosts.map_err(|error| skipped(Class::Rights, why(error))).ok()
}

fn stack() -> Stack<Watched> {
    let raw = Raw::open(OURS, 1500).unwrap();
    let mut stack = Stack::new(Watched { raw, longest: 0, unsummed: 0 }, Limits::default()).unwrap();
    let rate = meshpace_core::Rate::from_mbps(1000);
    stack.set_path(PathInfo { hops: 1, rate, received_power_dbm: None }, false);
    stack
}

fn there() -> SocketAddrV4 {
    SocketAddrV4::new(PEER, PORT)
}

fn python(host: &Namespace, program: &str) -> Peer {
    host.run(|| Peer::python(program))
}

#[test]
fn a_hundred_megabytes_there() {
    for name in ["newreno", "tcp-ap"] {
        let Some([ours, theirs]) = hosts() else { return };
        let mut receiver = python(&theirs, &python_receiver_on(PEER));
        let sent = ours.run(|| {
            let mut stack = stack();
            let id = stack.connect(there(), &transport(name)).unwrap();
            let sent = send(&mut stack, id, BYTES, secs(300));
            assert_eq!(stack.trouble().malformed, 0);
            let watched = stack.interface();
            assert!(watched.unsummed > 1000, "only {} packets without a checksum", watched.unsummed);
            sent
        });
        assert_eq!(receiver.output(), sent, "{name}");
    }
}

#[test]
fn a_hundred_megabytes_back_in_packets_longer_than_any_segment() {
    let Some([ours, theirs]) = hosts() else { return };
    let (received, mut sender) = ours.run(|| {
        let mut stack = stack();
        stack.listen(PORT, &transport("newreno")).unwrap();
        let sender = python(&theirs, &python_sender_to(OURS, BYTES));
        let id = accept(&mut stack, PORT, secs(20));
        let start = crate::tcp_common::now();
        let received = receive(&mut stack, id, secs(300));
        let watched = stack.interface();
        let rate = BYTES as f64 * 8e-6 / crate::tcp_common::now().since(start).as_secs_f64();
        eprintln!("{rate:.0} Mbit/s, longest packet {} bytes, {} without checksum", watched.longest, watched.unsummed);
        assert!(watched.longest > 1500, "{} bytes: nothing came merged", watched.longest);
        assert!(watched.unsummed > 1000);
        assert_eq!(stack.trouble().malformed, 0);
        (received, sender)
    });
    assert_eq!(sender.output(), received);
}

#[test]
fn a_port_that_another_has_filtered_is_refused_and_given_back() {
    let Some([ours, _theirs]) = hosts() else { return };
    ours.run(|| {
        let mut first = stack();
        first.listen(PORT, &tcp::Config::default()).unwrap();
        let mut second = stack();
        let error = second.listen(PORT, &tcp::Config::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("another meshpace") && error.to_string().contains("port 5000"), "{error}");
        assert_eq!(tables().unwrap().len(), 2);
        drop(first);
        assert_eq!(tables().unwrap().len(), 1, "one table goes with its owner, the other stays");
        second.listen(PORT, &tcp::Config::default()).unwrap();
        drop(second);
        assert!(filter::tables().unwrap().is_empty());
    });
}

#[test]
fn tables_of_others_are_left_alone_whatever_they_are_called_and_wherever_their_owner_is() {
    let Some([ours, _theirs]) = hosts() else { return };
    ours.run(|| {
        let nft = |command: &[&str]| std::process::Command::new("nft").args(command).status().unwrap().success();
        // Tables of others with names like ours, in the earlier form and in the present one.
        let named = ["meshpace_firewall", "meshpace_1_1_0", "meshpace_0123456789abcdef"];
        for name in named {
            assert!(nft(&["add", "table", "ip", name]));
        }
        assert!(tables().unwrap().is_empty());
        // Our table. Its process is not visible here, so only its socket shows that it lives.
        let mut first = stack();
        first.listen(PORT, &tcp::Config::default()).unwrap();
        assert_eq!(filter::leftovers().unwrap(), [""; 0]);
        assert_eq!(filter::clean().unwrap(), [""; 0]);
        assert_eq!(tables().unwrap().len(), 1);
        drop(first);
        for name in named {
            assert!(nft(&["delete", "table", "ip", name]), "{name} was removed");
        }
    });
}

/// Runs the stack until the connection has ended.
fn ended(stack: &mut Stack<Watched>, id: Id) -> End {
    let end = crate::tcp_common::now() + secs(10);
    loop {
        let status = stack.status(id).unwrap();
        if let Some(how) = status.end {
            return how;
        }
        assert!(crate::tcp_common::now() < end, "{status:?}");
        stack.step(crate::tcp_common::now() + Duration::from_millis(50)).unwrap();
    }
}

#[test]
fn packets_too_long_for_the_device_end_the_connection_with_a_reason() {
    let Some([ours, theirs]) = hosts() else { return };
    let _receiver = python(&theirs, &python_receiver_on(PEER));
    ours.run(|| {
        let mut stack = stack();
        let id = stack.connect(there(), &transport("newreno")).unwrap();
        stack.write(id, &[1; 1000]);
        while stack.status(id).unwrap().unacknowledged > 0 {
            stack.step(crate::tcp_common::now() + Duration::from_millis(50)).unwrap();
        }
        ip(&["link", "set", "pair", "mtu", "600"]).unwrap();
        stack.write(id, &[1; 10_000]);
        assert_eq!(ended(&mut stack, id), End::Aborted);
        let status = stack.status(id).unwrap();
        assert_eq!(status.too_long, Some(1500), "{status:?}");
    });
}

#[test]
fn a_host_that_is_not_there_is_told_from_one_that_refuses() {
    let Some([ours, _theirs]) = hosts() else { return };
    ours.run(|| {
        let mut stack = stack();
        let refused = stack.connect(SocketAddrV4::new(PEER, 9), &transport("newreno")).unwrap();
        assert_eq!(ended(&mut stack, refused), End::Refused);
        let nobody = stack.connect(SocketAddrV4::new(Ipv4Addr::new(10, 85, 0, 9), 9), &transport("newreno")).unwrap();
        run_for(&mut stack, secs(1));
        assert!(!stack.status(nobody).unwrap().established);
        stack.abort(nobody);
    });
}
