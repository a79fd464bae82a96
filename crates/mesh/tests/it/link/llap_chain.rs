//! Tests on a chain of LLAP nodes whose MACs never collide that the pace of the bottleneck reaches
//! the source (LLAP, III.B).
//!
//! Every node sends one packet at a time and takes a fixed time for it. Its predecessor overhears
//! it at the end.

use super::parcel::{Parcel, id, towards};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::link::llap::{Llap, LlapConfig};
use std::collections::BTreeSet;

const LAST: usize = 6;

/// The next event at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Sent(u32),
    Wakeup,
    Offer,
}

/// Measurements of the second half of the run.
struct Seen {
    delivered: u32,
    /// Average times that packets spend in the relays 1 to LAST - 1, seconds.
    stays: Vec<f64>,
}

/// Offers packets at node 0 every `gap` for `seconds`. Node i takes `service[i]` ms per packet.
fn run(service: [u64; LAST], gap: Duration, seconds: u64) -> Seen {
    let destination = NodeId(LAST as u16);
    let mut nodes: Vec<Llap<Parcel>> = (0..LAST).map(|n| Llap::new(NodeId(n as u16), LlapConfig::default())).collect();
    let mut busy = [false; LAST];
    let mut events = BTreeSet::from([(Time::ZERO, 0, Event::Offer)]);
    let (end, half) = (Time::ZERO + Duration::from_secs(seconds), Time::ZERO + Duration::from_secs(seconds / 2));
    let mut next_id = 0;
    let mut delivered = 0;
    while let Some((now, node, event)) = events.pop_first() {
        if now > end {
            break;
        }
        let hop = |n: usize| (n + 1) as u16;
        match event {
            Event::Offer => {
                let parcel = Parcel { id: next_id, source: NodeId(0), destination, ..Parcel::default() };
                next_id += 1;
                nodes[0].push(now, towards(hop(0), parcel), Some(LAST as u8));
                events.insert((now + gap, 0, Event::Offer));
            }
            Event::Wakeup => nodes[node].schedule(now),
            Event::Sent(number) => {
                busy[node] = false;
                nodes[node].on_sent(now);
                if node > 0 {
                    nodes[node - 1].on_overheard(now, NodeId(node as u16), number);
                }
                if node + 1 == LAST {
                    delivered += u32::from(now > half);
                } else {
                    let parcel = Parcel { id: number, source: NodeId(0), destination, ..Parcel::default() };
                    nodes[node + 1].push(now, towards(hop(node + 1), parcel), None);
                }
            }
        }
        for (n, llap) in nodes.iter_mut().enumerate() {
            if !busy[n]
                && let Some(packet) = llap.pop(now)
            {
                busy[n] = true;
                events.insert((now + Duration::from_millis(service[n]), n, Event::Sent(id(&packet))));
            }
            if llap.next_wakeup() != Time::NEVER {
                events.insert((llap.next_wakeup(), n, Event::Wakeup));
            }
        }
    }
    let stays = (1..LAST).map(|n| nodes[n].estimate(destination).and_then(|e| e.ht()).expect("relayed")).collect();
    Seen { delivered, stays }
}

#[test]
fn every_node_becomes_as_slow_as_the_bottleneck_and_the_source_four_times_as_slow() {
    // Node 4 takes 20 ms, the others 5 ms. The source has to release a packet every 4 * 20 ms.
    let seen = run([5, 5, 5, 5, 20, 5], Duration::from_millis(10), 200);
    let expected = 100.0 / 0.080;
    assert!((f64::from(seen.delivered) - expected).abs() < 0.02 * expected, "{} packets", seen.delivered);
    for relay in 1..=4 {
        let stay = seen.stays[relay - 1];
        assert!((stay - 0.020).abs() < 0.001, "relay {relay}: {stay} s");
    }
    // Behind the bottleneck no packet waits.
    assert!((seen.stays[4] - 0.005).abs() < 1e-6);
}

#[test]
fn without_a_bottleneck_the_source_sends_every_fourth_hop_time() {
    let seen = run([7, 7, 7, 7, 7, 7], Duration::from_millis(10), 200);
    let expected = 100.0 / 0.028;
    assert!((f64::from(seen.delivered) - expected).abs() < 0.02 * expected, "{} packets", seen.delivered);
}

#[test]
fn below_capacity_nothing_is_held_back() {
    // One packet per 100 ms is less than one per 80 ms.
    let seen = run([5, 5, 5, 5, 20, 5], Duration::from_millis(100), 200);
    assert!((999..=1001).contains(&seen.delivered), "{} packets", seen.delivered);
}
