//! `flow.transport.pacing`: when the next segment may leave.

use super::quantity::{POWER, RATE, RATIO, TIME};
use super::reader::{Reader, Sign};
use super::train;
use super::transport;
use super::value::{Kind, Value};
use meshpace_core::{Duration, Rate};
use meshpace_mesh::config::{MeshConfig, Propagation, RtsPolicy};
use meshpace_transport::pacing::carrier_sense::{CarrierSense, LinkBudget, PowerSource};
use meshpace_transport::pacing::rules::{self, Kind as Rule};
use meshpace_transport::pacing::{
    self, AdaptiveConfig, DccConfig, Dispersion, HopSource, LinkDelay, Measure, OutOfInterference, RateLimit, Recovery,
    RtsCts, Sampling, Scaling, Sensing, ShortPath,
};
use meshpace_transport::train::solo;

/// The longest time a parameter can be.
const MAX_SECONDS: f64 = 1e6;
/// The largest power or ratio of powers, dBm or dB.
const MAX_DECIBELS: f64 = 1e4;

/// The kinds of pacing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacingKind {
    None,
    Adaptive,
    Dcc,
    Trains,
    Rule(Rule),
}

/// The out-of-interference delay as a node of this mesh has it unless the flow says otherwise: the threshold, exponent
/// and budget of a log-distance radio are its own (AP10 asks the driver), and there are RTS and CTS or not.
pub fn usual_interference(mesh: &MeshConfig) -> OutOfInterference {
    let radio = &mesh.radio;
    let Propagation::LogDistance(model) = &radio.propagation else { return OutOfInterference::default() };
    let budget = LinkBudget {
        transmit_power_dbm: model.transmit_power_dbm,
        antenna_gain_dbi: model.antenna_gain_dbi,
        cable_db: model.cable_db,
        attenuator_db: model.attenuator_db,
    };
    let (threshold_dbm, exponent) = (radio.carrier_sense_dbm, model.exponent);
    let sense = CarrierSense { budget, threshold_dbm, exponent, ..CarrierSense::two_ray() };
    let rts = if mesh.mac.rts == RtsPolicy::Never { RtsCts::Off } else { RtsCts::EveryAttempt };
    OutOfInterference {
        sensing: Sensing::Estimated(sense),
        link_delay: LinkDelay::Midpoint(rts),
        ..OutOfInterference::default()
    }
}

/// Reads the key `pacing`, a kind or a table; `usual` is the out-of-interference delay that belongs to the radio.
pub fn read(keys: &mut Reader<'_>, pacing: &mut pacing::Config, usual: &OutOfInterference) {
    let mut kinds = vec![("none", PacingKind::None), ("adaptive", PacingKind::Adaptive), ("dcc", PacingKind::Dcc)];
    kinds.push(("trains", PacingKind::Trains));
    kinds.extend(Rule::ALL.iter().map(|rule| (rule.about().name, PacingKind::Rule(*rule))));
    match keys.get("pacing") {
        None => {}
        Some(Value { kind: Kind::Table(_), .. }) => {
            let given = keys.value("name").map_or_else(|| transport::DEFAULT_PIECES.to_owned(), Value::brief);
            let path = keys.path("pacing");
            let mut keys = keys.table("pacing");
            // A profile is one of adaptive pacing's: it says as much as the kind does.
            let says = ["kind", "profile"].iter().any(|key| keys.value(key).is_some());
            if !says && matches!(pacing, pacing::Config::None) {
                keys.problems().note(format!(
                    "{path}: {given} has no pacing, and keys of pacing give it adaptive pacing, which makes it another transport (TCP-AP or \
                     TPA-AP): add kind = \"adaptive\" if that is meant, or write pacing = \"none\""
                ));
            }
            let now = match pacing {
                pacing::Config::Dcc(_) => PacingKind::Dcc,
                pacing::Config::Trains(_) => PacingKind::Trains,
                pacing::Config::Rule(config) => PacingKind::Rule(config.kind()),
                _ => PacingKind::Adaptive,
            };
            match keys.choice("kind", &kinds, &[]).unwrap_or(now) {
                PacingKind::None => {
                    *pacing = pacing::Config::None;
                    keys.finish("a sender without pacing");
                }
                PacingKind::Dcc => {
                    let before = if let pacing::Config::Dcc(config) = pacing { Some(config.clone()) } else { None };
                    let mut config = before.unwrap_or_default();
                    read_dcc(&mut keys, &mut config);
                    keys.finish("pacing by marks");
                    *pacing = pacing::Config::Dcc(config);
                }
                PacingKind::Trains => {
                    let before = if let pacing::Config::Trains(config) = pacing { Some(config.clone()) } else { None };
                    let mut config = before.unwrap_or_default();
                    train::read_solo(&mut keys, &mut config);
                    keys.finish("pacing by trains");
                    *pacing = pacing::Config::Trains(config);
                }
                PacingKind::Rule(kind) => {
                    let mut config = match pacing {
                        pacing::Config::Rule(config) if config.kind() == kind => config.clone(),
                        _ => rules::Config::new(kind),
                    };
                    for (name, value, range) in config.settings() {
                        assign(value, keys.number(name, range));
                    }
                    keys.finish("pacing by this rule");
                    *pacing = pacing::Config::Rule(config);
                }
                PacingKind::Adaptive => {
                    let before =
                        if let pacing::Config::Adaptive(config) = pacing { Some(config.clone()) } else { None };
                    let profiles = [
                        ("paper", AdaptiveConfig::paper()),
                        ("released", AdaptiveConfig::released()),
                        ("synchronized", AdaptiveConfig::synchronized()),
                        (
                            "out-of-interference",
                            AdaptiveConfig {
                                measure: Measure::OutOfInterference(usual.clone()),
                                ..AdaptiveConfig::out_of_interference()
                            },
                        ),
                    ];
                    let profile = keys.choice("profile", &profiles, &[]);
                    let mut config = profile.or(before).unwrap_or_else(AdaptiveConfig::paper);
                    read_adaptive(&mut keys, &mut config, usual);
                    keys.finish("adaptive pacing");
                    *pacing = pacing::Config::Adaptive(config);
                }
            }
        }
        Some(_) => match keys.choice("pacing", &kinds, &[]) {
            Some(PacingKind::None) => *pacing = pacing::Config::None,
            Some(PacingKind::Adaptive) => *pacing = pacing::Config::Adaptive(AdaptiveConfig::paper()),
            Some(PacingKind::Dcc) => *pacing = pacing::Config::Dcc(DccConfig::default()),
            Some(PacingKind::Trains) => *pacing = pacing::Config::Trains(solo::Config::default()),
            Some(PacingKind::Rule(kind)) => *pacing = pacing::Config::Rule(rules::Config::new(kind)),
            None => {}
        },
    }
}

fn read_adaptive(keys: &mut Reader<'_>, config: &mut AdaptiveConfig, usual: &OutOfInterference) {
    assign(&mut config.alpha, keys.number("alpha", 0.0..=1.0));
    assign(&mut config.history, keys.whole("history", 2..=65536, "samples").map(|n| n as usize));
    assign(&mut config.reuse_hops, keys.whole("reuse_hops", 1..=255, "hops").map(|n| n as u8));
    assign(&mut config.data_overhead, keys.whole("data_overhead", 0..=65535, "bytes").map(|n| n as u32));
    assign(&mut config.ack_size, keys.whole("ack_size", 0..=65535, "bytes").map(|n| n as u32));
    read_measure(keys, &mut config.measure, usual);
    let hops = [("routing-table", HopSource::RoutingTable), ("ack-travelled", HopSource::AckTravelled)];
    assign(&mut config.hops, keys.choice("hops", &hops, &[]));
    let short_path = [("whole-path", ShortPath::WholePath), ("one-hop", ShortPath::OneHop)];
    assign(&mut config.short_path, keys.choice("short_path", &short_path, &[]));
    let dispersion =
        [("cov-rtt", Dispersion::CovRtt), ("mad-rtt", Dispersion::MadRtt), ("mad-delay", Dispersion::MadDelay)];
    assign(&mut config.dispersion, keys.choice("dispersion", &dispersion, &[]));
    assign(&mut config.dispersion_factor, keys.number("dispersion_factor", 0.0..=1e6));
    assign(&mut config.scale, keys.number("scale", 1.0..=1000.0));
    let scaling = [("samples", Scaling::Samples), ("deviations", Scaling::Deviations)];
    assign(&mut config.scaling, keys.choice("scaling", &scaling, &[]));
    assign(&mut config.rtt_clock, limit(keys, "rtt_clock").map(|tick| tick.unwrap_or(Duration::ZERO)));
    assign(&mut config.delay_limit, limit(keys, "delay_limit"));
    assign(&mut config.queueing_limit, limit(keys, "queueing_limit"));
    assign(&mut config.initial_interval, time(keys, "initial_interval", Sign::NotNegative));
    let sampling = [
        ("new-data-karn", Sampling::NewDataKarn),
        ("new-data", Sampling::NewData),
        ("oldest-new", Sampling::OldestNew),
        ("every-echo", Sampling::EveryEcho),
    ];
    assign(&mut config.sampling, keys.choice("sampling", &sampling, &[]));
    let limit = [("earliest-send", RateLimit::EarliestSend), ("free-running", RateLimit::FreeRunning)];
    assign(&mut config.limit, keys.choice("limit", &limit, &[]));
    let recovery =
        [("restart", Recovery::Restart), ("paced", Recovery::Paced), ("off-until-ack", Recovery::OffUntilAck)];
    assign(&mut config.recovery, keys.choice("recovery", &recovery, &[]));
}

fn read_measure(keys: &mut Reader<'_>, measure: &mut Measure, usual: &OutOfInterference) {
    let kinds = [
        ("round-trip", Measure::RoundTrip),
        ("one-way", Measure::OneWay),
        ("out-of-interference", Measure::OutOfInterference(usual.clone())),
    ];
    assign(measure, keys.choice("measure", &kinds, &[]));
    if let Measure::OutOfInterference(config) = measure
        && keys.get("interference").is_some()
    {
        let mut keys = keys.table("interference");
        read_interference(&mut keys, config);
        keys.finish("the out-of-interference delay");
    }
}

fn read_interference(keys: &mut Reader<'_>, config: &mut OutOfInterference) {
    let fixed = keys.whole("sensing_hops", 1..=254, "hops").map(|n| n as u8);
    let mut sense = match &config.sensing {
        Sensing::Estimated(sense) => sense.clone(),
        Sensing::Fixed(_) => CarrierSense::two_ray(),
    };
    let power = |keys: &mut Reader<'_>, key| keys.quantity(key, &POWER, Sign::Any, MAX_DECIBELS);
    let ratio = |keys: &mut Reader<'_>, key| keys.quantity(key, &RATIO, Sign::Any, MAX_DECIBELS);
    assign(&mut sense.budget.transmit_power_dbm, power(keys, "transmit_power"));
    assign(&mut sense.budget.antenna_gain_dbi, ratio(keys, "antenna_gain"));
    assign(&mut sense.budget.cable_db, ratio(keys, "cable"));
    assign(&mut sense.budget.attenuator_db, ratio(keys, "attenuator"));
    assign(&mut sense.threshold_dbm, power(keys, "carrier_sense_threshold"));
    assign(&mut sense.exponent, keys.number("path_loss_exponent", 1.0..=10.0));
    assign(&mut sense.frames, keys.whole("power_frames", 1..=65536, "frames").map(|n| n as usize));
    let sources = [("arrivals", PowerSource::Arrivals), ("path", PowerSource::Path)];
    assign(&mut sense.source, keys.choice("power_source", &sources, &[]));
    config.sensing = match (fixed, &config.sensing) {
        (Some(hops), _) => Sensing::Fixed(hops),
        (None, Sensing::Fixed(hops)) => Sensing::Fixed(*hops),
        (None, Sensing::Estimated(_)) => Sensing::Estimated(sense),
    };
    let rts = [("off", RtsCts::Off), ("once", RtsCts::Once), ("every-attempt", RtsCts::EveryAttempt)];
    assign(&mut config.link_delay, keys.choice("rts_cts", &rts, &[]).map(LinkDelay::Midpoint));
    let (data, ack) =
        (time(keys, "link_delay_data", Sign::NotNegative), time(keys, "link_delay_ack", Sign::NotNegative));
    match (data, ack) {
        (Some(data), Some(ack)) => config.link_delay = LinkDelay::Fixed { data, ack },
        (None, None) => {}
        _ => keys.disagree(
            &["link_delay_data", "link_delay_ack"],
            "are given together or not at all",
            "expected link_delay_data and link_delay_ack, or neither for the middle of their bounds",
        ),
    }
    assign(&mut config.includes_link_delay, keys.flag("includes_link_delay"));
    assign(&mut config.clamp_queueing, keys.flag("clamp_queueing"));
    assign(&mut config.at_most_path, keys.flag("at_most_path"));
}

fn read_dcc(keys: &mut Reader<'_>, config: &mut DccConfig) {
    assign(&mut config.alpha, keys.number("alpha", 0.0..=1e6));
    assign(&mut config.beta, keys.number("beta", 1.0..=1e6));
    assign(&mut config.upper_rtts, keys.number("upper_rtts", 1e-6..=1e6));
    assign(&mut config.slow_start_factor, keys.number("slow_start_factor", 1.0..=1e6));
    assign(&mut config.mac.backoff, time(keys, "backoff", Sign::NotNegative));
    assign(&mut config.mac.header, keys.whole("mac_header", 0..=1000, "bytes").map(|n| n as u32));
    assign(&mut config.mac.ack_rate, rate(keys, "ack_rate"));
}

/// Sets what was given.
pub fn assign<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A time.
pub fn time(keys: &mut Reader<'_>, key: &'static str, sign: Sign) -> Option<Duration> {
    keys.quantity(key, &TIME, sign, MAX_SECONDS).map(Duration::from_secs_f64)
}

/// A rate.
pub fn rate(keys: &mut Reader<'_>, key: &'static str) -> Option<Rate> {
    keys.quantity(key, &RATE, Sign::Positive, 1e12).map(|bps| Rate::from_bps((bps.round() as u64).max(1)))
}

/// A time, or "none" to switch the limit off.
fn limit(keys: &mut Reader<'_>, key: &'static str) -> Option<Option<Duration>> {
    match keys.get(key) {
        Some(Value { kind: Kind::String(text), .. }) if text == "none" => Some(None),
        _ => time(keys, key, Sign::Positive).map(Some),
    }
}
