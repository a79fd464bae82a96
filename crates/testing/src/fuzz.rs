//! Inputs for parsers of data that strangers send: inputs that are kept, and random mutations of
//! them.
//!
//! A body is a function that takes bytes and panics if a check fails. The fuzzers in `fuzz/` call
//! the same bodies and look for new inputs by the code that these reach. The runs here take seconds
//! and need no special compiler. A run with the same seed is the same.

use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// Longest input that is generated, bytes.
const LONGEST: usize = 4096;

/// Pseudo-random numbers (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Boundary values at which parsers often behave differently.
const BOUNDS: [u8; 9] = [0, 1, 2, 5, 16, 0x7f, 0x80, 0xfe, 0xff];

/// Applies one mutation to `input`, which may insert a part of `other`.
fn change(input: &mut Vec<u8>, other: &[u8], draw: &mut Draw) {
    let at = draw.below(input.len() + 1);
    let to = (at + draw.below(16)).min(input.len());
    match draw.below(8) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..to)),
        2 => input.insert(at, draw.next() as u8),
        3 => drop(input.splice(at..at, other.iter().copied().skip(draw.below(other.len())).take(64))),
        4 => input.extend_from_within(at..to),
        5 if at < input.len() => input[at] ^= 1 << draw.below(8),
        6 if at < input.len() => input[at] = BOUNDS[draw.below(BOUNDS.len())],
        _ if at < input.len() => input[at] = draw.next() as u8,
        _ => input.push(draw.next() as u8),
    }
    input.truncate(LONGEST);
}

/// Folder of the inputs that are kept for a body.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

/// Inputs that are kept for the body `name`, in the order of their file names.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = folder(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: not a whole number")))
}

/// Runs `body` on the inputs of `fuzz/corpus/NAME` and on mutations of them. The number of
/// mutations is `MESHPACE_FUZZ_RUNS` (2000 by default), their seed `MESHPACE_FUZZ_SEED` (0 by
/// default).
///
/// # Panics
///
/// If `body` panics. The input is written to a file first, whose name is printed.
pub fn drive(name: &str, body: impl Fn(&[u8]) + RefUnwindSafe) {
    let kept = kept(name);
    assert!(!kept.is_empty(), "no inputs are kept for {name}");
    let tried = |input: &[u8]| {
        if let Err(panic) = catch_unwind(|| body(input)) {
            let path = std::env::temp_dir().join(format!("meshpace-fuzz-{name}-{}", std::process::id()));
            let written = fs::write(&path, input).map_or_else(|error| error.to_string(), |()| "written".to_owned());
            eprintln!("{name}: {} ({written}); once mended, keep it in {}", path.display(), folder(name).display());
            resume_unwind(panic);
        }
    };
    kept.iter().for_each(|input| tried(input));
    let mut draw = Draw(number("MESHPACE_FUZZ_SEED", 0));
    for _ in 0..number("MESHPACE_FUZZ_RUNS", 2000) {
        let mut input = kept[draw.below(kept.len())].clone();
        let other = &kept[draw.below(kept.len())];
        for _ in 0..=draw.below(6) {
            change(&mut input, other, &mut draw);
        }
        tried(&input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_reach_what_is_near_and_stay_bounded() {
        let mut draw = Draw(1);
        let (mut lengths, mut flipped) = (std::collections::BTreeSet::new(), 0);
        for _ in 0..2000 {
            let mut input = b"kept".to_vec();
            change(&mut input, b"other", &mut draw);
            assert!(input.len() <= LONGEST);
            lengths.insert(input.len());
            flipped += usize::from(input.len() == 4 && input != b"kept");
        }
        assert!(lengths.len() > 6 && flipped > 300, "{lengths:?}, {flipped}");
        let mut long = vec![0; LONGEST];
        (0..100).for_each(|_| change(&mut long, &[1; 64], &mut draw));
        assert!(long.len() <= LONGEST);
    }
}
