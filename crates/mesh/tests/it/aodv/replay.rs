//! Compares AODV with ns-2.35 at every node of a chain of seven hops, message by message.
//!
//! The file contains the events and the actions of each node, taken from a trace by
//! `validation/ns2/aodv_events.py`, which describes the format. Our state machines receive the same
//! events at the same times and must take the same actions, to the nanosecond: each message with
//! all its numbers, each data packet with its next hop, each dropped packet. A broadcast with
//! jitter must leave within its 10 ms.
//!
//! The file is the first 32 s of `ns chain.tcl hops=7 seed=5`. They contain link failures, local
//! repairs that fail, ring and network-wide searches, answers from caches, and wrong routes of 2^32
//! s from a node under repair.

use super::world::{Asked, Datagram};
use meshpace_core::rng::Purpose;
use meshpace_core::{NodeId, Rng, Time};
use meshpace_mesh::routing::aodv::Message;
use meshpace_mesh::routing::{self, Aodv, DropReason, Protocol};
use meshpace_mesh::{AodvConfig, Body, LocalRepair};
use std::collections::BTreeMap;

const EVENTS: &str = include_str!("ns2_chain7.events");

/// Longest jitter in ns, with the rounding error of a trace.
const JITTER: u64 = 10_000_001;

/// An action of a state machine that ns-2 must have taken too, with the time span in which it takes
/// place.
#[derive(Debug)]
struct Deed {
    earliest: u64,
    latest: u64,
    text: String,
}

struct Replay {
    nodes: Vec<Aodv<Datagram>>,
    /// Actions of each state machine that have not been found in ns-2's trace yet.
    deeds: Vec<Vec<Deed>>,
    /// Messages that each state machine has sent, by their text in the trace; the latest for each
    /// text.
    messages: BTreeMap<(u16, String), Message>,
    packets: BTreeMap<u32, Datagram>,
}

fn written(message: &Message) -> String {
    match message {
        Message::Request(r) => format!(
            "Q {} {} {} {} {} {} {}",
            r.hop_count, r.id, r.destination.0, r.destination_sequence, r.origin.0, r.origin_sequence, r.ttl
        ),
        Message::Reply(r) => format!(
            "P {} {} {} {} {} {}",
            r.hop_count, r.destination.0, r.destination_sequence, r.lifetime, r.ttl, r.origin.0
        ),
        Message::Error(lost) => format!("E {} {}", lost.len(), lost.iter().next().unwrap().0.0),
    }
}

impl Replay {
    fn with(&mut self, now: Time, node: u16, call: impl FnOnce(&mut Aodv<Datagram>, &mut Asked)) {
        let mut asked = Asked::default();
        call(&mut self.nodes[usize::from(node)], &mut asked);
        for (body, to, delay) in asked.sends {
            let leaves = now.0 + delay.0;
            let deed = match body {
                Body::Data(packet) => {
                    Deed { earliest: leaves, latest: leaves, text: format!("D {} {}", packet.id, to.0) }
                }
                Body::Routing(routing::Message::Aodv(message)) => {
                    let text = written(&message);
                    self.messages.insert((node, text.clone()), message);
                    let jittered = delay.0 > 0;
                    let (earliest, latest) = if jittered { (now.0, now.0 + JITTER) } else { (now.0, now.0) };
                    let to = if to.is_broadcast() { -1 } else { i32::from(to.0) };
                    Deed { earliest, latest, text: format!("M {to} {text}") }
                }
                Body::Routing(_) | Body::Arp { .. } => unreachable!(),
            };
            self.deeds[usize::from(node)].push(deed);
        }
        for (packet, reason) in asked.drops {
            let reason = match reason {
                DropReason::NoRoute => "NRTE",
                DropReason::Loop => "LOOP",
                DropReason::TtlExpired => "TTL",
                DropReason::BufferFull => "IFQ",
                // ns-2 does not write these to the trace, or they are left out of the events.
                DropReason::LinkFailure | DropReason::BufferTimeout => continue,
            };
            let text = format!("N {} {reason}", packet.id);
            self.deeds[usize::from(node)].push(Deed { earliest: now.0, latest: now.0, text });
        }
    }

    /// Runs every timer that is due by `now`.
    fn timers(&mut self, now: Time) {
        for node in 0..self.nodes.len() as u16 {
            loop {
                let due = self.nodes[usize::from(node)].next_wakeup();
                if due > now {
                    break;
                }
                self.with(due, node, |machine, out| machine.on_timer(due, out));
            }
        }
    }
}

#[test]
fn every_node_does_what_it_did_in_ns2() {
    let machine = |n| {
        Aodv::new(
            NodeId(n),
            AodvConfig::repairing(LocalRepair::Ns2),
            Rng::stream(1, Purpose::RoutingJitter, u64::from(n)),
        )
    };
    let nodes: Vec<_> = (0..11).map(machine).collect();
    let mut replay = Replay {
        deeds: nodes.iter().map(|_| Vec::new()).collect(),
        nodes,
        messages: BTreeMap::new(),
        packets: BTreeMap::new(),
    };
    let (mut told, mut done, mut last) = (0, 0, 0);
    for line in EVENTS.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| fields[at].parse::<u32>().unwrap_or_else(|_| panic!("{line}"));
        let at = fields[0].parse::<u64>().unwrap();
        let (now, node) = (Time(at), number(1) as u16);
        last = at;
        replay.timers(now);
        let id = |at: usize| NodeId(number(at) as u16);
        match fields[2] {
            "m" => {
                let key = (number(3) as u16, fields[4..].join(" "));
                let message = *replay.messages.get(&key).unwrap_or_else(|| panic!("never sent here: {line}"));
                replay.with(now, node, |machine, out| machine.on_message(now, NodeId(key.0), message, out));
                told += 1;
            }
            "d" => {
                let (ttl, hops) = (number(6) as u8, number(7) as u8);
                let packet = Datagram { id: number(3), source: id(4), destination: id(5), ttl, hops };
                replay.packets.insert(packet.id, packet);
                let from = (packet.source != NodeId(node)).then_some(NodeId::BROADCAST);
                replay.with(now, node, |machine, out| machine.on_packet(now, packet, from, out));
                told += 1;
            }
            "x" => {
                let packet = Datagram { hops: number(7) as u8, ..replay.packets[&number(3)] };
                let next_hop = id(4);
                replay.with(now, node, |machine, out| machine.on_link_failure(now, next_hop, Some(packet), out));
                told += 1;
            }
            _ => {
                // The failure that caused this action may be written after it, at the same time. It
                // is searched for below.
                done += 1;
            }
        }
    }
    replay.timers(Time(last));
    let mut unexplained = Vec::new();
    for line in EVENTS.lines() {
        let mut fields = line.splitn(3, ' ');
        let at = fields.next().unwrap().parse::<u64>().unwrap();
        let node = fields.next().unwrap().parse::<usize>().unwrap();
        let text = fields.next().unwrap();
        if text.starts_with(|c: char| c.is_uppercase()) {
            let deeds = &mut replay.deeds[node];
            // One nanosecond is allowed for the rounding of the trace.
            let fits = |deed: &Deed| deed.earliest <= at + 1 && at <= deed.latest + 1 && deed.text == text;
            // If several actions match, the one with the earliest end of its time span is taken.
            let found = (0..deeds.len()).filter(|&at| fits(&deeds[at])).min_by_key(|&at| deeds[at].latest);
            match found {
                Some(found) => drop(deeds.remove(found)),
                None => unexplained.push(line),
            }
        }
    }
    // The remaining actions were taken here only, unless ns-2 took them after the end of the file.
    let mut only_here: Vec<_> = Vec::new();
    for (node, deeds) in replay.deeds.iter().enumerate() {
        only_here.extend(deeds.iter().filter(|deed| deed.latest <= last).map(|deed| (deed.earliest, node, &deed.text)));
    }
    only_here.sort();
    println!("told {told}, done {done}, by ns-2 only {}, here only {}", unexplained.len(), only_here.len());
    assert!(unexplained.is_empty(), "ns-2 only: {:#?}", &unexplained[..unexplained.len().min(10)]);
    assert!(only_here.is_empty(), "here only: {:#?}", &only_here[..only_here.len().min(10)]);
    assert!(told > 1000 && done > 1000);
    // The comparison is only meaningful if the file contains what the head says.
    let count = |wanted: &dyn Fn(&[&str]) -> bool| {
        EVENTS.lines().filter(|line| wanted(&line.split(' ').collect::<Vec<_>>())).count()
    };
    let first_hop = |f: &[&str]| f[2] == "M" && f[4] == "Q" && f[5] == "1";
    assert!(count(&|f| first_hop(f) && f[1] != "0" && f[1] != "7") > 5, "requests of local repairs");
    assert!(count(&|f| first_hop(f) && f[11] != "30") >= 2, "rings");
    assert!(count(&|f| f[2] == "M" && f[4] == "P" && f[8].len() == 10) > 2, "false routes");
    assert!(count(&|f| f[2] == "x") > 3 && count(&|f| f[2] == "N") > 10, "link failures and drops");
}
