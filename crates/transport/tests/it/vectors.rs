//! Worked examples of AP05's estimator. Each is checked to half a unit of the last digit given.
//!
//! The numbers were computed from the paper's equations, independently of this code: FHD and t_q
//! (section 4.3), cov (4.2), the EWMA and R (4.4), FHD from one-way delays with synchronized clocks
//! (section 5, figure 15).

use meshpace_core::Rate;
use meshpace_transport::Stats;
use meshpace_transport::pacing::dispersion::{coefficient_of_variation, mean, relative_absolute_deviation};
use meshpace_transport::pacing::estimator::{propagation_delay, queueing_delay, synchronized_delay};
use meshpace_transport::pacing::{AdaptiveConfig, Estimator};

/// Asserts that `actual` prints as `shown`, a decimal number.
fn shows(what: &str, actual: f64, shown: &str) {
    let decimals = shown.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    let half_unit = 0.5 * 10f64.powi(-decimals);
    let expected: f64 = shown.parse().unwrap();
    assert!((actual - expected).abs() <= half_unit * (1.0 + 1e-9), "{what}: {actual}, expected {shown}");
}

#[test]
fn four_hop_delay_section_4_3() {
    // Columns: RTT (ms), h, b (Mbit/s), s_d; t_q (ms), D_n (ms), 1/D_n (1/s), bound of the goodput
    // (kbit/s).
    let rows = [
        (60.0, 7, 2, 1460, "1.2857", "28.5029", "35.0842", "409.78"),
        (60.0, 4, 2, 1460, "4.5000", "41.3600", "24.1779", "282.40"),
        (200.0, 7, 2, 1460, "11.2857", "68.5029", "14.5979", "170.50"),
        (120.0, 10, 2, 1460, "3.0000", "35.3600", "28.2805", "330.32"),
        (30.0, 3, 2, 1460, "2.0000", "23.5200", "42.5170", "496.60"),
        (20.0, 2, 2, 1460, "2.0000", "15.6800", "63.7755", "744.90"),
        (9.5, 1, 2, 1460, "1.7500", "7.5900", "131.7523", "1538.87"),
        (60.0, 7, 11, 1460, "3.7403", "19.2083", "52.0608", "608.07"),
        (40.0, 8, 2, 1460, "-0.5000", "21.3600", "46.8165", "546.82"),
        (60.0, 7, 2, 1500, "1.2057", "28.8229", "34.6947", "405.23"),
    ];
    for (rtt_ms, hops, mbps, data, t_q, delay, rate, goodput) in rows {
        let b = Rate::from_mbps(mbps);
        let what = format!("RTT {rtt_ms} ms, {hops} hops, {mbps} Mbit/s, s_d {data}");
        let queueing = queueing_delay(rtt_ms / 1e3, hops, b, data, 40);
        let d = propagation_delay(hops.min(4), queueing, b, data);
        shows(&what, queueing * 1e3, t_q);
        shows(&what, d * 1e3, delay);
        shows(&what, 1.0 / d, rate);
        shows(&what, 1460.0 * 8.0 / d / 1e3, goodput);

        // The estimator uses the same formula, with the n of short paths.
        let config = AdaptiveConfig { data_overhead: data - 1460, ..AdaptiveConfig::paper() };
        let mut estimator = Estimator::new(&config, 1460);
        estimator.on_sample(rtt_ms / 1e3, hops, b, &mut Stats::default());
        shows(&what, estimator.delay().unwrap() * 1e3, delay);
    }
}

#[test]
fn variation_section_4_2() {
    let fifty: Vec<f64> = (41..=90).map(f64::from).collect();
    let rows: [(&[f64], &str, &str, &str, &str); 6] = [
        (&[60.0, 60.0, 60.0, 60.0], "60", "0", "1", "0"),
        (&[50.0, 70.0], "60", "0.235702", "1.471405", "0.166667"),
        (&[40.0, 60.0, 80.0, 60.0], "60", "0.272166", "1.544331", "0.166667"),
        (&[55.0, 62.0, 48.0, 91.0, 60.0, 58.0, 120.0, 63.0, 59.0, 64.0], "68", "0.314796", "1.629592", "0.220588"),
        (&[20.0, 20.0, 20.0, 20.0, 200.0], "56", "1.437472", "3.874945", "1.028571"),
        (&fifty, "65.5", "0.222555", "1.445111", "0.190840"),
    ];
    // The divisor N would give these values. Only the test computes it, to check that N - 1 is
    // used.
    let divisor_n = ["0", "0.166667", "0.235702", "0.298642", "1.285714", "0.220319"];
    for ((samples, mean_shown, cov_shown, factor, mad), with_n) in rows.into_iter().zip(divisor_n) {
        let what = format!("{samples:?}");
        let cov = coefficient_of_variation(samples);
        let exact =
            |decimals: &str| if decimals.contains('.') { decimals.to_string() } else { format!("{decimals}.000000") };
        shows(&what, mean(samples), &exact(mean_shown));
        shows(&what, cov, &exact(cov_shown));
        shows(&what, 1.0 + 2.0 * cov, &exact(factor));
        shows(&what, relative_absolute_deviation(samples), &exact(mad));
        let n = samples.len() as f64;
        shows(&what, cov * ((n - 1.0) / n).sqrt(), &exact(with_n));
    }
}

#[test]
fn sequence_section_4_4() {
    // Columns: RTT (ms); FHD, FHD^ (ms), cov, IPD (ms), R (1/s).
    let rows = [
        (60.0, "28.5029", "28.5029", "0.000000", "28.5029", "35.0842"),
        (62.0, "29.0743", "28.6743", "0.023184", "30.0038", "33.3291"),
        (58.0, "27.9314", "28.4514", "0.033333", "30.3482", "32.9509"),
        (90.0, "37.0743", "31.0383", "0.223535", "44.9146", "22.2645"),
        (61.0, "28.7886", "30.3634", "0.202214", "42.6432", "23.4504"),
        (60.0, "28.5029", "29.8052", "0.187794", "40.9997", "24.3904"),
        (150.0, "54.2171", "37.1288", "0.439337", "69.7529", "14.3363"),
        (65.0, "29.9314", "34.9696", "0.418936", "64.2696", "15.5595"),
    ];
    let config = AdaptiveConfig { data_overhead: 0, ..AdaptiveConfig::paper() };
    let mut estimator = Estimator::new(&config, 1460);
    let b = Rate::from_mbps(2);
    for (rtt_ms, fhd, smoothed, cov, interval, rate) in rows {
        let what = format!("RTT {rtt_ms} ms");
        let sample = propagation_delay(4, queueing_delay(rtt_ms / 1e3, 7, b, 1460, 40), b, 1460);
        estimator.on_sample(rtt_ms / 1e3, 7, b, &mut Stats::default());
        shows(&what, sample * 1e3, fhd);
        shows(&what, estimator.delay().unwrap() * 1e3, smoothed);
        shows(&what, estimator.dispersion(), cov);
        shows(&what, estimator.interval_s().unwrap() * 1e3, interval);
        shows(&what, 1.0 / estimator.interval_s().unwrap(), rate);
        // The timer is set to the nearest nanosecond.
        let rounded = estimator.interval().as_secs_f64();
        assert!((rounded - estimator.interval_s().unwrap()).abs() <= 0.5e-9);
    }
}

#[test]
fn synchronized_clocks_figure_15() {
    for (one_way_ms, hops, shown) in [(40.0, 7, "22.8571"), (30.0, 4, "30.0"), (20.0, 3, "20.0"), (60.0, 10, "24.0")] {
        shows("synchronized", synchronized_delay(one_way_ms / 1e3, hops, hops.min(4)) * 1e3, shown);
    }
}

#[test]
fn history_drops_the_oldest_sample() {
    // With N = 2 only (40, 80) remain of (1000, 40, 80): mean 60, cov sqrt(800)/60.
    let config = AdaptiveConfig { history: 2, ..AdaptiveConfig::paper() };
    let mut estimator = Estimator::new(&config, 1460);
    for rtt in [1.0, 0.040, 0.080] {
        estimator.on_sample(rtt, 4, Rate::from_mbps(2), &mut Stats::default());
    }
    shows("cov", estimator.dispersion(), "0.471405");
}

#[test]
fn released_agent_differs_point_by_point() {
    // Sizes are payload + 112 and 112, so only the payload's air time of 5.84 ms counts. 7 hops,
    // RTT 60 ms: D_4 = 2 (60/7 + 5.84) = 28.8229 ms. Below four hops only one hop counts: h = 3,
    // RTT 30 ms: (10 + 5.84) / 2 = 7.92 ms.
    let b = Rate::from_mbps(2);
    let mut stats = Stats::default();
    let released = AdaptiveConfig::released();
    let mut estimator = Estimator::new(&released, 1460);
    assert_eq!(estimator.interval().as_secs_f64(), 0.05);
    estimator.on_sample(0.060, 7, b, &mut stats);
    shows("four hops", estimator.delay().unwrap() * 1e3, "28.8229");
    let mut short = Estimator::new(&released, 1460);
    short.on_sample(0.030, 3, b, &mut stats);
    shows("one hop", short.delay().unwrap() * 1e3, "7.920");

    // A delay sample of 0.5 s or more is ignored: 2 (RTT/7 + 5.84 ms) = 0.5 s at RTT = 1.70912 s.
    let before = estimator.clone();
    estimator.on_sample(1.70913, 7, b, &mut stats);
    assert_eq!(estimator.delay(), before.delay());
    assert_eq!(estimator.interval(), before.interval());
    estimator.on_sample(1.70911, 7, b, &mut stats);
    shows("smoothed", estimator.delay().unwrap() * 1e3, "170.1751"); // 0.7 * 28.82286 + 0.3 * 499.99714
    // Dispersion of the delays 28.82286 and 499.99714: mean 264.41, deviation 235.58714, 0.890992.
    shows("dispersion", estimator.dispersion(), "0.89099");

    // A queueing delay above 0.5 s per hop is replaced by the average so far, here half of the first one's
    // t_q = (60/7 - 6.736)/2 ms = 0.917714 ms.
    let config = AdaptiveConfig { delay_limit: None, ..released };
    let mut estimator = Estimator::new(&config, 1460);
    estimator.on_sample(0.060, 7, b, &mut stats);
    estimator.on_sample(10.0, 7, b, &mut stats);
    // D = 4 (0.458857 + 6.288) ms = 26.987429 ms; 0.7 * 28.822857 + 0.3 * 26.987429 = 28.272229 ms.
    shows("replaced", estimator.delay().unwrap() * 1e3, "28.2722");
}
