//! Test functions for fuzzers: each takes bytes and panics if it finds an error.
//!
//! The module is built only by fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; `fuzz/` has the
//! targets) and by the tests of this crate. The tests run each function on the inputs in
//! `fuzz/corpus` and on mutations of them.

mod operations;
mod segments;

pub use segments::segments;

/// Interprets the bytes as a transport and a list of operations on it. After the list, a network
/// without faults delivers the remaining segments.
///
/// # Panics
///
/// Panics if bytes are missing, delivered twice or invented, or if the connection does not end.
pub fn endpoints(data: &[u8]) {
    let Some((which, mut rest)) = data.split_first() else { return };
    let transports = operations::transports();
    let (_, config) = &transports[usize::from(*which) % transports.len()];
    operations::run(config, &mut |bound| {
        // The choice is read from as many bytes as the bound has.
        let mut number = 0;
        for _ in 0..(bound - 1).max(1).ilog2() / 8 + 1 {
            let (first, left) = rest.split_first()?;
            number = number << 8 | u64::from(*first);
            rest = left;
        }
        Some(number % bound)
    });
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::operations::{run, transports};
    use crate::{Config, names};
    use alloc::string::String;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;
    use meshpace_testing::fuzz::drive;
    use std::eprintln;

    #[test]
    fn any_bytes_are_a_segment_as_it_would_be_written_or_none() {
        drive("segments", super::segments);
    }

    #[test]
    fn any_choices_leave_a_transport_able_to_finish() {
        drive("endpoints", super::endpoints);
    }

    /// One run of random choices.
    fn run_seed(config: &Config, seed: u64) {
        let mut rng = Rng::stream(seed, Purpose::Test, 77);
        run(config, &mut |bound| Some(rng.below(bound)));
    }

    /// What failed once: a segment that reached beyond the window was kept in part and reported as whole; a round trip of 0 s gave an interval
    /// that was no number.
    const FAILED_BEFORE: [(&str, u64); 2] = [("quiet-train", 2470), ("quiet-train+marks", 6)];

    #[test]
    fn what_failed_once_does_not_fail_again() {
        for (name, seed) in FAILED_BEFORE {
            run_seed(&names::lookup(name).unwrap(), seed);
        }
    }

    fn from_environment(name: &str, default: u64) -> u64 {
        std::env::var(name)
            .map_or(default, |value: String| value.parse().unwrap_or_else(|_| panic!("{name}: not a whole number")))
    }

    /// It runs for `MESHPACE_FUZZ_SECONDS` (2 by default) over seeds from `MESHPACE_FUZZ_SEED` (0 by default); a failure prints
    /// the transport and the seed that repeat it: `MESHPACE_FUZZ_SEED=n cargo test -p meshpace-transport --lib fuzzing`.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "how long to look is no property of the protocols")]
    fn any_list_of_operations_leaves_every_transport_able_to_finish() {
        let started = std::time::Instant::now();
        let budget = std::time::Duration::from_secs(from_environment("MESHPACE_FUZZ_SECONDS", 2));
        let transports = transports();
        let mut seed = from_environment("MESHPACE_FUZZ_SEED", 0);
        let mut runs = 0u64;
        // Every transport at least once, however short the time.
        while runs == 0 || started.elapsed() < budget {
            for (name, config) in &transports {
                if let Err(panic) = std::panic::catch_unwind(|| run_seed(config, seed)) {
                    eprintln!("transport {name}, MESHPACE_FUZZ_SEED={seed}");
                    std::panic::resume_unwind(panic);
                }
                runs += 1;
            }
            seed += 1;
        }
        eprintln!("{runs} runs over {} transports", transports.len());
    }
}
