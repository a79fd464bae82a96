//! Flows of datagrams between two ends of a session, beside its streams.

use super::super::carrier::Carrier;
use super::super::flow::{Class, QUEUE};
use super::super::frame::{Frame, Reader};
use super::super::machine::{FLOWS, Session, Side, TURN};
use super::{World, open};
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;

/// One way of a flow: the lengths of what was put, and the numbers of what has come.
#[derive(Default)]
struct Carried {
    put: Vec<usize>,
    came: Vec<usize>,
}

/// Two ends, with flows beside their streams.
struct Flows {
    world: World,
    classes: BTreeMap<u32, Class>,
    /// By flow, and by the end that sends.
    carried: BTreeMap<u32, [Carried; 2]>,
}

/// What stands in a datagram.
fn content(flow: u32, end: usize, number: usize, length: usize) -> Vec<u8> {
    let head = [&flow.to_be_bytes()[..], &[end as u8], &(number as u32).to_be_bytes()].concat();
    head.into_iter().chain((0..).map(|at: usize| (at * 7 + number) as u8)).take(length.max(9)).collect()
}

impl Flows {
    fn new(seed: u64) -> Flows {
        Flows { world: World::new(seed), classes: BTreeMap::new(), carried: BTreeMap::new() }
    }

    fn open(&mut self, class: Class) -> u32 {
        let flow = self.world.ends[0].open_flow(self.world.now, class, "host:53").unwrap();
        self.classes.insert(flow, class);
        self.carried.insert(flow, Default::default());
        flow
    }

    fn put(&mut self, end: usize, flow: u32, length: usize) {
        let put = &mut self.carried.get_mut(&flow).unwrap()[end].put;
        // The far end learns of the flow first.
        if self.world.ends[end].has_flow(flow) {
            let bytes = content(flow, end, put.len(), length);
            self.world.ends[end].send_datagram(self.world.now, flow, &bytes).unwrap();
            put.push(bytes.len());
        }
    }

    fn take(&mut self) {
        for end in 0..2 {
            for (flow, class, target) in self.world.ends[end].take_asked_flows() {
                assert_eq!((end, class, &target[..]), (1, self.classes[&flow], "host:53"));
            }
            for (flow, bytes) in self.world.ends[end].take_datagrams() {
                let carried = &mut self.carried.get_mut(&flow).unwrap()[1 - end];
                let number = u32::from_be_bytes(*bytes[5..].first_chunk().unwrap()) as usize;
                assert!(bytes == content(flow, 1 - end, number, carried.put[number]), "flow {flow}, {number}");
                carried.came.push(number);
            }
        }
    }

    /// All that waits arrives, or is given up.
    fn wind_up(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "it never ends");
            self.world.now += Duration::from_millis(10);
            for end in 0..2 {
                for carrier in Carrier::ALL {
                    self.world.carry(end, carrier);
                    self.world.hand_over(end, carrier, 4000);
                }
            }
            self.take();
            let is_empty = |way: &super::Way| way.flying.is_empty() && way.under_way == 0;
            if self.world.ends.iter().all(|end| end.kept_datagrams() == 0)
                && self.world.ways.iter().flatten().all(is_empty)
            {
                break;
            }
        }
    }
}

#[test]
fn datagrams_arrive_whole_in_order_and_once_whatever_the_carriers_do() {
    let life = Duration::from_millis(400);
    let (mut came, mut dropped) = (0, [0; 3]);
    for seed in 0..60 {
        let mut flows = Flows::new(seed);
        for step in 0..1500 {
            // Streams of the same session do what they like.
            flows.world.step(0);
            flows.take();
            if flows.classes.len() < 9 && step % 10 == 0 {
                let class = [Class::Reliable, Class::Expiring(life), Class::Latest][flows.classes.len() % 3];
                flows.open(class);
            }
            for end in 0..2 {
                let flow = 1 + flows.world.below(9) as u32;
                let length = match flows.world.below(40) {
                    0 => flows.world.below(65_536),
                    1..8 => flows.world.below(4000),
                    _ => flows.world.below(200),
                };
                if flows.classes.contains_key(&flow) {
                    flows.put(end, flow, length as usize);
                }
            }
        }
        flows.wind_up();
        let counted = flows.world.ends.each_ref().map(Session::datagrams);
        for end in 0..2 {
            let put: usize = flows.carried.values().map(|ways| ways[end].put.len()).sum();
            assert_eq!(counted[end].sent, counted[1 - end].received);
            assert_eq!(counted[end].sent_bytes, counted[1 - end].received_bytes);
            assert_eq!(counted[end].sent + counted[end].dropped, put as u64, "seed {seed}: each is sent or given up");
        }
        for (flow, ways) in &flows.carried {
            for Carried { put, came: got } in ways {
                assert!(got.is_sorted_by(|a, b| a < b), "flow {flow} of seed {seed}: one overtakes another");
                came += got.len();
                let lost = put.len() - got.len();
                match flows.classes[flow] {
                    // So much is never put that its queue is full.
                    Class::Reliable => dropped[0] += lost,
                    Class::Expiring(_) => dropped[1] += lost,
                    Class::Latest => {
                        assert_eq!(got.last().map(|last| last + 1), Some(put.len()), "the last one arrives");
                        dropped[2] += lost;
                    }
                }
            }
        }
    }
    assert!(came > 40_000, "{came}: too little to say anything");
    assert!(dropped[0] == 0 && dropped[1] > 100 && dropped[2] > 100, "{dropped:?}");
}

/// Frames that an end hands to a carrier with so much room.
fn handed(world: &mut World, end: usize, carrier: Carrier, room: usize) -> Vec<Frame<'static>> {
    let (mut out, mut frames) = (Vec::new(), Vec::new());
    world.ends[end].fill(world.now, carrier, room, &mut out);
    let (mut reader, mut rest) = (Reader::default(), &out[..]);
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        frames.push(match frame {
            Frame::Data { stream, offset, .. } => Frame::Data { stream, offset, bytes: b"" },
            Frame::Datagram { flow, bytes } => Frame::Datagram { flow, bytes },
            Frame::Flow { flow, class, target } => Frame::Flow { flow, class, target },
            other => panic!("{other:?}"),
        });
    }
    frames
}

fn flow_of(frame: &Frame<'_>) -> Option<u32> {
    if let Frame::Datagram { flow, .. } = frame { Some(*flow) } else { None }
}

#[test]
fn a_small_datagram_beside_bulk_is_the_next_thing_by_express() {
    let mut world = open(1);
    world.write(0, 1, 100_000);
    let flow = world.ends[0].open_flow(world.now, Class::Latest, "host:53").unwrap();
    world.ends[0].send_datagram(world.now, flow, b"old").unwrap();
    world.ends[0].send_datagram(world.now, flow, b"new").unwrap();
    // Its target goes before it; the old one goes nowhere.
    let frames = handed(&mut world, 0, Carrier::Express, 1400);
    let told = Frame::Flow { flow, class: Class::Latest, target: "host:53".into() };
    assert_eq!(frames, [told, Frame::Datagram { flow, bytes: b"new".to_vec() }]);
    // The next leaves although nothing has been acknowledged.
    world.ends[0].send_datagram(world.now, flow, b"newest").unwrap();
    let frames = handed(&mut world, 0, Carrier::Express, 1400);
    assert_eq!(frames, [Frame::Datagram { flow, bytes: b"newest".to_vec() }]);
}

#[test]
fn no_datagram_goes_before_the_far_end_knows_its_flow() {
    let mut world = open(1);
    let flow = world.ends[0].open_flow(world.now, Class::Reliable, &format!("{}:53", "h".repeat(200))).unwrap();
    world.ends[0].send_datagram(world.now, flow, b"small").unwrap();
    // There is room for the datagram and not for the target, by either carrier.
    for carrier in Carrier::ALL {
        assert_eq!(handed(&mut world, 0, carrier, 100), []);
    }
    assert_eq!(handed(&mut world, 0, Carrier::Express, 1400).len(), 2);
}

#[test]
fn bulk_of_streams_and_flows_takes_turns() {
    let mut world = open(1);
    let flow = world.ends[0].open_flow(world.now, Class::Reliable, "host:53").unwrap();
    handed(&mut world, 0, Carrier::Express, 1400);
    world.ends[0].on_under_way(world.now, Carrier::Express, 0);
    world.write(0, 1, 100_000);
    (0..100).for_each(|_| world.ends[0].send_datagram(world.now, flow, &[7; 1000]).unwrap());
    // So much is not small, and it is in the other line then.
    assert_eq!(handed(&mut world, 0, Carrier::Express, 4000), []);
    let mut out = Vec::new();
    world.ends[0].fill(world.now, Carrier::Bulk, 32_000, &mut out);
    let (mut reader, mut rest, mut of) = (Reader::default(), &out[..], [0; 2]);
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        match frame {
            Frame::Data { bytes, .. } => of[0] += bytes.len(),
            Frame::Datagram { bytes, .. } => of[1] += bytes.len(),
            other => panic!("{other:?}"),
        }
    }
    assert!(of[0].abs_diff(of[1]) <= 2 * TURN && of[1] > 10_000, "{of:?} bytes");
}

#[test]
fn what_expires_is_not_sent_late() {
    let mut world = open(1);
    let life = Duration::from_millis(100);
    let flow = world.ends[0].open_flow(world.now, Class::Expiring(life), "host:53").unwrap();
    handed(&mut world, 0, Carrier::Express, 1400);
    world.ends[0].send_datagram(world.now, flow, b"old").unwrap();
    world.now += Duration::from_millis(50);
    world.ends[0].send_datagram(world.now, flow, b"young").unwrap();
    world.now += Duration::from_millis(50);
    let frames = handed(&mut world, 0, Carrier::Express, 1400);
    assert_eq!(frames, [Frame::Datagram { flow, bytes: b"young".to_vec() }]);
    let counted = world.ends[0].datagrams();
    assert_eq!((counted.sent, counted.dropped, counted.sent_bytes), (1, 1, 5));
}

#[test]
fn nothing_gets_into_a_datagram_that_is_handed_over_in_pieces() {
    let mut world = open(2);
    let flow = world.ends[0].open_flow(world.now, Class::Reliable, "host:53").unwrap();
    handed(&mut world, 0, Carrier::Express, 1400);
    world.ends[0].on_under_way(world.now, Carrier::Express, 0);
    let large: Vec<u8> = (0..65_507).map(|at: u32| (at / 3) as u8).collect();
    world.ends[0].send_datagram(world.now, flow, &large).unwrap();
    world.write(0, 1, 50_000);
    let mut out = Vec::new();
    for room in (0..200).map(|round| round * 37 % 2000) {
        let before = out.len();
        world.ends[0].fill(world.now, Carrier::Bulk, room, &mut out);
        assert!(out.len() - before <= room);
    }
    let (mut reader, mut rest, mut whole) = (Reader::default(), &out[..], 0);
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        if let Frame::Datagram { bytes, .. } = &frame {
            assert!(*bytes == large);
        }
        whole += u32::from(flow_of(&frame) == Some(flow));
    }
    assert_eq!(whole, 1);
}

#[test]
fn a_flow_that_is_over_is_so_at_both_ends_and_others_are_not() {
    for ender in 0..2 {
        let mut flows = Flows::new(3);
        let (first, second) = (flows.open(Class::Reliable), flows.open(Class::Reliable));
        flows.wind_up();
        (0..2).for_each(|end| (0..50).for_each(|_| flows.put(end, first, 5000)));
        for _ in 0..20 {
            flows.world.now += Duration::from_millis(50);
            for end in 0..2 {
                for carrier in Carrier::ALL {
                    flows.world.hand_over(end, carrier, 3000);
                    flows.world.carry(end, carrier);
                }
            }
        }
        flows.world.ends[ender].leave(first, 2);
        flows.wind_up();
        assert_eq!(flows.world.ends[1 - ender].take_left(), [(first, 2)]);
        assert!(flows.world.ends.iter().all(|end| !end.has_flow(first) && end.has_flow(second)));
        assert!(flows.world.ends[1 - ender].send_datagram(flows.world.now, first, b"x").is_err());
        let counted = flows.world.ends.each_ref().map(Session::datagrams);
        assert!(counted.iter().all(|end| end.flows == 1 && end.dropped > 0), "{counted:?}");
        flows.put(1 - ender, second, 100);
        flows.wind_up();
        assert_eq!(flows.carried[&second][1 - ender].came, [0]);
    }
}

#[test]
fn flows_and_what_waits_in_them_are_bounded() {
    let mut session = Session::new(Side::Connects);
    let flows: Vec<u32> = (0..2 * FLOWS).map_while(|_| session.open_flow(Time::ZERO, Class::Latest, "a:1")).collect();
    assert_eq!(flows.len(), FLOWS);
    let mut session = Session::new(Side::Connects);
    for class in [Class::Reliable, Class::Expiring(Duration::from_secs(3600)), Class::Latest] {
        let flow = session.open_flow(Time::ZERO, class, "a:1").unwrap();
        (0..100).for_each(|_| session.send_datagram(Time::ZERO, flow, &[0; 65_507]).unwrap());
    }
    assert!(session.kept_datagrams() <= 2 * QUEUE + 65_507, "{} bytes", session.kept_datagrams());
    // A peer that opens without end and hears nothing is left.
    let mut session = Session::new(Side::Accepts);
    let opened = (1..).take_while(|number| {
        let mut said = Vec::new();
        Frame::Flow { flow: *number, class: Class::Latest, target: "a:1".into() }.write(&mut said);
        session.on_bytes(Time::ZERO, Carrier::Express, &said).is_ok()
    });
    assert_eq!(opened.count(), FLOWS + 8192);
    assert_eq!((session.take_asked_flows().len(), session.datagrams().flows), (FLOWS, FLOWS as u64));
}
