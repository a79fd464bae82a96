//! Two ends of a TCP-AP connection, driven by hand: no clock, no socket, no simulator.
//!
//!   cargo run -p meshpace-examples --bin endpoint_pair
//!
//! An endpoint is told the time and what arrived, and polled for what it sends. What lies between the two is up to the caller: here a
//! link that delays every segment by 20 ms and loses each fiftieth segment of data.

use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::{Arrival, Endpoint, PathInfo, Role, Segment, names, pump};
use std::collections::VecDeque;

const BYTES: u64 = 300_000;
const DELAY: Duration = Duration::from_millis(20);

/// Transfers [`BYTES`]; when they have arrived, and how many segments were sent again.
fn transfer(transport: &str) -> (Time, u64) {
    let config = names::lookup(transport).expect("a name of `meshpace transports`");
    let mut ends = [Endpoint::new(&config, Role::Sender), Endpoint::new(&config, Role::Receiver)];
    // Pacing asks how far it is and how fast the channel.
    let path = PathInfo { hops: 4, rate: Rate::from_mbps(2), received_power_dbm: None };
    ends.iter_mut().for_each(|end| end.on_path(path));
    let (mut now, mut data) = (Time::ZERO, 0);
    // When each arrives, at which end, and what.
    let mut under_way: VecDeque<(Time, usize, Segment)> = VecDeque::new();
    ends[0].open(now);
    ends[0].write(now, BYTES);
    while ends[1].delivered() < BYTES {
        let mut next = Time::NEVER;
        for (side, end) in ends.iter_mut().enumerate() {
            // Everything that may leave now leaves; then the endpoint says when it wants to be asked again.
            let wakeup = pump(end, now, |_, segment| {
                let has_data = matches!(&segment, Segment::Tcp(tcp) if tcp.payload > 0);
                data += u64::from(has_data);
                if !has_data || data % 50 != 0 {
                    under_way.push_back((now + DELAY, 1 - side, segment));
                }
            });
            next = next.min(wakeup);
        }
        next = under_way.front().map_or(next, |(at, ..)| next.min(*at));
        assert!(next != Time::NEVER, "nobody has anything to do");
        now = next;
        while let Some(&(_, side, segment)) = under_way.front().filter(|(at, ..)| *at <= now) {
            under_way.pop_front();
            ends[side].on_segment(now, &segment, Arrival { hops: 4, ..Arrival::default() });
        }
    }
    (now, ends[0].stats().retransmissions)
}

fn main() {
    for transport in ["newreno", "tcp-ap"] {
        let (end, again) = transfer(transport);
        println!(
            "{transport}: {BYTES} bytes in {:.3} s of virtual time, {again} segments sent again",
            end.as_secs_f64()
        );
        assert!(again > 0, "segments were lost, and all bytes have arrived");
    }
}

#[test]
fn both_transports_repair_what_is_lost() {
    main();
}
