//! Test that TPA retransmits exactly the segments that were lost, even if an ACK waits for the
//! receiver's timer and that timer is late on a busy machine.

use super::end::{End, Ending};
use crate::security::Security;
use crate::settings::{Settings, on_wires};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa;
use meshpace_transport::{Config, names};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

/// One-way delay of a datagram.
const DELAY: Duration = Duration::from_millis(50);

/// Number of segments in a window.
const WINDOW: u64 = 12;

/// Sends 5 windows over a link with constant delay. The link loses the data segments with these
/// numbers, in order of transmission, and no acknowledgements. The timers of the receiver expire
/// late by `late`. Returns the number of retransmitted segments and the number of segments that
/// arrived twice.
fn transfer(transport: &tpa::Config, lost: &[u64], late: Duration) -> (u64, u64) {
    let addresses = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 4000)));
    let settings = Settings { transport: transport.clone(), ..Settings::new(Security::Opportunistic) };
    let mut now = Time(1);
    let mut ends = [0, 1].map(|side| {
        let bytes = if side == 0 { 5 * WINDOW * 1460 } else { 0 };
        End::new(now, addresses[side], settings.clone(), (7, side as u64), side == 1, (bytes, now))
    });
    // Datagrams in flight to each side, in the order of arrival.
    let mut under_way: [VecDeque<(Time, Vec<u8>)>; 2] = Default::default();
    let mut stats = [None; 2];
    let mut count = 0;
    ends[0].open(now, addresses[1]);
    while ends.iter().any(|end| end.applications().all(|one| one.ending == Ending::None)) {
        let is_open = ends[1].accepted > 0;
        for (side, end) in ends.iter_mut().enumerate() {
            for (_, bytes) in end.leaving() {
                let is_data = side == 0 && is_open && bytes.len() > 1000;
                let is_lost = is_data && lost.contains(&count);
                count += u64::from(is_data);
                if !is_lost {
                    under_way[1 - side].push_back((now + DELAY, bytes));
                }
            }
        }
        let due = [0, 1].map(|side| ends[side].next_wakeup(now));
        let wakes = [due[0], if due[1] == Time::NEVER { Time::NEVER } else { due[1] + late }];
        let arrivals = under_way.iter().filter_map(|queue| queue.front()).map(|(at, _)| *at);
        now = arrivals.chain(wakes).min().unwrap();
        assert!(now < Time::ZERO + Duration::from_secs(60), "nothing more happens");
        for (side, end) in ends.iter_mut().enumerate() {
            while under_way[side].front().is_some_and(|(at, _)| *at <= now) {
                let (_, mut bytes) = under_way[side].pop_front().unwrap();
                end.receive(now, addresses[1 - side], &mut bytes);
            }
            if wakes[side] <= now {
                end.wake(now);
            }
            stats[side] = end.parties().next().map(|party| party.exchange.stats).or(stats[side]);
        }
    }
    let [sender, receiver] = stats.map(Option::unwrap);
    (sender.retransmissions, receiver.duplicate_segments_received)
}

#[test]
fn what_was_not_lost_is_not_repeated() {
    let mut third_copies = 0;
    for name in ["tpa-2", "tpa-3"] {
        let Some(Config::Tpa(config)) = names::lookup(name) else { panic!("{name}: not a TPA") };
        let config = on_wires(config);
        // With a margin of just the time that the receiver may hold an ACK.
        let mut tied = config.clone();
        tied.rto.margin = tied.ack_delay;
        for first in 0..3 * WINDOW {
            for lost in [&[first][..], &[first, first + 1], &[first, first + 2], &[first, first + 1, first + 15]] {
                for late in [0, 5, 40].map(Duration::from_millis) {
                    let found = transfer(&config, lost, late);
                    assert_eq!(found, (lost.len() as u64, 0), "{name}, {lost:?} lost, timers late by {late:?}");
                }
                third_copies += transfer(&tied, lost, Duration::from_millis(5)).1;
            }
        }
    }
    assert!(third_copies > 0, "what is measured here does not depend on the margin");
}
