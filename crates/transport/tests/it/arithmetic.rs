//! Exhaustive tests of the arithmetic of numbers that wrap around, of windows and of ranges: all
//! cases, or all cases of short inputs. Functions on 64 bits are tested in the same way with 8 bits
//! beside their source (`tpa/replay.rs`, `tcp/wire.rs`). `validation/proofs/prove` proves the
//! formulas at their full width.

use meshpace_core::{Duration, Time};
use meshpace_transport::ranges::{Insertion, Received};
use meshpace_transport::tcp::rtt::{Config, Rtt};
use meshpace_transport::tcp::wire::{LARGEST_SCALE, scale_for};
use meshpace_transport::tpa::flight::Flight;
use meshpace_transport::tpa::replay::{Replay, WINDOW};
use meshpace_transport::tpa::segment::{BLOCK_NUMBERS, block_after, blocks_between};
use std::collections::BTreeMap;

#[test]
fn blocks_count_modulo_4096_wherever_they_begin() {
    for (from, distance) in (0..4096_u32).flat_map(|from| (0..4096_u32).map(move |distance| (from, distance))) {
        let to = (from + distance) % u32::from(BLOCK_NUMBERS);
        assert_eq!(u32::from(block_after(from as u16, distance as u16)), to);
        assert_eq!(u32::from(blocks_between(from as u16, to as u16)), distance);
    }
}

#[test]
fn a_number_of_a_transmission_is_one_of_the_last_256() {
    // Numbers of transmissions continue after those that the block skips. No number has low 8 bits
    // of 0.
    for skipped in [0, 1, 15, 200] {
        let mut flight = Flight::default();
        flight.skip_next(|| skipped);
        flight.restart();
        let mut sent = Vec::new();
        let counts = u32::from(skipped) + 1..1024;
        for (at, count) in counts.filter(|count| count % 256 != 0).enumerate() {
            for number in 0..=u8::MAX {
                let now = sent.last().copied().unwrap_or(0_u32);
                let mut recent = sent.iter().filter(|transmission| now - **transmission < 256);
                let expected = recent.any(|transmission| *transmission as u8 == number);
                assert_eq!(flight.has_sent(number), expected, "{number} before {count}");
            }
            assert_eq!(flight.record(Time(at as u64), 0), count as u8);
            sent.push(count);
        }
    }
}

/// The bytes of a stream of `BYTES` bytes that have arrived, one bit each.
fn bytes_of(received: &Received) -> u32 {
    (0..BYTES).filter(|&byte| received.has(byte, byte + 1)).fold(0, |set, byte| set | 1 << byte)
}

const BYTES: u64 = 10;

/// Adds every range to every possible state of a stream of ten bytes. By induction this covers any
/// list of ranges. Only the order of the offsets matters, not their size: ten bytes allow five
/// ranges with gaps.
/// offsets, not their size: ten bytes are five ranges with gaps.
#[test]
fn every_range_added_to_every_state_of_a_short_stream() {
    let mut states = BTreeMap::from([(0_u32, Received::default())]);
    let mut todo = vec![0];
    while let Some(set) = todo.pop() {
        let state = states[&set].clone();
        let next = u64::from(set.trailing_ones());
        assert_eq!((bytes_of(&state), state.next()), (set, next));
        assert_eq!(state.highest(), u64::from(u32::BITS - set.leading_zeros()));
        // The ranges are sorted, disjoint, do not touch, and lie beyond the gap. The state is
        // therefore the only one for its set of bytes.
        let bounds = state.beyond().flat_map(|range| [range.start, range.end]);
        assert!([next].into_iter().chain(bounds).is_sorted_by(|a, b| a < b), "{state:?}");
        for (start, end) in (0..=BYTES).flat_map(|start| (0..=BYTES).map(move |end| (start, end))) {
            let range = (start..end).fold(0, |range, byte| range | 1 << byte);
            assert_eq!(state.has(start, end) || start >= end, range & !set == 0, "{start}..{end} in {state:?}");
            let mut after = state.clone();
            let expected = if range & !set != 0 { Insertion::New } else { Insertion::Known };
            assert_eq!(after.insert(start, end), expected, "{start}..{end} into {state:?}");
            assert_eq!(bytes_of(&after), set | range, "{start}..{end} into {state:?}");
            states.entry(set | range).or_insert_with(|| {
                todo.push(set | range);
                after
            });
        }
    }
    assert_eq!(states.len(), 1 << BYTES, "all sets were reached");
}

#[test]
fn a_window_is_told_as_exactly_as_its_field_allows() {
    let around = |power: u32| [(1_u32 << power).wrapping_sub(1), 1 << power, (1 << power) + 1];
    let windows = (0..32).flat_map(around).chain((0..=u32::MAX).step_by(65_521)).chain(65_500..70_000);
    for window in windows {
        let scale = scale_for(window);
        assert!(scale <= LARGEST_SCALE);
        let largest = u64::from(u16::MAX) << LARGEST_SCALE;
        assert!(window >> scale <= u32::from(u16::MAX) || u64::from(window) > largest, "{window} does not fit");
        assert!(scale == 0 || window >> (scale - 1) > u32::from(u16::MAX), "{window} would fit with less");
    }
}

/// Runs every list of seven events of the timer, with samples at the limits of what can be
/// measured.
#[test]
fn the_retransmission_timer_stays_within_its_bounds_whatever_happens() {
    let config = Config::default();
    let mut states = vec![Rtt::new(&config)];
    for _ in 0..7 {
        let mut after = Vec::with_capacity(states.len() * 7);
        for state in &states {
            for event in 0..7 {
                let mut state = state.clone();
                match event {
                    0 => state.on_timeout(),
                    1 => state.end_backoff(),
                    2 => state.on_lost_syn(),
                    3 => state.on_sample(0),
                    4 => state.on_sample(17),
                    5 => state.on_sample(1 << 31),
                    _ => state.on_sample(u64::MAX),
                }
                let rto = state.rto();
                assert!(config.min <= rto && rto <= config.max, "{rto:?} after {state:?}");
                assert!(state.backoff().is_power_of_two() && state.smoothed() <= Duration(config.tick.0 << 31));
                after.push(state);
            }
        }
        after.dedup();
        states = after;
    }
    assert!(states.len() > 1000);
}

#[test]
fn what_was_played_again_is_refused_at_every_distance() {
    // The window as used in the product, at each of its numbers, and at all positions within its
    // words.
    for newest in (2000..2200).chain([u64::from(u32::MAX), u64::MAX - 1]) {
        let mut replay = Replay::default();
        (newest - 1500..=newest).for_each(|number| replay.see(number));
        for age in 0..1500 {
            assert!(!replay.is_new(newest - age), "{age} behind {newest}");
        }
        let mut sparse = Replay::default();
        (newest - 1500..=newest).filter(|number| (newest - number) % 3 == 0).for_each(|number| sparse.see(number));
        for age in 0..1500 {
            assert_eq!(sparse.is_new(newest - age), age % 3 != 0 && age < WINDOW, "{age} behind {newest}");
        }
    }
}
