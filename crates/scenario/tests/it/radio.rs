//! Compares the radios with measurements by others: chains in ns-3.44, and the testbed of AP10.

use meshpace_core::{Duration, Rate};
use meshpace_mesh::config::{Preamble, Propagation, Reception, RetryLimits};
use meshpace_scenario::{Scenario, Source};
use meshpace_transport::Config;
use meshpace_transport::pacing::{self, LinkDelay, Measure, RtsCts, Sensing};
use std::path::Path;

fn read(text: &str, sets: &[&str]) -> Scenario {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let source = Source { name: "radio.toml".to_owned(), text: text.to_owned(), sets };
    Scenario::read(source, Path::new("."), "radio").unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Mean goodput of every point over its seeds, kbit/s.
fn goodputs(scenario: &Scenario) -> Vec<f64> {
    let mean = |point: &meshpace_scenario::Point| {
        let sum: f64 =
            (1..=scenario.seeds).map(|seed| meshpace_sim::run(&point.config, seed).aggregate_goodput_bps).sum();
        sum / scenario.seeds as f64 / 1e3
    };
    scenario.points.iter().map(mean).collect()
}

/// The chains of the reference measurements: 2 Mbit/s, RTS/CTS, AODV that learns of lost links from
/// the MAC, NewReno with SACK and a window of 20, seven attempts for any frame.
const CHAIN: &str = "duration = '120 s'\nwarmup = '20 s'\n[mac]\nprofile = 'ieee'\nlong_retry_limit = 7\n\
    [routing]\nprotocol = 'aodv'\nlocal_repair = 'off'\n[[flow]]\ntransport = 'newreno+sack'\nmax_window = 20\n\
    [topology]\nkind = 'chain'\n[sweep]\n'topology.hops' = [1, 2, 3, 4, 5, 6, 7]\nseeds = 10\n";

#[test]
fn chains_over_two_ray_and_sinr_carry_what_they_do_in_ns3() {
    // Unmodified ns-3.44, kbit/s: hidden terminals cost nothing there. Its 95 % intervals are
    // within 2 %. 10 % are allowed for the differences between two implementations of AODV and TCP.
    // There are ten seeds, because three would leave an interval of 13 kbit/s over seven hops.
    let measured = [1270.0, 639.0, 413.0, 339.0, 294.0, 272.0, 265.0];
    let ours = goodputs(&read(CHAIN, &["radio.reception=sinr"]));
    for (hops, (ours, measured)) in ours.iter().zip(measured).enumerate() {
        assert!((ours / measured - 1.0).abs() < 0.10, "{} hops: {ours:.0}, ns-3 {measured}", hops + 1);
    }
    // The rule of ns-2 in the same program gives 164 kbit/s over seven hops.
    let collapsed = goodputs(&read(CHAIN, &["sweep.\"topology.hops\"=[7]"]))[0];
    assert!(collapsed < 0.8 * ours[6], "{collapsed:.0} against {:.0}", ours[6]);
}

#[test]
fn every_key_of_the_radio_reaches_the_run() {
    let text = "[topology]\nkind = 'chain'\nhops = 2\nspacing = '1 m'\n[[flow]]\nfrom = 0\nto = 2\ntransport = 'tcp-ap-oid'\n\
        [mac]\nshort_retry_limit = 4\nlong_retry_limit = 3\n\
        [radio]\nmodel = 'log-distance'\nrate = '5.5 Mbit/s'\npreamble = 'short'\nrts_cts = false\nnoise = '-90 dBm'\n\
        preamble_sinr = '5 dB'\ncarrier_sense_threshold = '-85 dBm'\npath_loss_exponent = 2.5\n\
        reference_loss = '42 dB'\ntransmit_power = '12 dBm'\nantenna_gain = '2.1 dBi'\ncable = '3.71 dB'\n\
        attenuator = ['1 dB', '2 dB', '3 dB']\nshadowing = '1 dB'\nshadowing_seed = 7\n";
    let config = read(text, &[]).points[0].config.clone();
    let radio = &config.mesh.radio;
    assert_eq!(config.mesh.mac.retries, RetryLimits { short: 4, long: 3 });
    assert_eq!(
        (radio.rate, radio.preamble, radio.reception),
        (Rate::from_bps(5_500_000), Preamble::Short, Reception::Sinr)
    );
    assert_eq!((radio.noise_dbm, radio.detect_ratio_db, radio.carrier_sense_dbm), (-90.0, 5.0, -85.0));
    let Propagation::LogDistance(model) = &radio.propagation else { panic!("{radio:?}") };
    assert_eq!((model.exponent, model.reference_loss_db, model.transmit_power_dbm), (2.5, 42.0, 12.0));
    assert_eq!((model.antenna_gain_dbi, model.cable_db), (2.1, 3.71));
    assert_eq!(model.attenuators_db, [1.0, 2.0, 3.0]);
    assert_eq!((model.shadowing_db, model.shadowing_seed), (1.0, 7));
    assert!(radio.check().is_ok());

    // The pacing takes its parameters of the radio from there.
    let Config::Tcp(tcp) = &config.flows[0].transport else { panic!() };
    let pacing::Config::Adaptive(adaptive) = &tcp.pacing else { panic!() };
    let Measure::OutOfInterference(interference) = &adaptive.measure else { panic!() };
    let Sensing::Estimated(sense) = &interference.sensing else { panic!() };
    assert_eq!((sense.threshold_dbm, sense.exponent), (-85.0, 2.5));
    assert_eq!(interference.link_delay, LinkDelay::Midpoint(RtsCts::Off));
    let named = "flow.transport={ name = 'tcp-ap-oid', pacing = { interference = { path_loss_exponent = 3 } } }";
    let Config::Tcp(tcp) = &read(text, &[named]).points[0].config.flows[0].transport.clone() else { panic!() };
    let pacing::Config::Adaptive(adaptive) = &tcp.pacing else { panic!() };
    let Measure::OutOfInterference(interference) = &adaptive.measure else { panic!() };
    let Sensing::Estimated(sense) = &interference.sensing else { panic!() };
    assert_eq!((sense.threshold_dbm, sense.exponent), (-85.0, 3.0), "what is written counts");
}

#[test]
fn two_ray_has_a_threshold_of_carrier_sense_too() {
    let radio = |keys: &str| read(&format!("[radio]\n{keys}[[flow]]\n"), &[]).points[0].config.mesh.radio.clone();
    let set = radio("carrier_sense_threshold = '-72 dBm'\n");
    assert_eq!(set.two_ray_sense_dbm, Some(-72.0));
    assert!((set.sense_w() / 6.3096e-11 - 1.0).abs() < 1e-4, "-72 dBm");
    assert_eq!(radio("").sense_w(), meshpace_mesh::radio::two_ray::SENSE_THRESHOLD_W, "that of ns-2 to the bit");
}

#[test]
fn received_power_reaches_the_pacing() {
    // The delay covers H_cs + 1 hops. If the sender is sensed over one hop, H_cs = 2: three hops.
    // If it is sensed over none, H_cs = 1: two hops.
    let text = "duration = '20 s'\nwarmup = '10 s'\n[topology]\nkind = 'chain'\nhops = 5\nspacing = '70 m'\n\
        [radio]\nmodel = 'log-distance'\nrts_cts = false\nrate = '11 Mbit/s'\n[[flow]]\n\
        transport = { name = 'tcp-ap-oid', initial_ssthresh = 64 }\n";
    // 15 dBm - 39.74 dB - 30 log10(70) = -80.1 dBm over a hop, -89.1 dBm over two, -101.1 dBm over
    // five.
    let interval = |threshold: &str| {
        let scenario = read(text, &[&format!("radio.carrier_sense_threshold={threshold}")]);
        assert_eq!(scenario.points[0].config.duration, Duration::from_secs(20));
        let outcome = meshpace_sim::run(&scenario.points[0].config, 1);
        assert_eq!(outcome.flows[0].hops, 5);
        let pacing = outcome.flows[0].pacing;
        // Equations 13 and 14 with the mean measured RTT: (H_cs + 1) (t_q + S/b).
        let rtt = outcome.flows[0].rtt_mean_s;
        let queueing = 0.5 * (rtt / 5.0 - 1500.0 * 8.0 / 11e6 - (3.915 + 2.366) * 1e-3);
        pacing.delay_s / (queueing.max(0.0) + 1460.0 * 8.0 / 11e6)
    };
    let (one, none) = (interval("-85 dBm"), interval("-75 dBm"));
    assert!((one / 3.0 - 1.0).abs() < 0.2, "H_cs = 2: {one}");
    assert!((none / 2.0 - 1.0).abs() < 0.2, "H_cs = 1: {none}");
}

#[test]
fn the_testbed_s_chain_carries_what_was_measured() {
    // AP10, Table III, within the 25 % that were the criterion for the choice of the radio, with
    // the ten seeds of that choice.
    let published = [5588.0, 2750.0, 962.0, 709.0, 748.0, 903.0, 773.0, 722.0, 657.0];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ap10/F6.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let only = ["sweep.\"radio.rts_cts\"=[false]", "sweep.\"flow.transport\"=['newreno+delack']", "sweep.seeds=10"];
    let ours = goodputs(&read(&text, &only));
    assert_eq!(ours.len(), published.len());
    for (hops, (ours, published)) in ours.iter().zip(published).enumerate() {
        assert!((ours / published - 1.0).abs() < 0.25, "{} hops: {ours:.0}, published {published}", hops + 1);
    }
}
