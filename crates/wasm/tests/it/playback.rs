//! A run that is stepped through, taken back and watched is the run that it is without.

use meshpace_core::rng::Purpose;
use meshpace_core::{Rng, Time};
use meshpace_wasm::load::{Files, Loaded};
use meshpace_wasm::playback::Playback;
use meshpace_wasm::watch::Event;

/// NewReno over six hops: collisions, links given up, routes lost.
const SCENARIO: &str = "duration = '20 s'\nwarmup = '3 s'\n[topology]\nkind = 'chain'\nhops = 6\n[routing]\nprotocol = 'aodv'\n\
                        [[flow]]\nfrom = 0\nto = 6\ntransport = 'newreno'\n";
/// Nodes that move, so that routes are sampled.
const MOVING: &str = "duration = '12 s'\nwarmup = '2.05 s'\n[topology]\nkind = 'waypoint'\nnodes = 12\nwidth = '600 m'\nheight = '600 m'\n\
                      min_speed = '5 m/s'\nmax_speed = '20 m/s'\n[routing]\nprotocol = 'aodv'\n[[flow]]\nfrom = 0\nto = 6\ntransport = 'newreno'\n";

fn load(text: &str) -> Loaded {
    Loaded::read("test.toml", text, Vec::new(), &Files::new()).unwrap()
}

#[test]
fn a_run_in_steps_and_jumps_is_the_run() {
    for text in [SCENARIO, MOVING] {
        for seed in 1..=3 {
            let mut playback = load(text).play(0, seed).unwrap();
            let whole = meshpace_sim::run(playback.config(), seed);
            let mut rng = Rng::stream(seed, Purpose::Test, 0);
            let end = playback.end();
            for _ in 0..40 {
                playback.watch(rng.below(2) == 0);
                match rng.below(4) {
                    0 => playback.step(),
                    1 => playback.step_back(),
                    2 => playback.approach(Time(rng.below(end.0))),
                    _ => playback.advance(Time(playback.now().0 + rng.below(end.0 / 4))),
                }
            }
            playback.advance(end);
            let outcome = playback.outcome();
            assert_eq!(outcome.fingerprint, whole.fingerprint, "seed {seed}");
            // NaN is not equal to itself.
            assert_eq!(format!("{outcome:?}"), format!("{whole:?}"), "seed {seed}");
        }
    }
}

#[test]
fn history_does_not_depend_on_how_it_was_made() {
    let mut straight = load(SCENARIO).play(0, 1).unwrap();
    straight.advance(straight.end());
    let mut wild = load(SCENARIO).play(0, 1).unwrap();
    for seconds in [1.234, 5.0, 2.0, 11.11, 0.0, 7.7, 20.0] {
        let at = Time((seconds * 1e9) as u64);
        wild.approach(at);
        wild.advance(at);
        wild.step_back();
    }
    wild.advance(wild.end());
    let samples = |playback: &Playback| format!("{:?}", playback.history().samples(0));
    assert_eq!(samples(&straight), samples(&wild));
    // When a timer is noticed to have expired depends on where the run stopped, by up to 10 ms.
    let kinds = |playback: &Playback| {
        let marks = playback.history().marks();
        let mut kinds: Vec<(u64, u64, u64)> =
            marks.chunks(3).map(|mark| ((mark[0] * 50.0) as u64, mark[1] as u64, mark[2] as u64)).collect();
        kinds.sort();
        kinds
    };
    assert!(kinds(&straight).iter().any(|mark| mark.1 == 1), "NewReno over six hops meets timeouts");
    assert!(kinds(&straight).iter().any(|mark| mark.1 == 3), "and loses routes");
    assert_eq!(kinds(&straight).len(), kinds(&wild).len());
}

#[test]
fn a_step_is_a_frame_and_back_is_the_frame_before() {
    let mut playback = load(SCENARIO).play(0, 1).unwrap();
    playback.advance(Time(5_000_000_000));
    let mut times = vec![];
    for _ in 0..20 {
        playback.step();
        times.push((playback.now(), playback.frames(), playback.fingerprint()));
    }
    assert!(times.windows(2).all(|pair| pair[0].0 < pair[1].0), "{times:?}");
    for expected in times.iter().rev().skip(1) {
        playback.step_back();
        assert_eq!((playback.now(), playback.frames(), playback.fingerprint()), *expected);
    }
}

#[test]
fn what_is_watched_agrees_with_what_is_counted() {
    let mut playback = load(SCENARIO).play(0, 2).unwrap();
    playback.watch(true);
    playback.advance(playback.end());
    let counters = playback.outcome().counters;
    let events = playback.take_events();
    let count = |kind: f64| events.chunks(Event::FIELDS).filter(|event| event[0] == kind).count() as u64;
    assert_eq!(count(1.0), playback.frames());
    assert_eq!(count(3.0), counters.collisions);
    assert_eq!(count(5.0), counters.mac_drops);
    assert!(counters.collisions > 0 && counters.mac_drops > 0);
}
