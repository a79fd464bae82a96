//! Tests of probes: the events that they receive, and that they do not change the run.

use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::{Position, QueueConfig};
use meshpace_mesh::mac::FrameKind;
use meshpace_mesh::{Body, MeshConfig, Packet};
use meshpace_sim::{Config, Event, Flow, Interests, Probe, SimPacket, Traffic, run, run_sampled, run_with};
use meshpace_transport::names;
use std::cell::RefCell;

/// A transfer over four hops, in which frames collide.
fn config(queue: QueueConfig) -> Config {
    let mut mesh = MeshConfig::default();
    mesh.link.queue = queue;
    let flow = Flow {
        from: NodeId(0),
        to: NodeId(4),
        transport: names::lookup("newreno").unwrap(),
        traffic: Traffic::Ftp,
        start: Time::ZERO,
        start_jitter: Duration::ZERO,
        stop: None,
        dscp: 0,
    };
    Config {
        duration: Duration::from_millis(10_050),
        positions: (0..5).map(|node| Position { x: 200.0 * f64::from(node), y: 0.0 }).collect(),
        mesh,
        flows: vec![flow],
        ..Config::default()
    }
}

/// Counts events by their kind.
#[derive(Clone, PartialEq, Default, Debug)]
struct Count {
    interests: Interests,
    frames: u64,
    decoded: u64,
    collisions: u64,
    failures: u64,
    sent: u64,
    /// Number of ACKs and broadcasts on the air.
    confirmed: u64,
    arrived: u64,
}

impl Probe<SimPacket> for Count {
    fn interests(&self) -> Interests {
        self.interests
    }

    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        match event {
            Event::OnAir { frame } => {
                self.frames += 1;
                self.confirmed += u64::from(frame.kind == FrameKind::Ack || frame.to.is_broadcast());
            }
            Event::Sent { .. } => self.sent += 1,
            Event::Decoded { .. } => self.decoded += 1,
            Event::Collision { .. } => self.collisions += 1,
            Event::LinkFailure { .. } => self.failures += 1,
            Event::Deliver { packet, .. } => self.arrived += u64::from(!packet.is_pure_ack()),
            Event::Loss { lost, .. } => assert!(matches!(lost.body, Body::Data(_)), "static routes send nothing"),
            Event::Route { .. } | Event::Inject { .. } => {}
        }
    }
}

#[test]
fn whoever_watches_is_told_of_everything_and_changes_nothing() {
    for queue in [QueueConfig::DropTail, QueueConfig::Llap(<_>::default())] {
        let config = config(queue);
        let alone = run(&config, 1);
        let mut count = Count { interests: Interests::ALL, ..Count::default() };
        let watched = run_with(&config, 1, &mut count);
        assert_eq!(format!("{alone:?}"), format!("{watched:?}"));
        let Count { frames, collisions, failures, arrived, .. } = count;
        let counters = alone.counters;
        assert_eq!((frames, collisions, failures), (alone.frames, counters.collisions, counters.mac_drops));
        // A delivery takes four hops, and no transmission is complete without a confirmation.
        assert!(count.sent >= 4 * arrived && count.sent <= count.confirmed, "{count:?}");
        assert!(collisions > 0 && arrived * 1460 >= alone.flows[0].delivered_bytes, "{count:?}");
    }
}

#[test]
fn receptions_are_told_only_to_those_who_want_them() {
    // The second queue discipline overhears frames, so its stations are notified in any case.
    for queue in [QueueConfig::DropTail, QueueConfig::Llap(<_>::default())] {
        let mut count = Count::default();
        let outcome = run_with(&config(queue), 1, &mut count);
        assert!(count.frames == outcome.frames && outcome.counters.collisions > 0);
        assert_eq!((count.decoded, count.collisions), (0, 0), "{queue:?}");
    }
}

#[test]
fn samples_are_taken_at_the_beginning_at_every_step_and_at_the_end() {
    let config = config(QueueConfig::DropTail);
    let watched = RefCell::new(Count::default());
    let (mut times, mut before) = (Vec::new(), 0);
    let outcome = run_sampled(&config, 1, &mut &watched, Duration::from_secs(3), &mut |at, world| {
        let frames = watched.borrow().frames;
        assert_eq!(frames, world.engine().frames(), "the probe can be looked at meanwhile");
        assert!(frames >= before, "{frames}");
        before = frames;
        times.push(at.0 / 1_000_000);
    });
    assert_eq!(times, [0, 3_000, 6_000, 9_000, 10_050]);
    assert_eq!((watched.into_inner().frames, before), (outcome.frames, outcome.frames));
    assert_eq!(format!("{:?}", run(&config, 1)), format!("{outcome:?}"));
}
