//! Tests that every component of a TCP can be written out in a scenario and means what its key
//! says.

use meshpace_core::{Duration, Rate};
use meshpace_scenario::{Scenario, Source};
use meshpace_transport::pacing::carrier_sense::PowerSource;
use meshpace_transport::pacing::{self, DccConfig, LinkDelay, Measure, RtsCts, Scaling, Sensing};
use meshpace_transport::tcp::window::{CubicConfig, HopRule};
use meshpace_transport::tcp::{self, ack, ecn, window};
use meshpace_transport::{Config, names};
use std::path::Path;

fn read(transport: &str) -> Result<tcp::Config, String> {
    let text = format!("[topology]\nkind = 'chain'\n[[flow]]\nfrom = 0\nto = 7\ntransport = {transport}\n");
    let source = Source { name: "pieces.toml".to_owned(), text, sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new("."), "pieces").map_err(|refusal| refusal.to_string())?;
    match &scenario.points[0].config.flows[0].transport {
        Config::Tcp(tcp) => Ok(tcp.clone()),
        other => Err(format!("no TCP: {other:?}")),
    }
}

fn named(name: &str) -> tcp::Config {
    match names::lookup(name) {
        Some(Config::Tcp(tcp)) => tcp,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_named_tcp_is_its_pieces() {
    for (name, pieces) in [
        ("newreno", "{}"),
        ("newreno+delack", "{ ack = 'delayed' }"),
        ("newreno+dyn-delack", "{ ack = { kind = 'dynamic', thresholds = [2, 5, 9], timer = '100 ms' } }"),
        ("tcp-2", "{ window = { kind = 'clamp', segments = 2 }, ack = 'delayed' }"),
        ("cwl", "{ window = 'hop-limit' }"),
        ("cwl-h4", "{ window = { kind = 'hop-limit', rule = 'quarter' } }"),
        ("few", "{ window = { kind = 'few', increment = 0.01 } }"),
        ("cubic", "{ window = 'cubic' }"),
        ("newreno+tack", "{ ack = 'tack' }"),
        ("newreno+linux-delack", "{ ack = { kind = 'linux', timer = '44 ms', quick = 16 } }"),
        ("tcp-daa", "{ window = { kind = 'clamp', segments = 4 }, ack = { kind = 'adaptive', segments = 4 } }"),
        ("copa", "{ window = { kind = 'copa', delta = 0.5 }, pacing = 'by-window', sack = true }"),
        ("bbr", "{ window = 'bbr', pacing = { kind = 'by-window' }, sack = true }"),
        ("tcp-ap", "{ pacing = 'adaptive' }"),
        ("tcp-ap-mad", "{ pacing = { dispersion = 'mad-rtt' } }"),
        // The reading that scenarios/ap05 judges, written out there.
        (
            "tcp-ap-released-karn",
            "{ name = 'tcp-ap-released', pacing = { kind = 'adaptive', profile = 'released', sampling = 'new-data-karn' } }",
        ),
        ("tcp-ap-sync", "{ pacing = { profile = 'synchronized' } }"),
        ("tcp-ap-sync+dyn-delack", "{ pacing = { measure = 'one-way' }, ack = 'dynamic' }"),
        ("tcp-ap-oid", "{ pacing = { profile = 'out-of-interference' } }"),
        ("dcc", "{ pacing = 'dcc', ecn = { echo = 'per-mark', reaction = false } }"),
        ("newreno+sack", "{ sack = true }"),
        ("newreno+ecn", "{ ecn = 'rfc3168' }"),
    ] {
        assert_eq!(read(pieces), Ok(named(name)), "{name}");
        assert_eq!(read(&format!("'{name}'")), Ok(named(name)), "{name}");
    }
}

#[test]
fn every_key_reaches_its_parameter() {
    let tcp = read("{ window = { kind = 'constant', segments = 6 }, ack = { kind = 'delayed', segments = 3, timer = '40 ms', linux_window_2 = true } }").unwrap();
    assert_eq!(tcp.window, window::Config::Constant { segments: 6 });
    let delayed = ack::Delayed { segments: 3, timer: Duration::from_millis(40), linux_window_2: true };
    assert_eq!(tcp.ack, ack::Config::Delayed(delayed));

    let tcp = read("{ name = 'cubic', window = { c = 0.2, beta = 0.5, fast_convergence = false } }").unwrap();
    assert_eq!(tcp.window, window::Config::Cubic(CubicConfig { c: 0.2, beta: 0.5, fast_convergence: false }));
    // If the kind is that of the named transport, its parameters are kept.
    let tcp = read("{ name = 'cwl-h4', window = { kind = 'hop-limit' } }").unwrap();
    assert_eq!(tcp.window, window::Config::HopLimit(HopRule::Quarter));

    let tcp = read(
        "{ name = 'dcc', pacing = { alpha = 0.2, beta = 1.1, upper_rtts = 3, slow_start_factor = 1.5, ack_rate = '2 Mbit/s' }, ecn = 'dcc' }",
    )
    .unwrap();
    let pacing::Config::Dcc(dcc) = &tcp.pacing else { panic!() };
    assert_eq!((dcc.alpha, dcc.beta, dcc.upper_rtts, dcc.slow_start_factor), (0.2, 1.1, 3.0, 1.5));
    assert_eq!(dcc.mac.ack_rate, Rate::from_mbps(2));
    assert_eq!(dcc.mac.backoff, DccConfig::default().mac.backoff);
    assert_eq!(tcp.ecn, ecn::Config::DCC);

    let tcp = read("{ name = 'tcp-ap', pacing = { scale = 2, scaling = 'samples' } }").unwrap();
    let pacing::Config::Adaptive(adaptive) = &tcp.pacing else { panic!() };
    assert_eq!((adaptive.scale, adaptive.scaling), (2.0, Scaling::Samples));
}

#[test]
fn every_reading_of_the_out_of_interference_delay_has_a_key() {
    let interference = |keys: &str| {
        let text = format!("{{ name = 'tcp-ap-oid', pacing = {{ interference = {{ {keys} }} }} }}");
        let tcp = read(&text).unwrap();
        let pacing::Config::Adaptive(adaptive) = tcp.pacing else { panic!() };
        let Measure::OutOfInterference(config) = adaptive.measure else { panic!() };
        config
    };
    let config = interference(
        "carrier_sense_threshold = '-75 dBm', path_loss_exponent = 3, power_frames = 5, power_source = 'path', \
         transmit_power = '10 dBm', antenna_gain = '2 dBi', cable = '1 dB', attenuator = '29 dB', \
         rts_cts = 'once', includes_link_delay = true, clamp_queueing = false, at_most_path = false",
    );
    let Sensing::Estimated(sense) = &config.sensing else { panic!() };
    assert_eq!((sense.threshold_dbm, sense.exponent, sense.frames), (-75.0, 3.0, 5));
    assert_eq!((sense.source, sense.budget.output_power_dbm()), (PowerSource::Path, -18.0));
    assert_eq!(config.link_delay, LinkDelay::Midpoint(RtsCts::Once));
    assert_eq!((config.includes_link_delay, config.clamp_queueing, config.at_most_path), (true, false, false));

    let config = interference("sensing_hops = 3, link_delay_data = '3.9 ms', link_delay_ack = '2.4 ms'");
    assert_eq!(config.sensing, Sensing::Fixed(3));
    let fixed = LinkDelay::Fixed { data: Duration::from_micros(3900), ack: Duration::from_micros(2400) };
    assert_eq!(config.link_delay, fixed);
}

#[test]
fn byte_counting_is_a_key_of_the_window_and_a_modifier() {
    assert_eq!(read("'newreno'").unwrap().byte_counting, None, "as in ns-2");
    assert_eq!(read("'newreno+abc'").unwrap().byte_counting, Some(2), "L of RFC 3465");
    assert_eq!(read("{ window = { kind = 'clamp', byte_counting = 3 } }").unwrap().byte_counting, Some(3));
    assert_eq!(read("{ name = 'few+abc', window = { byte_counting = 0 } }").unwrap().byte_counting, None);
}

#[test]
fn what_lies_outside_a_parameters_meaning_is_refused() {
    for (transport, expected) in [
        ("{ window = { kind = 'constant', byte_counting = 2 } }", "transport.window.byte_counting"),
        ("{ window = { byte_counting = -1 } }", "transport.window.byte_counting"),
        ("{ window = { kind = 'few', increment = 2 } }", "transport.window.increment"),
        ("{ window = { kind = 'constant', segments = 0 } }", "transport.window.segments"),
        ("{ window = { kind = 'few', segments = 2 } }", "transport.window.segments"),
        ("{ ack = { kind = 'dynamic', thresholds = [2, 5] } }", "transport.ack.thresholds"),
        ("{ ack = { kind = 'dynamic', thresholds = [9, 5, 2] } }", "ack.thresholds"),
        ("{ ack = { kind = 'delayed', timer = '2 s' } }", "ack.timer"),
        ("{ ack = 'dack' }", "\"delayed\""),
        ("{ pacing = { scale = 0.5 } }", "transport.pacing.scale"),
        ("{ pacing = { kind = 'dcc', beta = 0.5 } }", "transport.pacing.beta"),
        ("{ name = 'tcp-ap-oid', pacing = { interference = { link_delay_data = '1 ms' } } }", "link_delay_ack"),
        ("{ name = 'tcp-ap-oid', pacing = { interference = { attenuator = '16' } } }", "dB"),
        ("{ name = 'tcp-ap', pacing = { interference = { sensing_hops = 3 } } }", "transport.pacing.interference"),
        ("{ name = 'tcp-ap-sync', sack = true }", "sack"),
        ("{ ecn = { echo = 'twice' } }", "\"per-mark\""),
    ] {
        let refusal = read(transport).expect_err(transport);
        assert!(refusal.contains(expected), "{transport}: {refusal}");
    }
}
