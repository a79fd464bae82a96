//! Tests of FQ-CoDel against the rules of RFC 8290, section 4.

use super::parcel::{Parcel, data, discipline, id, ms, routing, towards};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng};
use meshpace_mesh::Body;
use meshpace_mesh::Queued;
use meshpace_mesh::link::fq_codel::{FqCodel, FqCodelConfig};
use meshpace_mesh::link::{MarkerConfig, QueueConfig, QueueLoss};

fn packet(flow: u16, id: u32, size: u32) -> Queued<Parcel> {
    towards(1, Parcel { id, flow, size, ..Parcel::default() })
}

fn fill(queue: &mut FqCodel<Parcel>, packets: impl IntoIterator<Item = Queued<Parcel>>) {
    for packet in packets {
        queue.push(ms(0), packet, |lost| panic!("{lost:?} does not fit"));
    }
}

/// Dequeues `n` packets at once. No packet has waited long.
fn take(queue: &mut FqCodel<Parcel>, n: usize) -> Vec<Parcel> {
    (0..n).filter_map(|_| queue.pop(ms(1), |lost| panic!("{lost:?} dropped"))).map(|p| data(&p)).collect()
}

#[test]
fn flows_get_equal_bytes_whatever_their_packets_4_2() {
    let mut queue = FqCodel::new(FqCodelConfig::default());
    fill(&mut queue, (0..200).map(|n| packet(0, n, 1500)));
    fill(&mut queue, (0..1000).map(|n| packet(1, n, 300)));
    let mut bytes = [0u32; 2];
    for parcel in take(&mut queue, 300) {
        bytes[usize::from(parcel.flow)] += parcel.size;
    }
    // Deficit round robin: the difference is never more than a quantum and a packet of each.
    assert!(bytes[0].abs_diff(bytes[1]) <= 1514 + 1500, "{bytes:?}");
    assert!(bytes[0] > 50_000);
}

#[test]
fn packets_of_a_flow_stay_in_order() {
    let mut queue = FqCodel::new(FqCodelConfig::default());
    fill(&mut queue, (0..60).map(|n| packet((n % 3) as u16, n, 400 + n)));
    let mut last = [None; 3];
    for parcel in take(&mut queue, 60) {
        let before = last[usize::from(parcel.flow)].replace(parcel.id);
        assert!(before < Some(parcel.id));
    }
    assert!(queue.is_empty());
}

#[test]
fn a_new_flow_goes_first_until_its_quantum_is_spent_4_2() {
    let mut queue = FqCodel::new(FqCodelConfig::default());
    fill(&mut queue, (0..10).map(|n| packet(0, n, 1000)));
    // Flow 0 uses its 1514 bytes with its second packet and becomes old when it is examined next.
    take(&mut queue, 2);
    fill(&mut queue, (0..4).map(|n| packet(1, n, 1000)));
    let flows: Vec<u16> = take(&mut queue, 6).iter().map(|p| p.flow).collect();
    // Flow 1 is new and sends two packets. Then both flows are old and take turns. Flow 0 was the
    // first at the end of the old list, with 1514 - 2000 + 1514 = 1028 bytes: two packets lead to
    // -972. The same holds for flow 1.
    assert_eq!(flows, [1, 1, 0, 0, 1, 1]);
}

#[test]
fn a_flow_that_empties_must_go_round_the_old_list_before_it_is_new_again_4_2() {
    let mut queue = FqCodel::new(FqCodelConfig::default());
    fill(&mut queue, (0..10).map(|n| packet(0, n, 1514)));
    // Flow 0 uses its quantum with one packet and becomes old.
    take(&mut queue, 1);
    fill(&mut queue, [packet(1, 0, 100)]);
    assert_eq!(take(&mut queue, 1)[0].flow, 1);
    // Flow 1 is found empty and moves to the old list behind flow 0. A packet that arrives now does
    // not make it new.
    assert_eq!(take(&mut queue, 1)[0].flow, 0);
    fill(&mut queue, [packet(1, 1, 100)]);
    assert_eq!(take(&mut queue, 1)[0].flow, 1, "flow 0 has spent its quantum, flow 1 is next in the round");
    assert_eq!(take(&mut queue, 1)[0].flow, 0);
}

#[test]
fn both_directions_of_a_flow_are_flows_and_routing_is_one() {
    let mut queue = FqCodel::new(FqCodelConfig::default());
    fill(&mut queue, (0..20).map(|n| packet(0, n, 1514)));
    take(&mut queue, 1);
    let back = Parcel { id: 100, source: NodeId(9), destination: NodeId(0), size: 40, ack: true, ..Parcel::default() };
    fill(&mut queue, [towards(2, back), routing()]);
    assert_eq!(take(&mut queue, 1)[0].id, 100);
    assert!(matches!(queue.pop(ms(1), |_| {}).map(|p| p.body), Some(Body::Routing(_))));
    assert_eq!(take(&mut queue, 1)[0].id, 1);
}

#[test]
fn without_room_the_longest_queue_loses_half_from_its_head_4_1() {
    let mut queue = FqCodel::new(FqCodelConfig { limit: 30, ..FqCodelConfig::default() });
    fill(&mut queue, (0..10).map(|n| packet(0, n, 1500)));
    // This flow has more packets but fewer bytes.
    fill(&mut queue, (0..20).map(|n| packet(1, n, 100)));
    let mut lost = Vec::new();
    queue.push(ms(0), packet(2, 0, 100), |p| lost.push(data(&p)));
    assert_eq!(lost.iter().map(|p| (p.flow, p.id)).collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!(queue.len(), 26);
    // At most 64 packets are dropped at once.
    let mut queue = FqCodel::new(FqCodelConfig { limit: 1000, ..FqCodelConfig::default() });
    fill(&mut queue, (0..1000).map(|n| packet(0, n, 1500)));
    let mut lost = 0;
    queue.push(ms(0), packet(0, 1000, 1500), |_| lost += 1);
    assert_eq!(lost, 64);
}

#[test]
fn a_standing_queue_is_dropped_from_or_marked_5_2_6() {
    // 200 packets of 1500 bytes leave at intervals of 10 ms. All packets wait longer than 5 ms from
    // the start, so the first is chosen at the first departure that is 100 ms after the first one
    // above the target.
    for (ect, ecn, marked) in [(false, true, false), (true, true, true), (true, false, false)] {
        let config = FqCodelConfig { ecn, ..FqCodelConfig::default() };
        let mut link = discipline(QueueConfig::FqCodel(config), MarkerConfig::None);
        for n in 0..200 {
            let parcel = Parcel { id: n, ect, size: 1500, ..Parcel::default() };
            link.push(ms(0), towards(1, parcel), None, |_, _| panic!("there is room"));
        }
        let (mut chosen, mut count) = (Vec::new(), 0);
        for step in 1..=60 {
            let now = 10 * step;
            let left = link.pop(ms(now), |lost, why| {
                assert_eq!(why, QueueLoss::CoDel);
                assert!(!marked);
                chosen.push((id(&lost), now));
            });
            let left = data(&left.expect("many wait"));
            count += 1;
            if left.ce {
                assert!(marked);
                chosen.push((left.id, now));
            }
        }
        // The delay is above the target since 10 ms, so a packet is chosen at 110 ms. The next ones
        // follow after 100, 70.7, 57.7, 50, 44.7, 40.8, 37.8 ms, each at the first departure after
        // that time: 210, 280.7, 338.4, 388.4, 433.2, 474.0, 511.8, 547.1 (+35.4), 580.5 (+33.3)
        // ms.
        let times: Vec<u64> = chosen.iter().map(|c| c.1).collect();
        assert_eq!(times, [110, 210, 290, 340, 390, 440, 480, 520, 550, 590], "ect {ect} ecn {ecn}");
        assert_eq!(link.len(), 200 - count - if marked { 0 } else { chosen.len() });
    }
}

#[test]
fn an_aggregate_takes_packets_out_of_turn_and_flows_get_equal_bytes_all_the_same() {
    // Flows 0 and 1 go to node 1, flow 2 to node 2. The MAC fills each aggregate with up to 16
    // packets for the same neighbour.
    let mut queue = FqCodel::new(FqCodelConfig::default());
    for n in 0..900 {
        let (flow, to) = [(0, 1), (1, 1), (2, 2)][n as usize % 3];
        queue.push(ms(0), towards(to, Parcel { id: n, flow, size: 1500, ..Parcel::default() }), |_| {});
    }
    let (mut bytes, mut sizes) = ([0u32; 3], Vec::new());
    for _ in 0..24 {
        let first = queue.pop(ms(1), |_| {}).unwrap();
        let mut aggregate = vec![data(&first)];
        while aggregate.len() < 16
            && let Some(next) = queue.take_within(ms(1), (first.next_hop, 1500), |_| {})
        {
            assert_eq!(next.next_hop, first.next_hop);
            aggregate.push(data(&next));
        }
        assert!(queue.take_within(ms(1), (first.next_hop, 1499), |_| {}).is_none(), "too large");
        sizes.push(aggregate.len());
        aggregate.iter().for_each(|parcel| bytes[usize::from(parcel.flow)] += parcel.size);
    }
    assert_eq!(sizes, [16; 24]);
    // The difference is never more than an aggregate and a quantum.
    let (least, most) = (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap());
    assert!(most - least <= 16 * 1500 + 1514, "{bytes:?}");
}

#[test]
fn nothing_is_lost_or_counted_twice() {
    for seed in 1..=20 {
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let config = FqCodelConfig { limit: 40, flows: 4, ..FqCodelConfig::default() };
        let mut queue = FqCodel::new(config);
        let (mut pushed, mut left, mut lost, mut taken) = (0u32, 0u32, 0u32, 0u32);
        for step in 0..2000u64 {
            match rng.below(10) {
                0..=5 => {
                    let flow = rng.below(7) as u16;
                    queue.push(ms(step), packet(flow, pushed, 40 + rng.below(1460) as u32), |_| lost += 1);
                    pushed += 1;
                }
                6..=8 => left += u32::from(queue.pop(ms(step), |_| lost += 1).is_some()),
                _ => taken += u32::from(rng.below(20) == 0 && queue.take_for(NodeId(1)).is_some()),
            }
            assert!(queue.len() <= 40, "seed {seed}");
            assert_eq!(pushed, left + lost + taken + queue.len() as u32, "seed {seed}");
        }
        while queue.pop(ms(10_000), |_| lost += 1).is_some() {
            left += 1;
        }
        assert_eq!(pushed, left + lost + taken, "seed {seed}");
        assert!(queue.is_empty() && lost > 0 && taken > 0, "seed {seed}");
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    let fails = |config: FqCodelConfig| config.check().map_err(|e| e.name.into_owned());
    let default = FqCodelConfig::default();
    assert_eq!(fails(default), Ok(()));
    assert_eq!(fails(FqCodelConfig { quantum: 0, ..default }), Err("quantum".to_owned()));
    assert_eq!(fails(FqCodelConfig { target: Duration::ZERO, ..default }), Err("target".to_owned()));
    assert_eq!(fails(FqCodelConfig { interval: Duration::from_millis(1), ..default }), Err("interval".to_owned()));
    assert_eq!(fails(FqCodelConfig { limit: 0, ..default }), Err("limit".to_owned()));
    assert_eq!(fails(FqCodelConfig { flows: 70_000, ..default }), Err("flows".to_owned()));
}
