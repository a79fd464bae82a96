//! Compares the arithmetic of the eBPF programs with the pacing of our own transports: for the same
//! RTTs the intervals must be equal within 0.1 %.
#![cfg(feature = "kernel")]

mod common;

use common::is_missing;
use libbpf_rs::{ObjectBuilder, ProgramInput};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng};
use meshpace_kernel::{Form, Path};
use meshpace_transport::Stats;
use meshpace_transport::pacing::out_of_interference::{OutOfInterference, Sensing};
use meshpace_transport::pacing::{AdaptiveConfig, Estimator, LinkDelay, Measure};

/// Largest relative difference of two intervals.
const TOLERANCE: f64 = 1e-3;

#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/arithmetic.bpf.o")));

/// Runs RTTs through the program `take`.
struct Programs(libbpf_rs::Object);

impl Programs {
    fn new() -> Option<Programs> {
        (!is_missing()).then(|| Programs(ObjectBuilder::default().open_memory(&OBJECT.0).unwrap().load().unwrap()))
    }

    /// Returns the interval in ns and cov after each RTT in microseconds.
    fn intervals(&self, form: Form, path: &Path, payload: u32, rtts: &[u32]) -> Vec<(u64, f64)> {
        let program = self.0.progs_mut().find(|program| program.name() == "take").unwrap();
        let mut answers = Vec::new();
        for (place, rtt) in rtts.iter().enumerate() {
            let mut request = [0; 80];
            request[..40].copy_from_slice(&path.encode());
            let first = u32::from(place == 0);
            for (at, word) in [(40, form.number()), (44, 200), (52, payload), (56, *rtt), (60, first)] {
                request[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            }
            let input = ProgramInput { context_in: Some(&mut request), ..ProgramInput::default() };
            assert_eq!(program.test_run(input).unwrap().return_value, 0);
            let long = |at: usize| u64::from_ne_bytes(*request[at..].first_chunk().unwrap());
            answers.push((long(64), long(72) as f64 / f64::from(1 << 20)));
        }
        answers
    }
}

/// Returns the same values, computed by the pacing of the transports.
fn expected(form: Form, path: &Path, payload: u32, rtts: &[u32]) -> Vec<(u64, f64)> {
    let config = match form {
        Form::Ap05 => AdaptiveConfig::paper(),
        Form::QuietTrainSolo => unreachable!("has a test of its own"),
        Form::Ap10 => AdaptiveConfig {
            measure: Measure::OutOfInterference(OutOfInterference {
                // If all nodes sense a sender, its sensing range is set to the end of the path.
                sensing: Sensing::Fixed(path.sensing.unwrap_or(u8::MAX)),
                link_delay: LinkDelay::Fixed { data: path.link_data, ack: path.link_ack },
                ..OutOfInterference::default()
            }),
            ..AdaptiveConfig::out_of_interference()
        },
    };
    let mut estimator = Estimator::new(&config, payload);
    let mut stats = Stats::default();
    let mut take = |rtt: &u32| {
        estimator.on_sample(f64::from(*rtt) / 1e6, path.hops, path.rate, &mut stats);
        (estimator.interval().0, estimator.dispersion())
    };
    rtts.iter().map(&mut take).collect()
}

/// RTTs in microseconds as a mesh, a LAN, a long path and a pathological path would show them.
fn traces() -> Vec<(&'static str, Vec<u32>)> {
    let mut rng = Rng::stream(20, Purpose::Test, 0);
    let mut noise = |least: u64, span: u64, count: usize| -> Vec<u32> {
        (0..count).map(|_| (least + rng.next_u64() % span) as u32).collect()
    };
    let mut stall = noise(60_000, 30_000, 150);
    // A false route failure causes one RTT of seconds, which stays in the history for fifty
    // samples.
    stall[70] = 9_000_000;
    let steps = (0..200).map(|k| if k % 60 < 30 { 40_000 } else { 160_000 }).collect();
    vec![
        ("mesh", noise(40_000, 80_000, 300)),
        ("stall", stall),
        ("LAN", noise(90, 40, 200)),
        ("quiet", noise(20_000, 3, 200)),
        ("constant", vec![60_000; 120]),
        ("steps", steps),
        ("slow", noise(1_000_000, 58_000_000, 120)),
        ("short", vec![1, 1, 2, 1, 1, 3, 1, 1]),
    ]
}

#[test]
fn intervals_are_those_of_the_transports() {
    let Some(programs) = Programs::new() else { return };
    let mut worst: f64 = 0.0;
    let mut compared = 0;
    for (name, rtts) in traces() {
        for hops in [1, 2, 3, 4, 5, 9, 255] {
            for rate in [1_000_000, 2_000_000, 5_500_000, 11_000_000, 54_000_000] {
                for payload in [536, 1448] {
                    let usual = Path::new(hops, Rate::from_bps(rate));
                    let forms = [
                        (Form::Ap05, usual),
                        (Form::Ap10, usual),
                        (Form::Ap10, Path { sensing: None, ..usual }),
                        (Form::Ap10, Path { sensing: Some(1), link_data: Duration::ZERO, ..usual }),
                    ];
                    for (form, path) in forms {
                        let got = programs.intervals(form, &path, payload, &rtts);
                        let want = expected(form, &path, payload, &rtts);
                        for (place, (got, want)) in got.iter().zip(&want).enumerate() {
                            let error = (got.0 as f64 - want.0 as f64).abs() / want.0 as f64;
                            worst = worst.max(error);
                            compared += 1;
                            assert!(
                                error <= TOLERANCE,
                                "{name}, {form:?}, {path:?}, {payload} bytes, sample {place}: {got:?}, not {want:?}"
                            );
                        }
                    }
                }
            }
        }
    }
    eprintln!("{compared} intervals, largest difference {:.5} %", worst * 100.0);
}

#[test]
fn the_papers_own_example_comes_out() {
    let Some(programs) = Programs::new() else { return };
    // Seven hops at 2 Mbit/s, s_d = 1500 and s_a = 40 with payload 1460: AP05, section 4, computed
    // by hand for three samples.
    let path = Path::new(7, Rate::from_mbps(2));
    let got = programs.intervals(Form::Ap05, &path, 1460, &[60_000, 62_000, 58_000]);
    // FHD = 2 (RTT/7 + 8 * 1460 / 2e6): 28.822857, 29.394286, 28.251429 ms.
    let delays = [28.822_857, 0.7 * 28.822_857 + 0.3 * 29.394_286, 0.0];
    let third = 0.7 * delays[1] + 0.3 * 28.251_429;
    // cov of (60, 62) is sqrt(2)/61; cov of all three is 2/60.
    let want = [delays[0], delays[1] * (1.0 + 2.0 * 2f64.sqrt() / 61.0), third * (1.0 + 2.0 * 2.0 / 60.0)];
    for (got, want) in got.iter().zip(want) {
        assert!((got.0 as f64 / 1e6 - want).abs() < want * TOLERANCE, "{got:?}, not {want} ms");
    }
}

#[test]
fn the_longest_values_do_not_overflow() {
    let Some(programs) = Programs::new() else { return };
    let path =
        Path { link_data: Duration::from_secs(10), link_ack: Duration::from_secs(10), ..Path::new(255, Rate(1000)) };
    // RTTs alternate between almost zero and 60 s, the longest RTT that counts. Longer ones have
    // the same effect as 60 s.
    let rtts: Vec<u32> = (0..120).map(|k| if k % 2 == 0 { 1 } else { 60_000_000 }).collect();
    let beyond: Vec<u32> = rtts.iter().map(|rtt| if *rtt > 1 { u32::MAX } else { 1 }).collect();
    for form in [Form::Ap05, Form::Ap10] {
        let got = programs.intervals(form, &path, 65_000, &rtts);
        for (got, want) in got.iter().zip(expected(form, &path, 65_000, &rtts)) {
            assert!((got.0 as f64 - want.0 as f64).abs() <= want.0 as f64 * TOLERANCE, "{got:?}, not {want:?}");
        }
        assert_eq!(got, programs.intervals(form, &path, 65_000, &beyond));
    }
}
