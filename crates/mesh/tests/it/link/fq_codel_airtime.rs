//! Tests of the queues for each neighbour, served in turn by air time, against the rules of "Ending
//! the Anomaly" and of Linux's mac80211.

use super::parcel::{Parcel, data, discipline, ms, routing, towards};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rate, Rng, Time};
use meshpace_mesh::config::{EdcaConfig, HtConfig, MacConfig, MacProfile};
use meshpace_mesh::link::fq_codel::FqCodelConfig;
use meshpace_mesh::link::fq_codel_airtime::{FqCodelAirtime, FqCodelAirtimeConfig};
use meshpace_mesh::link::{Discipline, MarkerConfig, QueueConfig, QueueLoss};
use meshpace_mesh::mac::{AttemptContent, Category, Timing};
use meshpace_mesh::radio::{Band, Ofdm, OfdmRate};
use meshpace_mesh::{Queued, RadioConfig};

/// Timing of 802.11n at MCS 7, with or without categories.
fn timing(edca: bool) -> Timing {
    let ht = HtConfig { edca: edca.then(EdcaConfig::default), ..HtConfig::default() };
    let mac = MacConfig { profile: MacProfile::Ieee, ht: Some(ht), ..MacConfig::default() };
    let data = OfdmRate::mcs(7, false).unwrap();
    let ofdm = Ofdm { band: Band::Five, data, basic: OfdmRate::NonHt(0) };
    Timing::new(&mac, &RadioConfig { ofdm: Some(ofdm), basic_rate: Rate::from_mbps(6), ..RadioConfig::default() })
}

fn queues(config: FqCodelAirtimeConfig) -> FqCodelAirtime<Parcel> {
    FqCodelAirtime::new(config, &timing(false))
}

fn fill(queue: &mut FqCodelAirtime<Parcel>, to: u16, packets: u32) {
    for id in 0..packets {
        let parcel = Parcel { id, flow: to, size: 1500, category: Category::BestEffort, ..Parcel::default() };
        queue.push(ms(0), towards(to, parcel), |lost| panic!("{lost:?} does not fit"));
    }
}

fn pop(queue: &mut FqCodelAirtime<Parcel>) -> Option<Queued<Parcel>> {
    queue.pop(ms(1), |lost| panic!("{lost:?} dropped"))
}

/// An attempt at `mbps` with a packet of 1500 bytes.
fn attempt(queue: &mut FqCodelAirtime<Parcel>, to: u16, mbps: u64, air_us: u64, arrives: bool, held: u32) {
    let acknowledged = if arrives { 1538 } else { 0 };
    let rate = Rate::from_mbps(mbps);
    let carried = AttemptContent { category: Category::BestEffort, rate, bytes: 1538, acknowledged, held };
    queue.on_attempt(NodeId(to), Duration::from_micros(air_us), &carried);
}

#[test]
fn neighbours_get_equal_air_time_whatever_their_rates() {
    // Node 1 takes 1929 us for a packet, node 2 takes 226. Node 3 takes 226 too, but half of its
    // attempts fail and are repeated: failed attempts are also charged.
    let mut queue = queues(FqCodelAirtimeConfig::default());
    for to in 1..=3 {
        fill(&mut queue, to, 2500);
    }
    let (mut air, mut packets) = ([0u64; 4], [0u32; 4]);
    for _ in 0..3000 {
        let to = pop(&mut queue).unwrap().next_hop.0;
        let us = if to == 1 { 1929 } else { 226 };
        if to == 3 {
            attempt(&mut queue, 3, 65, us, false, 1538);
            air[3] += us;
        }
        attempt(&mut queue, to, if to == 1 { 7 } else { 65 }, us, true, 0);
        air[usize::from(to)] += us;
        packets[usize::from(to)] += 1;
    }
    // Deficit round robin: the difference is never more than a quantum and a turn of each.
    let (least, most) = (*air[1..].iter().min().unwrap(), *air[1..].iter().max().unwrap());
    assert!(most - least <= 2 * (256 + 1929), "{air:?} us");
    assert!(packets[2] > 8 * packets[1] && packets[2].abs_diff(2 * packets[3]) < 20, "{packets:?}");
}

#[test]
fn a_neighbour_that_returns_comes_first_once_and_then_waits_its_turn() {
    let mut queue = queues(FqCodelAirtimeConfig::default());
    fill(&mut queue, 1, 20);
    assert_eq!(pop(&mut queue).unwrap().next_hop, NodeId(1));
    attempt(&mut queue, 1, 65, 226, true, 0);
    fill(&mut queue, 2, 3);
    let mut order = Vec::new();
    for _ in 0..6 {
        let to = pop(&mut queue).unwrap().next_hop.0;
        attempt(&mut queue, to, 65, 226, true, 0);
        order.push(to);
    }
    // Both are new, 1 before 2. With a quantum of 256 us, 1 has 30 us left, sends once more and has
    // -196. It waits behind 2, which may send twice. Then both are old: 1 has 60 and sends, 2 has
    // 60 and sends.
    assert_eq!(order, [1, 2, 2, 1, 2, 1]);
    // Neighbour 2 was found empty and is on no list. A packet that arrives for it now is served
    // before those that wait.
    assert_eq!(pop(&mut queue).unwrap().next_hop, NodeId(1));
    attempt(&mut queue, 1, 65, 226, true, 0);
    fill(&mut queue, 2, 1);
    assert_eq!(pop(&mut queue).unwrap().next_hop, NodeId(2), "if its deficit allows it");
}

#[test]
fn an_aggregate_is_for_who_has_the_turn_and_its_air_time_is_bounded() {
    // 1538 bytes at 65 Mbit/s take 189.3 us. With a limit of 1 ms, packets are added while less
    // than 1000 us are held; after 6 packets there are 1136.
    let limit = |low, high, threshold| FqCodelAirtimeConfig {
        aql_low: Duration::from_micros(low),
        aql_high: Duration::from_micros(high),
        aql_threshold: Duration::from_micros(threshold),
        ..FqCodelAirtimeConfig::default()
    };
    let aggregate = |config| {
        let mut queue = queues(config);
        fill(&mut queue, 1, 200);
        fill(&mut queue, 2, 200);
        pop(&mut queue).unwrap();
        let mut joined = 1;
        let lost = |lost| panic!("{lost:?} dropped");
        assert!(queue.take_within(ms(1), Category::BestEffort, (NodeId(2), 9000), lost).is_none(), "1 has the turn");
        assert!(queue.take_within(ms(1), Category::BestEffort, (NodeId(1), 1499), lost).is_none(), "too large");
        while queue.take_within(ms(1), Category::BestEffort, (NodeId(1), 9000), lost).is_some() {
            joined += 1;
        }
        assert_eq!(queue.len(), 400 - joined);
        joined
    };
    assert_eq!(aggregate(limit(1_000, 1_000, 24_000)), 6);
    assert_eq!(aggregate(limit(1_000, 2_000, 24_000)), 11, "10 take 1893 us");
    assert_eq!(aggregate(limit(1_000, 2_000, 500)), 6, "all together is not below the threshold");
    assert_eq!(aggregate(FqCodelAirtimeConfig::default()), 64, "12 ms: 63 take 11.9");
    // At 6.5 Mbit/s a packet takes 1893 us. The rate is known from the last attempt.
    let mut queue = queues(FqCodelAirtimeConfig::default());
    fill(&mut queue, 1, 200);
    pop(&mut queue).unwrap();
    let rate = Rate::from_bps(6_500_000);
    let carried = |held| AttemptContent { category: Category::BestEffort, rate, bytes: 1538, acknowledged: 1538, held };
    queue.on_attempt(NodeId(1), Duration::from_micros(1929), &carried(0));
    pop(&mut queue).unwrap();
    let room = (NodeId(1), 9000);
    let join = |queue: &mut FqCodelAirtime<Parcel>| {
        (0..100).take_while(|_| queue.take_within(ms(1), Category::BestEffort, room, |_| {}).is_some()).count()
    };
    assert_eq!(join(&mut queue), 6, "12 ms hold 7: 6 take 11.4");
    // 4 of 7 packets are left: 7.6 ms.
    queue.on_attempt(NodeId(1), Duration::from_micros(1929), &carried(4 * 1538));
    assert_eq!(join(&mut queue), 3);
}

#[test]
fn categories_have_queues_of_their_own_and_share_the_limit_of_all() {
    let config = FqCodelAirtimeConfig::default();
    let mut queue = FqCodelAirtime::new(config, &timing(true));
    let all = [Category::Background, Category::BestEffort, Category::Video, Category::Voice];
    for category in all {
        for id in 0..200 {
            queue.push(ms(0), towards(1, Parcel { id, size: 1500, category, ..Parcel::default() }), |_| {});
        }
    }
    // A packet takes 189.3 us. 64 take 12.1 ms. 63 more make a total of 24.04 ms, so the limit of 5
    // ms applies, of which 27 packets take 5.1.
    let joined = all.map(|category| {
        assert_eq!(queue.pop_of(ms(1), category, |_| {}).map(|p| data(&p).category), Some(category));
        1 + (0..200).take_while(|_| queue.take_within(ms(1), category, (NodeId(1), 9000), |_| {}).is_some()).count()
    });
    assert_eq!(joined, [64, 63, 27, 27]);
    assert_eq!(queue.len(), 800 - 64 - 63 - 27 - 27);
    // If no category is given, the most urgent one comes first.
    assert_eq!(queue.pop(ms(1), |_| {}).map(|p| data(&p).category), Some(Category::Voice));
}

/// Time of the first drop from a standing queue in ms, if one packet leaves every 10 ms.
fn first_drop(mbps: u64, arrives: bool, config: FqCodelAirtimeConfig) -> Option<u64> {
    let mut queue = queues(config);
    fill(&mut queue, 1, 200);
    for _ in 0..20 {
        attempt(&mut queue, 1, mbps, 0, arrives, 0);
    }
    let mut dropped = None;
    for step in 1..=100 {
        queue.pop(ms(10 * step), |_| dropped = dropped.or(Some(10 * step))).unwrap();
    }
    dropped
}

#[test]
fn codel_bears_more_on_slow_links() {
    let default = FqCodelAirtimeConfig::default();
    // The delay is above 20 ms since 20 ms, for 100 ms; or above 50 ms since 50 ms, for 300 ms.
    assert_eq!(first_drop(65, true, default), Some(120));
    assert_eq!(first_drop(12, true, default), Some(120));
    assert_eq!(first_drop(11, true, default), Some(350));
    // At 65 Mbit/s nothing arrives: after 20 attempts the share is (7/8)^20, 7 %.
    assert_eq!(first_drop(65, false, default), Some(350));
    let never = FqCodelAirtimeConfig { slow_below: Rate::from_bps(0), ..default };
    assert_eq!(first_drop(6, true, never), Some(120));
    let (slow_target, slow_interval) = (Duration::from_millis(100), Duration::from_millis(200));
    assert_eq!(first_drop(6, true, FqCodelAirtimeConfig { slow_target, slow_interval, ..default }), Some(300));
}

#[test]
fn slow_neighbours_are_not_marked() {
    for (mbps, is_marked) in [(65, true), (6, false)] {
        let mut queue = queues(FqCodelAirtimeConfig::default());
        for id in 0..200 {
            queue.push(ms(0), towards(1, Parcel { id, size: 1500, ect: true, ..Parcel::default() }), |_| {});
        }
        attempt(&mut queue, 1, mbps, 0, true, 0);
        let (mut marked, mut dropped) = (0, 0);
        for step in 1..=100 {
            marked += u32::from(data(&queue.pop(ms(10 * step), |_| dropped += 1).unwrap()).ce);
        }
        // Slow: at 350, 650 and 862 ms (300 ms divided by the root of two later). Otherwise at 120,
        // 220, 290 ms and so on.
        assert!(
            if is_marked { marked > 10 && dropped == 0 } else { (marked, dropped) == (0, 3) },
            "{marked} {dropped}"
        );
    }
}

#[test]
fn broadcasts_take_their_turn_by_the_basic_rate() {
    let mut queue = queues(FqCodelAirtimeConfig::default());
    fill(&mut queue, 1, 100);
    for _ in 0..100 {
        queue.push(ms(0), routing(), |_| {});
    }
    let (mut air, mut broadcasts) = ([0.0; 2], 0);
    for _ in 0..100 {
        let packet = pop(&mut queue).unwrap();
        if packet.next_hop.is_broadcast() {
            broadcasts += 1;
            air[1] += f64::from(packet.body.size() + 38) * 8.0 / 6.0;
        } else {
            attempt(&mut queue, 1, 65, 226, true, 0);
            air[0] += 226.0;
        }
    }
    let difference: f64 = air[0] - air[1];
    assert!(broadcasts > 20 && difference.abs() < 2.0 * (256.0 + 226.0), "{air:?} us, {broadcasts} broadcasts");
}

#[test]
fn without_room_the_largest_flow_of_all_neighbours_loses() {
    let queues_of = FqCodelConfig { limit: 30, ..FqCodelAirtimeConfig::default().queues };
    let mut queue = queues(FqCodelAirtimeConfig { queues: queues_of, ..FqCodelAirtimeConfig::default() });
    fill(&mut queue, 1, 10);
    for id in 0..20 {
        queue.push(ms(0), towards(2, Parcel { id, size: 100, ..Parcel::default() }), |_| panic!("there is room"));
    }
    let mut lost = Vec::new();
    queue
        .push(ms(0), towards(3, Parcel { size: 100, ..Parcel::default() }), |p| lost.push((p.next_hop.0, data(&p).id)));
    assert_eq!(lost, [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
    assert_eq!(queue.len(), 26);
}

#[test]
fn nothing_is_lost_or_counted_twice() {
    for (seed, edca) in (1..=20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let queues_of = FqCodelConfig { limit: 60, flows: 4, ..FqCodelAirtimeConfig::default().queues };
        let config = FqCodelAirtimeConfig { queues: queues_of, ..FqCodelAirtimeConfig::default() };
        let mut queue = FqCodelAirtime::new(config, &timing(edca));
        let all = Category::URGENT_FIRST;
        let (mut pushed, mut left, mut lost, mut taken, mut in_hand) = (0u32, 0u32, 0u32, 0u32, None);
        for step in 0..4000u64 {
            let now: Time = ms(step);
            match rng.below(12) {
                0..=5 => {
                    let category = all[rng.below(4) as usize];
                    let size = 40 + rng.below(1460) as u32;
                    let parcel = Parcel { id: pushed, flow: rng.below(7) as u16, size, category, ..Parcel::default() };
                    let to = 1 + rng.below(4) as u16;
                    queue.push(now, towards(if to == 4 { NodeId::BROADCAST.0 } else { to }, parcel), |_| lost += 1);
                    pushed += 1;
                }
                6..=7 => {
                    let category = all[rng.below(4) as usize];
                    in_hand = queue.pop_of(now, category, |_| lost += 1).map(|p| (category, p.next_hop));
                    left += u32::from(in_hand.is_some());
                }
                8..=9 => {
                    let Some((category, to)) = in_hand else { continue };
                    let room = (to, 40 + rng.below(1460) as u32);
                    left += u32::from(queue.take_within(now, category, room, |_| lost += 1).is_some());
                }
                10 => {
                    let Some((category, to)) = in_hand.take() else { continue };
                    let rate = Rate::from_mbps(1 + rng.below(65));
                    let (bytes, acknowledged) = (1538, rng.below(1539) as u32);
                    let carried = AttemptContent { category, rate, bytes, acknowledged, held: rng.below(3000) as u32 };
                    queue.on_attempt(to, Duration::from_micros(rng.below(5000)), &carried);
                }
                // A neighbour is gone.
                _ => {
                    let to = NodeId(1 + rng.below(3) as u16);
                    while rng.below(20) > 0 && queue.take_for(to).is_some() {
                        taken += 1;
                    }
                }
            }
            assert!(queue.len() <= 60, "seed {seed}");
            assert_eq!(pushed, left + lost + taken + queue.len() as u32, "seed {seed}");
        }
        while queue.pop(ms(100_000), |_| lost += 1).is_some() {
            left += 1;
        }
        assert_eq!(pushed, left + lost + taken, "seed {seed}");
        assert!(queue.is_empty() && lost > 0 && taken > 0, "seed {seed}: {lost} {taken}");
    }
}

#[test]
fn behind_the_interface_it_asks_for_attempts_and_codel_is_the_reason() {
    let queue = QueueConfig::FqCodelAirtime(FqCodelAirtimeConfig::default());
    let mut link: Discipline<Parcel> = discipline(queue, MarkerConfig::None);
    assert!(link.wants_attempts() && !link.holds_back() && link.next_wakeup() == Time::NEVER);
    for id in 0..200 {
        link.push(ms(0), towards(1, Parcel { id, size: 1500, ..Parcel::default() }), None, |_, _| {
            panic!("there is room")
        });
    }
    let mut dropped = 0;
    for step in 1..=60 {
        let lost = |_, why| {
            assert_eq!(why, QueueLoss::CoDel);
            dropped += 1;
        };
        assert!(link.pop(ms(10 * step), lost).is_some());
    }
    assert_eq!(link.len(), 200 - 60 - dropped);
    assert!(dropped > 3);
}

#[test]
fn parameters_out_of_range_are_named() {
    let fails = |config: FqCodelAirtimeConfig| config.check().map_err(|e| e.name.into_owned());
    let default = FqCodelAirtimeConfig::default();
    let ms = Duration::from_millis;
    assert_eq!(fails(default), Ok(()));
    let queues_of = FqCodelConfig { quantum: 0, ..default.queues };
    assert_eq!(fails(FqCodelAirtimeConfig { queues: queues_of, ..default }), Err("quantum".to_owned()));
    assert_eq!(
        fails(FqCodelAirtimeConfig { airtime_quantum: Duration::ZERO, ..default }),
        Err("airtime_quantum".to_owned())
    );
    assert_eq!(fails(FqCodelAirtimeConfig { aql_low: ms(11_000), ..default }), Err("aql_low".to_owned()));
    assert_eq!(fails(FqCodelAirtimeConfig { aql_high: ms(4), ..default }), Err("aql_high".to_owned()));
    assert_eq!(fails(FqCodelAirtimeConfig { aql_threshold: ms(11_000), ..default }), Err("aql_threshold".to_owned()));
    assert_eq!(fails(FqCodelAirtimeConfig { slow_target: Duration::ZERO, ..default }), Err("slow_target".to_owned()));
    let slow = FqCodelAirtimeConfig { slow_target: ms(100), slow_interval: ms(50), ..default };
    assert_eq!(fails(slow), Err("slow_interval".to_owned()));
}
