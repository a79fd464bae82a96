//! The worked examples of TPA, digit for digit: the estimator's equations (TPA, section 3.4), and
//! the order and times of transmissions (sections 3.2, 3.3, 3.5, 3.6, appendix B). They were
//! derived by hand from the equations and rules.

use crate::common::{Fate, From, Line, Pair};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::ack::Rule;
use meshpace_transport::tpa::estimator::{self, Estimator};
use meshpace_transport::tpa::{self, Flags, names};
use meshpace_transport::{Config, Segment};

/// Feeds samples in ms. Returns ERTT, DEV and RTO in ms after each.
fn estimate(config: &estimator::Config, samples: &[f64]) -> Vec<[f64; 3]> {
    let mut estimator = Estimator::new(config);
    let step = |rtt: &f64| {
        estimator.on_sample(rtt / 1e3);
        [estimator.ertt(), estimator.dev(), estimator.rto_s()].map(|value| value.unwrap() * 1e3)
    };
    samples.iter().map(step).collect()
}

fn assert_digits(got: f64, printed: f64, what: &str) {
    assert!((got - printed).abs() <= 0.000_051, "{what}: {got}, printed {printed}");
}

const SAMPLES: [f64; 10] = [100.0, 110.0, 90.0, 300.0, 310.0, 320.0, 330.0, 320.0, 310.0, 300.0];

#[test]
fn estimator_with_a_route_change() {
    // Section 3.4, equations of ERTT, DEV and RTO. g1 and h1 apply from the third late sample on,
    // three times.
    let expected = [
        [100.0, 50.0, 300.0],
        [101.25, 39.6875, 260.0],
        [99.8438, 32.2266, 228.75],
        [124.8633, 67.9541, 396.6797],
        [148.0054, 91.4642, 513.8623],
        [191.0040, 110.2301, 631.9244],
        [225.7530, 107.2385, 654.7072],
        [249.3148, 88.9619, 605.1623],
        [256.9004, 79.9963, 576.8857],
        [262.2879, 69.4253, 539.9889],
    ];
    for (n, (got, expected)) in estimate(&estimator::Config::default(), &SAMPLES).iter().zip(expected).enumerate() {
        for (got, printed) in got.iter().zip(expected) {
            assert_digits(*got, printed, &format!("sample {}", n + 1));
        }
    }
}

#[test]
fn estimator_with_the_old_mean_in_the_deviation() {
    let config = estimator::Config { deviation_from_old: true, ..estimator::Config::default() };
    let expected = [300.0, 261.25, 231.0938, 423.4570, 557.0874, 739.5343, 778.0101, 713.9373, 666.0525, 612.2515];
    for (n, (got, printed)) in estimate(&config, &SAMPLES).iter().zip(expected).enumerate() {
        assert_digits(got[2], printed, &format!("sample {}", n + 1));
    }
}

#[test]
fn estimator_with_early_samples() {
    let samples = [200.0, 200.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0];
    let expected = [600.0, 500.0, 530.0, 535.0, 485.0781, 413.2227, 342.1240, 316.8127];
    for (n, (got, printed)) in estimate(&estimator::Config::default(), &samples).iter().zip(expected).enumerate() {
        assert_digits(got[2], printed, &format!("sample {}", n + 1));
    }
}

#[test]
fn a_sample_on_the_other_side_starts_the_count_anew() {
    // Section 3.4: th_RC consecutive late or consecutive early samples. Two late samples and an
    // early one are not a route change. By hand, with g = 1/8 and h = 1/4 throughout, ERTT = 100,
    // 125, 146.875, 129.765625.
    let ertt: Vec<f64> =
        estimate(&estimator::Config::default(), &[100.0, 300.0, 300.0, 10.0]).iter().map(|values| values[0]).collect();
    for (got, expected) in ertt.iter().zip([100.0, 125.0, 146.875, 129.765_625]) {
        assert!((got - expected).abs() < 1e-9, "{ertt:?}");
    }
}

#[test]
fn the_timeout_keeps_its_bounds() {
    // The initial RTO is 3 s. Samples of 2 s with a deviation of 1 s would give 6 s. Doubling stops
    // at the upper bound.
    let config = estimator::Config {
        min: Duration::from_millis(200),
        max: Duration::from_secs(4),
        ..estimator::Config::default()
    };
    let mut estimator = Estimator::new(&config);
    assert_eq!(estimator.rto(), Duration::from_secs(3));
    estimator.on_sample(2.0);
    assert_eq!(estimator.rto(), Duration::from_secs(4));
    let mut estimator = Estimator::new(&config);
    estimator.on_sample(0.01);
    assert_eq!(estimator.rto(), Duration::from_millis(200));
    assert_eq!(estimator.backed_off(4), Duration::from_millis(800));
    assert_eq!(estimator.backed_off(1 << 40), Duration::from_secs(4));
}

/// Events of the first block: data as (ms, place, txStat), times in ms at which ACKs leave, and the
/// time at which the sender knows that all of it has arrived. Times count from the first data
/// segment.
struct Block {
    data: Vec<(f64, u8, bool)>,
    acks: Vec<f64>,
    done: f64,
}

fn ms_of(at: Time) -> f64 {
    at.as_secs_f64() * 1e3
}

/// One block with 30 ms in each direction and a constant RTO. The handshake takes 60 ms. `lost`
/// receives the line, the number of the data segment from 0, and the time since the first data
/// segment in ms.
fn one_block(window: u8, ack: Rule, rto_us: u64, mut lost: impl FnMut(&Line, usize, f64) -> bool) -> Block {
    let mut config = names::plain(window, ack);
    config.rto.fixed = Some(Duration::from_micros(rto_us));
    let mut pair = Pair::new(&Config::Tpa(config), Duration::from_millis(30), 4);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 12 * 1460);
    let mut sent = 0;
    let mut done = f64::NAN;
    let mut fate = |line: &Line| {
        let count = sent;
        sent += usize::from(line.from == From::Sender && line.segment.payload() > 0);
        if lost(line, count, ms_of(line.at) - 60.0) { Fate::Lose } else { Fate::Deliver }
    };
    while pair.step(Time(u64::MAX - 1), &mut fate) {
        if done.is_nan() && pair.sender.stats().acked_bytes == 12 * 1460 {
            done = ms_of(pair.now) - 60.0;
        }
    }
    assert_eq!(pair.receiver.delivered(), 12 * 1460);
    let segments = || {
        pair.record.iter().map(|line| match line.segment {
            Segment::Tpa(segment) => (ms_of(line.at) - 60.0, line.from, segment),
            other => panic!("{other:?}"),
        })
    };
    let data = |(at, from, segment): (f64, From, tpa::Segment)| {
        (from == From::Sender && segment.payload > 0).then(|| (at, segment.index().unwrap(), segment.congested))
    };
    let ack = |(at, from, segment): (f64, From, tpa::Segment)| {
        (from == From::Receiver && !segment.flags.has(Flags::SYN)).then_some(at)
    };
    Block { data: segments().filter_map(data).collect(), acks: segments().filter_map(ack).collect(), done }
}

#[test]
fn tpa_2_without_loss() {
    let block = one_block(2, Rule::EveryOther, 300_000, |_, _, _| false);
    let expected: Vec<_> = (0..12).map(|place| (60.0 * f64::from(place / 2), place, false)).collect();
    assert_eq!(block.data, expected);
    assert_eq!(block.acks, [30.0, 90.0, 150.0, 210.0, 270.0, 330.0]);
    assert_eq!(block.done, 360.0);
}

#[test]
fn tpa_star_3_without_loss() {
    let block = one_block(3, Rule::EveryWindow, 300_000, |_, _, _| false);
    let expected: Vec<_> = (0..12).map(|place| (60.0 * f64::from(place / 3), place, false)).collect();
    assert_eq!(block.data, expected);
    assert_eq!(block.acks, [30.0, 90.0, 150.0, 210.0]);
    assert_eq!(block.done, 240.0);
}

#[test]
fn tpa_2_repeats_what_is_lost_at_the_end_of_the_round() {
    // The first copies of 3 and 7 are lost. Section 3.2: neither is retransmitted before round 2.
    // Section 3.5: the timeouts of 3 at 360 and of 7 at 740 reduce the window to 1 until the next
    // ACK.
    let block = one_block(2, Rule::EveryOther, 300_000, |line, count, _| {
        line.from == From::Sender && line.segment.payload() > 0 && [3, 7].contains(&count)
    });
    let at: Vec<_> = block.data.iter().map(|&(at, place, _)| (at, place)).collect();
    assert_eq!(
        at,
        [
            (0.0, 0),
            (0.0, 1),
            (60.0, 2),
            (60.0, 3),
            (220.0, 4),
            (380.0, 5),
            (380.0, 6),
            (440.0, 7),
            (440.0, 8),
            (600.0, 9),
            (760.0, 10),
            (760.0, 11),
            (820.0, 3),
            (820.0, 7)
        ]
    );
    assert_eq!(block.acks, [30.0, 190.0, 350.0, 410.0, 570.0, 730.0, 790.0, 850.0]);
    assert_eq!(block.done, 880.0);
}

#[test]
fn tpa_star_3_repeats_the_last_segment_when_its_timer_expires() {
    let block = one_block(3, Rule::EveryWindow, 300_000, |line, count, _| {
        line.from == From::Sender && line.segment.payload() > 0 && count == 11
    });
    assert_eq!(block.data.len(), 13);
    assert_eq!(block.data[11], (180.0, 11, false));
    assert_eq!(block.data[12], (480.0, 11, true), "round 2, txStat set");
    assert_eq!(block.acks, [30.0, 90.0, 150.0, 310.0, 510.0]);
    assert_eq!(block.done, 540.0);
}

#[test]
fn the_published_ack_inhibition() {
    // Appendix B, figure 23: data arrives, but ACKs are lost for 11.363 s from the time of segment
    // 0. With an RTO of 177.5 ms, segment 9 leaves at 64 times that. The trace shows it at 50.92 s
    // after a start at 39.557 s.
    let block = one_block(3, Rule::EveryWindow, 177_500, |line, _, at| {
        line.from == From::Receiver && (0.0..11_300.0).contains(&at)
    });
    let expected = [
        (0.0, 0, false),
        (0.0, 1, false),
        (0.0, 2, false),
        (177.5, 3, true),
        (355.0, 4, true),
        (710.0, 5, true),
        (1420.0, 6, true),
        (2840.0, 7, true),
        (5680.0, 8, true),
        (11_360.0, 9, true),
        (11_420.0, 10, false),
        (11_420.0, 11, false),
    ];
    assert_eq!(block.data, expected);
    assert_eq!(block.acks.last_chunk::<2>(), Some(&[11_390.0, 11_550.0]));
    assert_eq!(block.done, 11_580.0);
    let published: f64 = 50.92;
    assert!((39.557 + 11.360 - published).abs() < 0.005, "as many digits as the paper prints");
}
