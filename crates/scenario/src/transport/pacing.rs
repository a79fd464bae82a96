//! `flow.transport.pacing`: determines when the next segment may be sent.

use super::DEFAULT_PIECES;
use crate::reader::Reader;
use meshpace_core::{Duration, Parameter, parameter};
use meshpace_mesh::config::{MeshConfig, Propagation, RtsPolicy};
use meshpace_settings::value::{Kind, Value};
use meshpace_transport::pacing::carrier_sense::{CarrierSense, LinkBudget};
use meshpace_transport::pacing::{self, AdaptiveConfig, LinkDelay, Measure, OutOfInterference, RtsCts, Sensing};

/// Out-of-interference delay for a node of this mesh, unless the flow sets another.
///
/// With a log-distance radio, threshold, exponent and link budget are those of the radio (AP10
/// obtains them from the driver), and the use of RTS and CTS is that of the MAC.
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

/// Reads the key `pacing`, a kind or a table. `usual` is the out-of-interference delay that belongs
/// to the radio.
pub fn read(keys: &mut Reader<'_>, pacing: &mut pacing::Config, usual: &OutOfInterference) {
    let kinds = pacing::Config::kinds();
    if !matches!(keys.get("pacing"), Some(Value { kind: Kind::Table(_), .. })) {
        assign(pacing, keys.choice("pacing", &kinds, &[]));
        return;
    }
    let given = keys.value("name").map_or_else(|| DEFAULT_PIECES.to_owned(), Value::brief);
    let path = keys.path("pacing");
    let mut keys = keys.table("pacing");
    // A profile belongs to adaptive pacing and therefore implies the kind.
    let says = ["kind", "profile"].iter().any(|key| keys.value(key).is_some());
    let adaptive = pacing::Config::Adaptive(AdaptiveConfig::paper());
    if !says && *pacing == pacing::Config::None {
        keys.problems().note(format!(
            "{path}: {given} has no pacing, and keys of pacing give it adaptive pacing, which makes it another transport (TCP-AP or \
             TPA-AP): add kind = \"adaptive\" if that is meant, or write pacing = \"none\""
        ));
    }
    let now = if *pacing == pacing::Config::None { adaptive } else { pacing.clone() };
    let kind = keys.choice("kind", &kinds, &[]).unwrap_or(now);
    if !kind.is_same_kind(pacing) {
        *pacing = kind;
    }
    keys.set_kind_matching(&kinds, |kind| kind.is_same_kind(pacing));
    if let pacing::Config::Adaptive(config) = pacing {
        let interference = AdaptiveConfig {
            measure: Measure::OutOfInterference(usual.clone()),
            ..AdaptiveConfig::out_of_interference()
        };
        let profiles = [
            ("paper", AdaptiveConfig::paper()),
            ("released", AdaptiveConfig::released()),
            ("synchronized", AdaptiveConfig::synchronized()),
            ("out-of-interference", interference),
        ];
        assign(config, keys.choice("profile", &profiles, &[]));
        read_measure(&mut keys, &mut config.measure, usual);
    }
    keys.parameters(pacing);
    keys.finish(pacing.noun());
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

static SENSING_HOPS: Parameter = parameter!(sensing_hops: Option<u8> = None => whole("hops", 1, 254).or("estimated"), Expert,
    "number of hops over which nodes sense each other", "AP10, section IV.E");
static RTS_CTS: Parameter = parameter!(rts_cts: Option<RtsCts> = None => choice(RtsCts::WORDS).or("the radio's"), Expert,
    "attempts whose RTS and CTS count in the delay of a link", "AP10, section IV.E");
static LINK_DELAY_DATA: Parameter = parameter!(link_delay_data: Option<Duration> = None => TIME.to(10.0).or("estimated"), Expert,
    "delay of a data packet over a link; together with link_delay_ack", "AP10, section IV.E");
static LINK_DELAY_ACK: Parameter = parameter!(link_delay_ack: Option<Duration> = None => TIME.to(10.0).or("estimated"), Expert,
    "delay of an ACK over a link", "AP10, section IV.E");

fn read_interference(keys: &mut Reader<'_>, config: &mut OutOfInterference) {
    let fixed: Option<u8> = keys.standalone(&SENSING_HOPS);
    let mut sense = match &config.sensing {
        Sensing::Estimated(sense) => sense.clone(),
        Sensing::Fixed(_) => CarrierSense::two_ray(),
    };
    keys.parameters(&mut sense);
    config.sensing = match (fixed, &config.sensing) {
        (Some(hops), _) => Sensing::Fixed(hops),
        (None, Sensing::Fixed(hops)) => Sensing::Fixed(*hops),
        (None, Sensing::Estimated(_)) => Sensing::Estimated(sense),
    };
    let rts: Option<RtsCts> = keys.standalone(&RTS_CTS);
    assign(&mut config.link_delay, rts.map(LinkDelay::Midpoint));
    let (data, ack): (Option<Duration>, Option<Duration>) =
        (keys.standalone(&LINK_DELAY_DATA), keys.standalone(&LINK_DELAY_ACK));
    match (data, ack) {
        (Some(data), Some(ack)) => config.link_delay = LinkDelay::Fixed { data, ack },
        (None, None) => {}
        _ => keys.report_conflict(
            &["link_delay_data", "link_delay_ack"],
            "must be set together",
            "expected link_delay_data and link_delay_ack, or neither for the middle of their bounds",
        ),
    }
    keys.parameters(config);
}

/// Sets `field` if there is a value.
pub fn assign<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
