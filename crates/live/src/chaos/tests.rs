//! Tests that some hundred seeds violate no invariant, and that a seed always gives the same run.

use super::faults::{Moment, cells};
use super::{Tally, Trail, run};

/// Default number of seeds.
const SEEDS: u64 = 256;

#[test]
fn no_seed_breaks_an_invariant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = number("MESHPACE_CHAOS").unwrap_or(SEEDS);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let run = run(seed, Trail::Nothing);
        assert_eq!(run.broken, None, "meshpace dev chaos --seed {seed} repeats it");
        tally.add(&run);
    }
    let hours = tally.virtual_ms as f64 / 3.6e6;
    let (seconds, packets, faults) = (tally.times.median() / 1000, tally.sent.median(), tally.suffered.median());
    eprintln!(
        "{seeds} seeds: {hours:.1} h, {} packets; medians {seconds} s, {packets} packets, {faults} faults",
        tally.packets
    );
    if seeds >= SEEDS {
        // What proves nothing is not to look as if it did.
        assert!(seconds >= 30 && packets >= 200 && faults >= 3, "{seconds} s, {packets} packets, {faults} faults");
        // A reset leaves a connection that is over: it is seen as late.
        let mut moments = Moment::ALL.iter().filter(|moment| **moment != Moment::Reset);
        assert!(moments.all(|moment| tally.moments.contains_key(moment.name())), "{:?}", tally.moments);
        let missing = tally.missing();
        assert!(
            missing.len() * 3 < cells().count(),
            "{} of {} never came: {missing:?}",
            missing.len(),
            cells().count()
        );
    }
}

#[test]
fn a_seed_says_all() {
    for seed in 0..20 {
        assert_eq!(run(seed, Trail::Packets), run(seed, Trail::Packets), "seed {seed}");
    }
}
