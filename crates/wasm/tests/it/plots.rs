//! Data of the plots agree with the measurement of the run itself.

use meshpace_core::Time;
use meshpace_wasm::air::AirTime;
use meshpace_wasm::history::History;
use meshpace_wasm::load::{Files, Loaded};
use meshpace_wasm::playback::Playback;
use meshpace_wasm::report::{self, NODE_FIELDS};
use meshpace_wasm::watch::Event;
use std::collections::BTreeMap;

/// Two flows over a chain, of which one sends files: connections one after the other.
const SCENARIO: &str = "duration = '20 s'\n[topology]\nkind = 'chain'\nhops = 5\n[routing]\nprotocol = 'aodv'\n\
                        [[flow]]\ntransport = 'newreno'\n[[flow]]\ntransport = 'quiet-train'\nfrom = 5\nto = 0\n";

fn play(text: &str) -> Playback {
    Loaded::read("test.toml", text, Vec::new(), &Files::new()).unwrap().play(0, 1).unwrap()
}

/// The events of a flow's time-sequence graph: seconds, kind, from, to.
fn sequence(playback: &Playback, flow: usize, to: f64) -> Vec<[f64; 4]> {
    let numbers = playback.history().sequence(flow, Time::ZERO, Time((to * 1e9) as u64));
    assert!(numbers[0].is_nan(), "all events are kept");
    numbers[1..].chunks(4).map(|event| event.try_into().unwrap()).collect()
}

#[test]
fn the_air_time_of_links_is_that_of_their_frames() {
    let mut playback = play(SCENARIO);
    playback.watch(true);
    playback.advance(playback.end());
    let events = playback.take_events();
    let mut expected: BTreeMap<(i64, i64), [f64; 3]> = BTreeMap::new();
    for event in events.chunks(Event::FIELDS).filter(|event| event[0] == 1.0) {
        let [from, to, kind, air, retry] = [event[3], event[4], event[5], event[6], event[10]];
        let answers = kind == 1.0 || kind == 3.0;
        let link = if answers { (to as i64, from as i64) } else { (from as i64, to as i64) };
        let part = if kind != 2.0 { 2 } else { usize::from(retry == 1.0) };
        expected.entry(link).or_default()[part] += air;
    }
    let told = playback.world().engine_mut().probe().air.write();
    assert_eq!(told.len(), AirTime::FIELDS * expected.len());
    for link in told.chunks(AirTime::FIELDS) {
        let sums = expected[&(link[0] as i64, link[1] as i64)];
        for (told, expected) in link[2..].iter().zip(sums) {
            assert!((told - expected).abs() < 1e-6, "{link:?} {sums:?}");
        }
    }
    assert!(expected.keys().any(|(_, to)| *to < 0), "AODV asks everybody");
    assert!(expected.values().any(|parts| parts[1] > 0.0), "something is repeated");
}

#[test]
fn air_time_goes_back_with_the_run() {
    let mut playback = play(SCENARIO);
    let air = |playback: &mut Playback| playback.world().engine_mut().probe().air.write();
    playback.advance(Time(4_000_000_000));
    let early = air(&mut playback);
    playback.advance(Time(9_000_000_000));
    assert_ne!(air(&mut playback), early);
    playback.approach(Time(4_000_000_000));
    playback.advance(Time(4_000_000_000));
    assert_eq!(air(&mut playback), early);
}

#[test]
fn a_time_sequence_graph_has_every_segment_and_what_is_acknowledged() {
    let mut playback = play(SCENARIO);
    let end = playback.end();
    // Back and on again adds nothing.
    for at in [7_300_000_000, 2_000_000_000, 11_000_000_000, end.0] {
        playback.approach(Time(at));
        playback.advance(Time(at));
    }
    let outcome = playback.outcome();
    for (flow, measured) in outcome.flows.iter().enumerate() {
        let events = sequence(&playback, flow, 20.0);
        assert!(events.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "in the order of time");
        let count = |kind: f64| events.iter().filter(|event| event[1] == kind).count() as u64;
        assert_eq!(count(0.0) + count(1.0), measured.segments_sent, "flow {flow}");
        assert_eq!(count(1.0), measured.retransmissions, "flow {flow}");
        let acked = events.iter().filter(|event| event[1] == 2.0);
        let highest = acked.clone().map(|event| event[3]).fold(0.0, f64::max);
        let sent = events.iter().filter(|event| event[1] < 2.0).map(|event| event[3]).fold(0.0, f64::max);
        // What is acknowledged was delivered; a window at most is under way.
        assert!(highest <= measured.delivered_bytes as f64 && measured.delivered_bytes as f64 <= sent, "flow {flow}");
        assert!(sent - highest <= 64.0 * 1460.0, "flow {flow}");
        // The staircase of acknowledgements has no gap.
        let mut before = 0.0;
        for event in acked {
            assert_eq!(event[2], before, "flow {flow}");
            before = event[3];
        }
    }
    assert!(outcome.flows[0].retransmissions > 0, "NewReno sends again");
    let part = playback.history().sequence(0, Time(5_000_000_000), Time(6_000_000_000));
    let whole = sequence(&playback, 0, 20.0);
    assert_eq!((part.len() - 1) / 4, whole.iter().filter(|event| (5.0..=6.0).contains(&event[0])).count());
}

#[test]
fn connections_of_files_follow_each_other() {
    let text = "duration = '20 s'\n[topology]\nkind = 'chain'\nhops = 2\n[[flow]]\ntransport = 'newreno'\ntraffic = 'http'\npause = '0.5 s'\n";
    let mut playback = play(text);
    playback.advance(playback.end());
    let events = sequence(&playback, 0, 20.0);
    let mut highest = 0.0;
    for event in events.iter().filter(|event| event[1] == 0.0) {
        assert_eq!(event[2], highest, "new bytes begin where the last ended: {event:?}");
        highest = event[3];
    }
    let measured = &playback.outcome().flows[0];
    assert!(measured.completions.len() > 1, "more than one file");
    assert!(highest >= measured.delivered_bytes as f64);
}

#[test]
fn samples_have_the_mean_rtt_and_delay_of_the_record_and_queues_those_of_the_nodes() {
    let mut playback = play(SCENARIO);
    playback.advance(playback.end());
    let outcome = playback.outcome();
    let samples = playback.history().samples(0);
    let width = History::HEAD + History::PER_FLOW * 2;
    let last = &samples[samples.len() - width..];
    for (flow, measured) in outcome.flows.iter().enumerate() {
        let of_flow = &last[History::HEAD + flow * History::PER_FLOW..][..History::PER_FLOW];
        let (rtt, delay) = (of_flow[7] / of_flow[8], of_flow[9] / of_flow[10]);
        assert!((rtt - measured.rtt_mean_s).abs() < 1e-9, "{rtt} {measured:?}");
        // That of the record is in whole microseconds.
        assert!((delay - measured.delay.mean_s).abs() < 1e-6, "{delay} {measured:?}");
    }
    let mut playback = play(SCENARIO);
    let mut seen = 0.0;
    for sample in 1..=100_u64 {
        playback.advance(Time(sample * 100_000_000));
        let nodes = report::nodes(&mut playback);
        let mut sum = 0.0;
        for (node, numbers) in nodes.chunks(NODE_FIELDS).enumerate() {
            assert_eq!(
                playback.history().queues(node as i32, sample as usize - 1),
                [numbers[2]],
                "node {node}, sample {sample}"
            );
            sum += numbers[2];
        }
        assert_eq!(playback.history().queues(-1, sample as usize - 1), [sum]);
        seen += sum;
    }
    assert!(seen > 0.0, "there are queues");
}
