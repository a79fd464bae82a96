//! Worked examples of AP10's pacing, of DCC's sender and of K scaling. Each is checked to half a
//! unit of the last digit.
//!
//! The numbers were computed from the papers' equations, independently of this code, or are the
//! papers' own where this is stated.

use meshpace_core::{Duration, Rate};
use meshpace_transport::Stats;
use meshpace_transport::pacing::carrier_sense::{LinkBudget, ReceivedPower, carrier_sense_hops, sensed_power_dbm};
use meshpace_transport::pacing::dcc::{Dcc, MacTimes};
use meshpace_transport::pacing::dispersion::scaled_coefficient_of_variation;
use meshpace_transport::pacing::link_delay::bounds;
use meshpace_transport::pacing::{
    AdaptiveConfig, CarrierSense, DccConfig, Estimator, LinkDelay, Measure, OutOfInterference, RtsCts, Sample, Scaling,
    Sensing,
};

fn shows(what: &str, actual: f64, shown: &str) {
    let decimals = shown.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    let half_unit = 0.5 * 10f64.powi(-decimals);
    let expected: f64 = shown.parse().unwrap();
    assert!((actual - expected).abs() <= half_unit * (1.0 + 1e-9), "{what}: {actual}, expected {shown}");
}

fn sense(threshold_dbm: f64, exponent: f64) -> CarrierSense {
    CarrierSense { threshold_dbm, exponent, ..CarrierSense::two_ray() }
}

#[test]
fn carrier_sense_range_ap10_equation_7() {
    // Columns: P_rx, T_cs (dBm), p, h; H_cs. The margin M = P_rx - T_cs gives floor(10^(M/10p)) + 1
    // if that is at most h.
    let rows = [
        (-60.0, -75.0, 3.0, 9, Some(4)),
        (-60.0, -74.0, 3.0, 9, Some(3)),
        (-65.0, -75.0, 3.0, 9, Some(3)),
        (-70.0, -75.0, 3.0, 9, Some(2)),
        (-62.0, -90.0, 3.0, 9, Some(9)),
        (-60.0, -90.0, 3.0, 6, None),
        (-76.0, -75.0, 3.0, 9, Some(1)),
        (-60.50, -78.07, 3.0, 9, Some(4)),
        (-60.50, -78.07, 4.0, 9, Some(3)),
    ];
    for (received, threshold, exponent, hops, expected) in rows {
        let what = format!("{received} dBm, {threshold} dBm, p = {exponent}, {hops} hops");
        assert_eq!(carrier_sense_hops(&sense(threshold, exponent), received, hops), expected, "{what}");
        // P_out has no influence.
        let budget = LinkBudget { transmit_power_dbm: -7.0, antenna_gain_dbi: 0.0, cable_db: 30.0, attenuator_db: 1.0 };
        let other = CarrierSense { budget, ..sense(threshold, exponent) };
        assert_eq!(carrier_sense_hops(&other, received, hops), expected, "{what}");
    }
}

#[test]
fn output_power_and_path_loss_ap10_equations_2_to_6() {
    let budget = LinkBudget { transmit_power_dbm: 15.0, antenna_gain_dbi: 2.1, cable_db: 3.71, attenuator_db: 16.0 };
    shows("P_out", budget.output_power_dbm(), "-2.61");
    shows("P_out", LinkBudget { attenuator_db: 29.0, ..budget }.output_power_dbm(), "-15.61");
    for (k, sensed, loss) in
        [(1, "-62.000", "59.390"), (2, "-71.031", "68.421"), (3, "-76.314", "73.704"), (4, "-80.062", "77.452")]
    {
        let power = sensed_power_dbm(-2.61, -62.0, 3.0, k);
        shows("sensed", power, sensed);
        shows("L_k", -2.61 - power, loss);
    }
}

#[test]
fn received_power_is_averaged_over_ten_frames() {
    let mut power = ReceivedPower::new(10);
    assert_eq!(power.average_dbm(), None);
    power.on_frame(-60.0);
    power.on_frame(f32::NAN);
    power.on_frame(-70.0);
    assert_eq!(power.average_dbm(), Some(-65.0));
    for _ in 0..10 {
        power.on_frame(-80.0);
    }
    assert_eq!(power.average_dbm(), Some(-80.0));
}

#[test]
fn link_delay_bounds_ap10_equations_9_and_10() {
    // Columns: rate; t_LLD lower, upper, middle; t_LLA upper, middle (ms). S_data is 1460, S_ACK
    // 40.
    let rows = [
        (1_000_000, "0.112", "39.572", "19.842", "5.492", "2.802"),
        (2_000_000, "0.112", "22.052", "11.082", "5.012", "2.562"),
        (5_500_000, "0.112", "10.903", "5.507", "4.707", "2.409"),
        (11_000_000, "0.112", "7.717", "3.915", "4.619", "2.366"),
    ];
    for (bps, least, most_data, middle_data, most_ack, middle_ack) in rows {
        let rate = Rate::from_bps(bps);
        let what = rate.to_string();
        let (lower, upper) = bounds(1460, rate, RtsCts::Off);
        shows(&what, lower * 1e3, least);
        shows(&what, upper * 1e3, most_data);
        shows(&what, bounds(40, rate, RtsCts::Off).1 * 1e3, most_ack);
        let (data, ack) = LinkDelay::Midpoint(RtsCts::Off).delays(1460, 40, rate);
        shows(&what, data * 1e3, middle_data);
        shows(&what, ack * 1e3, middle_ack);
    }
    // The published values at 11 Mbit/s: 0.11 and 7.72 ms, 4.60 to the one decimal that is correct,
    // and the values used, 3.9 and 2.4.
    let rate = Rate::from_mbps(11);
    shows("published", bounds(1460, rate, RtsCts::Off).0 * 1e3, "0.11");
    shows("published", bounds(1460, rate, RtsCts::Off).1 * 1e3, "7.72");
    shows("published", bounds(40, rate, RtsCts::Off).1 * 1e3, "4.6");
    shows("published", LinkDelay::Midpoint(RtsCts::Off).delays(1460, 40, rate).0 * 1e3, "3.9");
    shows("published", LinkDelay::Midpoint(RtsCts::Off).delays(1460, 40, rate).1 * 1e3, "2.4");
}

#[test]
fn rts_cts_ap10_section_4() {
    let rate = Rate::from_mbps(11);
    let (least, most) = bounds(1460, rate, RtsCts::Once);
    shows("once", least * 1e3, "0.384");
    shows("once", most * 1e3, "7.99");
    shows("once, ACK", bounds(40, rate, RtsCts::Once).1 * 1e3, "4.891");
    shows("each attempt", bounds(1460, rate, RtsCts::EveryAttempt).0 * 1e3, "0.384");
    shows("each attempt", bounds(1460, rate, RtsCts::EveryAttempt).1 * 1e3, "8.81");
    shows("each attempt, ACK", bounds(40, rate, RtsCts::EveryAttempt).1 * 1e3, "5.707");
    let (data, ack) = LinkDelay::Midpoint(RtsCts::EveryAttempt).delays(1460, 40, rate);
    shows("middle", data * 1e3, "4.595");
    shows("middle", ack * 1e3, "3.046");
}

#[test]
fn out_of_interference_delay_ap10_equations_13_and_14() {
    // Columns: RTT (ms), h, H_cs; t_q, OID, equation 14 without clamps, with t_LLD (ms). b = 11
    // Mbit/s, t_LLD 3.9, t_LLA 2.4 ms.
    let rows = [
        (60.0, 4, 3, "3.8045", "19.4655", "19.4655", "35.0655"),
        (65.0, 7, 3, "0.9474", "8.0369", "8.0369", "23.6369"),
        (60.0, 9, 3, "-0.3621", "4.2473", "2.7988", "19.8473"),
        (70.0, 5, 2, "3.3045", "13.0991", "13.0991", "24.7991"),
        (100.0, 7, 4, "3.4474", "22.5461", "22.5461", "42.0461"),
        (30.0, 2, 3, "3.8045", "9.7327", "19.4655", "17.5327"),
        (120.0, 4, 3, "11.3045", "49.4655", "49.4655", "65.0655"),
    ];
    let rate = Rate::from_mbps(11);
    for (rtt_ms, hops, sensed, queueing, delay, unclamped, with_link) in rows {
        let what = format!("{rtt_ms} ms, {hops} hops, H_cs {sensed}");
        let link_delay = LinkDelay::Fixed { data: Duration::from_micros(3900), ack: Duration::from_micros(2400) };
        let usual = OutOfInterference { sensing: Sensing::Fixed(sensed), link_delay, ..OutOfInterference::default() };
        let literal = OutOfInterference { clamp_queueing: false, at_most_path: false, ..usual.clone() };
        let including = OutOfInterference { includes_link_delay: true, ..usual.clone() };
        let oid = |config: &OutOfInterference| config.delay(rtt_ms / 1e3, hops, rate, 1460, 40, None) * 1e3;
        shows(&what, literal.queueing_delay(rtt_ms / 1e3, hops, rate, 1460, 40) * 1e3, queueing);
        shows(&what, oid(&usual), delay);
        shows(&what, oid(&literal), unclamped);
        shows(&what, oid(&including), with_link);
        // The estimator's first sample has the same value.
        let config =
            AdaptiveConfig { measure: Measure::OutOfInterference(usual), ..AdaptiveConfig::out_of_interference() };
        let mut estimator = Estimator::new(&config, 1460);
        estimator.on_sample(rtt_ms / 1e3, hops, rate, &mut Stats::default());
        shows(&what, estimator.delay().unwrap() * 1e3, delay);
    }
}

#[test]
fn sensing_range_follows_the_frames_received() {
    // Two-ray model, 200 m: -60.50 dBm gives H_cs = 3 and a delay over four hops; -70 dBm,
    // 10^(8.07/40) = 1.59, over three. Without a power the default 3 is used. With an RTT of 120 ms
    // over 7 hops no clamp applies: the delay is proportional to the hops.
    let config = AdaptiveConfig { alpha: 0.0, ..AdaptiveConfig::out_of_interference() };
    let delay = |power: Option<f32>| {
        let mut estimator = Estimator::new(&config, 1460);
        if let Some(power) = power {
            estimator.on_frame(power);
        }
        estimator.on_sample(0.12, 7, Rate::from_mbps(2), &mut Stats::default());
        estimator.delay().unwrap()
    };
    let per_hop = delay(None) / 4.0;
    assert!(per_hop > 0.0);
    for (power, n) in [(-60.5, 4.0), (-70.0, 3.0), (-77.0, 3.0), (-79.0, 2.0), (-30.0, 7.0)] {
        assert!((delay(Some(power)) / per_hop - n).abs() < 1e-9, "{power} dBm: {}", delay(Some(power)) / per_hop);
    }
}

#[test]
fn synchronized_clocks_use_the_echoed_delay_ap05_figure_15() {
    // The delay is 4 T / h. The RTT only affects the dispersion.
    let mut estimator = Estimator::new(&AdaptiveConfig::synchronized(), 1460);
    let mut stats = Stats::default();
    let mut sample = Sample { rtt: 0.5, one_way: Some(0.040), hops: 7, rate: Rate::from_mbps(2), path_power_dbm: None };
    estimator.on_measured(&sample, &mut stats);
    shows("FHD", estimator.delay().unwrap() * 1e3, "22.8571");
    // If the peer echoes nothing, the RTT is used: 2 (60/7 + 5.84) = 28.8229 ms with s_d = 1500.
    let mut estimator = Estimator::new(&AdaptiveConfig::synchronized(), 1460);
    sample = Sample { rtt: 0.06, one_way: None, ..sample };
    estimator.on_measured(&sample, &mut stats);
    shows("FHD", estimator.delay().unwrap() * 1e3, "28.8229");
}

#[test]
fn k_scaling_tpa_section_5_3() {
    let sixty = [60.0; 50];
    let four = [40.0, 60.0, 80.0, 60.0];
    let ten = [55.0, 62.0, 48.0, 91.0, 60.0, 58.0, 120.0, 63.0, 59.0, 64.0];
    let rows: [(&[f64], f64, &str, &str, &str); 7] = [
        (&sixty, 1.0, "0.000000", "1.000000", "0.000000"),
        (&sixty, 2.0, "1.010153", "3.020305", "0.000000"),
        (&sixty, 3.0, "2.020305", "5.040610", "0.000000"),
        (&four, 2.0, "1.276569", "3.553139", "0.544331"),
        (&four, 3.0, "2.449490", "5.898979", "0.816497"),
        (&ten, 2.0, "1.227802", "3.455603", "0.629592"),
        (&ten, 3.0, "2.310046", "5.620092", "0.944388"),
    ];
    for (samples, k, literal, factor, deviations) in rows {
        let what = format!("K = {k}, {} samples", samples.len());
        shows(&what, scaled_coefficient_of_variation(samples, k), literal);
        // Closed form of equation 3.
        let (n, cov) = (samples.len() as f64, scaled_coefficient_of_variation(samples, 1.0));
        shows(&what, (k * k * cov * cov + (k - 1.0) * (k - 1.0) * n / (n - 1.0)).sqrt(), literal);
        for (scaling, shown) in [(Scaling::Samples, literal), (Scaling::Deviations, deviations)] {
            let config = AdaptiveConfig { scale: k, scaling, alpha: 0.0, ..AdaptiveConfig::paper() };
            let mut estimator = Estimator::new(&config, 1460);
            for rtt in samples {
                estimator.on_sample(rtt / 1e3, 4, Rate::from_mbps(2), &mut Stats::default());
            }
            shows(&what, estimator.dispersion(), shown);
            if scaling == Scaling::Samples {
                shows(&what, estimator.interval_s().unwrap() / estimator.delay().unwrap(), factor);
            }
        }
    }
}

fn two() -> Rate {
    Rate::from_mbps(2)
}

#[test]
fn lower_bound_dcc_section_4() {
    // 1000 bytes of payload, mean backoff 310 us.
    let config = DccConfig::default();
    shows("2 Mbit/s", config.lower_bound(1000, two()) * 1e3, "6.276");
    shows("11 Mbit/s", config.lower_bound(1000, Rate::from_mbps(11)) * 1e3, "2.558");
    let fast = DccConfig { mac: MacTimes { ack_rate: two(), ..MacTimes::default() }, ..config };
    shows("MAC ACK at 2 Mbit/s", fast.lower_bound(1000, two()) * 1e3, "6.164");
}

#[test]
fn interval_under_a_scripted_marking_dcc_algorithm_2() {
    // Starts from 60 ms; E: ECN echo. The rate grows by exactly 0.1 per second without a mark.
    let config = DccConfig::default();
    let rows = [
        (false, "59.64215", "16.76667"),
        (false, "59.28854", "16.86667"),
        (false, "58.93910", "16.96667"),
        (true, "61.88605", "16.15873"),
        (false, "61.50542", "16.25873"),
        (false, "61.12944", "16.35873"),
        (true, "64.18591", "15.57974"),
        (true, "67.39521", "14.83785"),
        (false, "66.94404", "14.93785"),
    ];
    let mut interval = 0.060;
    for (marked, shown, rate) in rows {
        interval = config.step(interval, marked);
        shows("interval", interval * 1e3, shown);
        shows("rate", 1.0 / interval, rate);
    }
}

#[test]
fn bounds_dcc_section_4() {
    // T_lb = 6.276 ms. The average RTT is 120 ms, so T_ub = 240 ms.
    let bounded = |interval: f64, marked: bool| {
        let mut dcc = Dcc::new(&DccConfig::default(), 1000);
        dcc.on_sample(0.120);
        dcc.start_with(interval);
        dcc.on_ack(marked, false, two());
        dcc.interval_s().unwrap() * 1e3
    };
    shows("below", bounded(0.005, false), "6.276");
    shows("inside", bounded(0.0065, false), "6.49578");
    shows("above", bounded(0.235, true), "240.000");
    shows("back", bounded(0.240, false), "234.375");
    // In slow start, and as the first interval, twice the lower bound is used.
    let mut dcc = Dcc::new(&DccConfig::default(), 1000);
    dcc.on_ack(false, true, two());
    shows("slow start", dcc.interval_s().unwrap() * 1e3, "12.552");
}

#[test]
fn equilibrium_dcc_section_4() {
    // alpha (1 - p) = p r (1 - 1/beta), so r = alpha (1 - p) / (p (1 - 1/beta)). If one ACK in n is
    // marked, the rate settles near this value: with every 20th ACK marked, p = 0.05, at 39.9 per
    // second.
    for (p, shown) in [(0.02, "102.9"), (0.05, "39.9"), (0.0665, "29.479"), (0.1, "18.9"), (0.2, "8.4")] {
        let config = DccConfig::default();
        shows("r", config.alpha * (1.0 - p) / (p * (1.0 - 1.0 / config.beta)), shown);
    }
    for (n, rate) in [(20, 39.9), (10, 18.9), (5, 8.4)] {
        let config = DccConfig::default();
        let mut interval = 0.05;
        let mut sum = 0.0;
        for ack in 1..=20_000 {
            interval = config.step(interval, ack % n == 0);
            if ack > 10_000 {
                sum += 1.0 / interval;
            }
        }
        // The mean over a period differs from the continuous solution by at most half its swing, (1
        // - p) n alpha / 2.
        let mean = sum / 10_000.0;
        assert!((mean - rate).abs() < 0.1 * f64::from(n) / 2.0 + 0.05 * rate, "one in {n}: {mean}");
    }
}

#[test]
fn parameters_outside_their_meaning_are_refused() {
    let refused = |config: AdaptiveConfig| config.check().unwrap_err().name;
    let paper = AdaptiveConfig::paper;
    assert_eq!(refused(AdaptiveConfig { scale: 0.5, ..paper() }), "scale");
    let oid = |sensing| AdaptiveConfig {
        measure: Measure::OutOfInterference(OutOfInterference { sensing, ..OutOfInterference::default() }),
        ..paper()
    };
    assert_eq!(refused(oid(Sensing::Fixed(0))), "interference.sensing_hops");
    assert_eq!(refused(oid(Sensing::Estimated(sense(f64::NAN, 3.0)))), "interference.carrier_sense_threshold");
    assert_eq!(refused(oid(Sensing::Estimated(sense(-75.0, 0.5)))), "interference.path_loss_exponent");
    let frames = CarrierSense { frames: 0, ..CarrierSense::testbed(-75.0) };
    assert_eq!(refused(oid(Sensing::Estimated(frames))), "interference.power_frames");
    for config in [
        DccConfig { alpha: -0.1, ..DccConfig::default() },
        DccConfig { beta: 0.9, ..DccConfig::default() },
        DccConfig { upper_rtts: 0.0, ..DccConfig::default() },
        DccConfig { slow_start_factor: f64::NAN, ..DccConfig::default() },
    ] {
        assert!(config.check().is_err(), "{config:?}");
    }
}
