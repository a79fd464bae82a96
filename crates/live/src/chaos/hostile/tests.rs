//! Tests that some hundred seeds with hostile peers violate no invariant, and that a seed always
//! gives the same run.

use super::super::{Tally, Trail};
use super::attack::Attack;
use super::run;

/// Default number of seeds.
const SEEDS: u64 = 60;

#[test]
fn no_hostile_seed_breaks_an_invariant() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = number("MESHPACE_CHAOS").unwrap_or(SEEDS);
    let first = number("MESHPACE_FIRST").unwrap_or(0);
    let mut tally = Tally::default();
    for seed in first..first + seeds {
        let run = run(seed, Trail::Nothing);
        assert_eq!(run.broken, None, "meshpace dev chaos --seed {seed} --hostile repeats it");
        tally.add(&run);
    }
    let hours = tally.virtual_ms as f64 / 3.6e6;
    let (packets, attacks) = (tally.sent.median(), tally.suffered.median());
    eprintln!("{seeds} seeds: {hours:.1} h, {} packets; medians {packets} packets, {attacks} attacks", tally.packets);
    if seeds >= SEEDS {
        // What proves nothing is not to look as if it did.
        assert!(packets >= 200 && attacks >= 10, "{packets} packets, {attacks} attacks");
        let missing = Attack::ALL.iter().find(|attack| !tally.attacks.contains_key(attack.name()));
        assert_eq!(missing, None, "every attack has come");
        assert!(tally.bytes > 0 && tally.lost > 0, "honest clients were served, and victims were sent something");
    }
}

#[test]
fn a_hostile_seed_says_all() {
    for seed in 0..10 {
        assert_eq!(run(seed, Trail::Packets), run(seed, Trail::Packets), "seed {seed}");
    }
}
