//! `[radio]`, `[mac]` and `[routing]`; `[link]` has a file of its own.

use super::MAX_SECONDS;
use super::link;
use super::propagation;
use super::quantity::{RATE, SIZE, TIME};
use super::reader::{Reader, Sign};
use super::value::Value;
use meshpace_core::{Duration, Rate};
use meshpace_mesh::config::{
    AodvConfig, AodvDetection, LinkConfig, LocalRepair, MacConfig, MacProfile, MeshConfig, OlsrConfig, OlsrMetric,
    Preamble, RadioConfig, RetryLimits, RoutingConfig, RtsPolicy,
};
use meshpace_mesh::routing::aodv::ACTIVE_ROUTE_TIMEOUT;

/// The rates of 802.11b, bit/s.
const RATES: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];

/// Reads everything below the transport.
pub fn read(reader: &mut Reader<'_>) -> MeshConfig {
    let mut mac = mac(reader);
    let (radio, limit) = radio(reader, &mut mac);
    let link = LinkConfig { limit, ..link::read(reader) };
    MeshConfig { radio, mac, routing: routing(reader), link }
}

/// `[radio]`, which also says when RTS/CTS is used and how many packets wait in a drop-tail queue.
fn radio(reader: &mut Reader<'_>, mac: &mut MacConfig) -> (RadioConfig, usize) {
    let mut keys = reader.table("radio");
    let mut radio = RadioConfig::default();
    let mut rate = |key, default| {
        let Some(bps) = keys.quantity(key, &RATE, Sign::Positive, 1e12) else { return default };
        let rate = Rate::from_bps((bps.round() as u64).max(1));
        if !RATES.contains(&rate.0) {
            let found = keys.value(key).map(Value::describe).unwrap_or_default();
            let expected = "expected 1, 2, 5.5 or 11 Mbit/s, the rates of 802.11b";
            keys.wrong(key, format!("{expected}, found {found}"), expected);
        }
        rate
    };
    radio.rate = rate("rate", radio.rate);
    radio.basic_rate = rate("basic_rate", radio.basic_rate);
    let always = keys.flag("rts_cts");
    let both = keys.get("rts_cts").is_some() && keys.get("rts_threshold").is_some();
    let threshold = keys.quantity("rts_threshold", &SIZE, Sign::NotNegative, f64::from(u32::MAX));
    if both {
        keys.disagree(
            &["rts_threshold", "rts_cts"],
            "excludes radio.rts_cts, which is there too",
            "expected one of the two",
        );
    }
    mac.rts = match (always, threshold) {
        (_, Some(bytes)) => RtsPolicy::Threshold(bytes.ceil() as u32),
        (Some(false), None) => RtsPolicy::Never,
        (_, None) => RtsPolicy::Always,
    };
    let mut limit = LinkConfig::default().limit;
    if let Some(packets) = keys.whole("queue", 1..=1_000_000, "packets") {
        limit = packets as usize;
    }
    let preambles = [("long", Preamble::Long), ("short", Preamble::Short)];
    radio.preamble = keys.choice("preamble", &preambles, &[]).unwrap_or_default();
    propagation::read(&mut keys, &mut radio);
    keys.finish("[radio]");
    (radio, limit)
}

fn mac(reader: &mut Reader<'_>) -> MacConfig {
    let mut keys = reader.table("mac");
    let profile = keys.choice("profile", &[("ns2", MacProfile::Ns2), ("ieee", MacProfile::Ieee)], &[]);
    let mut retries = RetryLimits::default();
    for (key, limit) in [("short_retry_limit", &mut retries.short), ("long_retry_limit", &mut retries.long)] {
        if let Some(attempts) = keys.whole(key, 1..=255, "attempts") {
            *limit = attempts as u32;
        }
    }
    keys.finish("[mac]");
    MacConfig { profile: profile.unwrap_or_default(), retries, ..MacConfig::default() }
}

fn routing(reader: &mut Reader<'_>) -> RoutingConfig {
    let mut keys = reader.table("routing");
    let protocols: Vec<_> = RoutingConfig::all().collect();
    let mut routing = keys.choice("protocol", &protocols, &[]).unwrap_or_default();
    // Every key is read under every protocol, also where it has no effect, so that a sweep over protocols can keep it.
    let repairs = [("ns2", LocalRepair::Ns2), ("rfc3561", LocalRepair::Rfc3561), ("off", LocalRepair::Off)];
    let local_repair = keys.choice("local_repair", &repairs, &[]).unwrap_or_default();
    let metric =
        keys.choice("metric", &[("hops", OlsrMetric::Hops), ("etx", OlsrMetric::Etx)], &[]).unwrap_or_default();
    let detections =
        [("link-layer", AodvDetection::LinkLayer), ("hello", AodvDetection::Hello), ("both", AodvDetection::Both)];
    let detection = keys.choice("detection", &detections, &[]);
    if matches!((routing, detection), (RoutingConfig::Olsr(_), Some(AodvDetection::LinkLayer))) {
        keys.disagree(
            &["detection", "protocol"],
            "OLSR knows its neighbours by their HELLOs, so these cannot be left out",
            "expected \"hello\" or \"both\" under OLSR",
        );
    }
    let delete_period = keys.quantity("delete_period", &TIME, Sign::Positive, MAX_SECONDS).map(Duration::from_secs_f64);
    if delete_period.is_some_and(|period| period < ACTIVE_ROUTE_TIMEOUT) {
        let least = ACTIVE_ROUTE_TIMEOUT.as_secs_f64();
        let message = format!("is less than the {least} s for which a route may be used without a packet");
        keys.wrong("delete_period", message, format!("expected at least \"{least} s\"; RFC 3561 has five times that"));
    }
    keys.finish("[routing]");
    match &mut routing {
        RoutingConfig::Aodv(aodv) => {
            *aodv = AodvConfig { local_repair, detection: detection.unwrap_or_default(), delete_period };
        }
        RoutingConfig::Olsr(olsr) => {
            *olsr = OlsrConfig { metric, link_layer: detection == Some(AodvDetection::Both) };
        }
        // Without parameters.
        _ => {}
    }
    routing
}
