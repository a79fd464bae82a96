//! `[radio]`, `[mac]` and `[routing]`; `[link]` has a file of its own.

use super::Files;
use super::MAX_SECONDS;
use super::files::Load;
use super::link;
use super::links;
use super::pacing::assign;
use super::propagation;
use super::quantity::{SIZE, TIME};
use super::rates;
use super::reader::{Reader, Sign};
use meshpace_core::Duration;
use meshpace_mesh::config::{
    AodvConfig, AodvDetection, EdcaConfig, HtConfig, LinkConfig, LocalRepair, MacConfig, MacProfile, MarkerConfig,
    MeshConfig, OlsrConfig, OlsrMetric, QueueConfig, RadioConfig, RetryLimits, RoutingConfig, RtsPolicy,
};
use meshpace_mesh::routing::aodv::ACTIVE_ROUTE_TIMEOUT;

/// The longest TXOP limit, seconds: 65,535 times 32 us (IEEE Std 802.11-2012, 8.4.2.31).
const MAX_TXOP_S: f64 = 2.09712;

/// Reads everything below the transport, and the files that it names.
pub fn read(reader: &mut Reader<'_>, load: Load<'_>) -> (MeshConfig, Files) {
    let mut mac = mac(reader);
    let (radio, limit, files) = radio(reader, &mut mac, load);
    let link = LinkConfig { limit, ..link::read(reader) };
    let is_marked = link.marker != MarkerConfig::None;
    let has_categories = matches!(link.queue, QueueConfig::DropTail | QueueConfig::FqCodelAirtime(_));
    if (is_marked || !has_categories) && mac.ht.is_some_and(|ht| ht.edca.is_some()) {
        let what =
            "the categories of mac.edca have queues of their own: drop-tail or fq-codel-airtime, without a marker";
        let expected = "expected link.queue \"drop-tail\" or \"fq-codel-airtime\" and no link.marker with it";
        reader.disagree(&["link", "mac"], what, expected);
    } else if (is_marked || matches!(link.queue, QueueConfig::Llap(_))) && mac.ht.is_some_and(|ht| ht.mpdus > 1) {
        let what = "the aggregates of mac.profile = \"ht\" come from a drop-tail, fq-codel or fq-codel-airtime queue without a marker";
        let expected = "expected neither llap nor link.marker with it, or mac.ampdu_mpdus = 1";
        reader.disagree(&["link", "mac"], what, expected);
    }
    (MeshConfig { radio, mac, routing: routing(reader), link }, files)
}

/// `[radio]`, which also says when RTS/CTS is used and how many packets wait in a drop-tail queue.
fn radio(reader: &mut Reader<'_>, mac: &mut MacConfig, load: Load<'_>) -> (RadioConfig, usize, Files) {
    let mut keys = reader.table("radio");
    let mut radio = RadioConfig::default();
    rates::read(&mut keys, &mut radio, mac);
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
    propagation::read(&mut keys, &mut radio);
    let files = links::read(&mut keys, &mut radio, load);
    keys.finish("[radio]");
    (radio, limit, files)
}

fn mac(reader: &mut Reader<'_>) -> MacConfig {
    let mut keys = reader.table("mac");
    let profiles =
        [("ns2", (MacProfile::Ns2, false)), ("ieee", (MacProfile::Ieee, false)), ("ht", (MacProfile::Ieee, true))];
    let (profile, is_ht) = keys.choice("profile", &profiles, &[]).unwrap_or_default();
    let mut retries = RetryLimits::default();
    for (key, limit) in [("short_retry_limit", &mut retries.short), ("long_retry_limit", &mut retries.long)] {
        if let Some(attempts) = keys.whole(key, 1..=255, "attempts") {
            *limit = attempts as u32;
        }
    }
    let ht = ht(&mut keys);
    if is_ht && keys.value("long_retry_limit").is_some() {
        let instead = "expected mac.short_retry_limit, which counts every attempt";
        keys.wrong("long_retry_limit", "802.11n has one limit", instead);
    }
    if !is_ht {
        let others = [
            "ampdu_mpdus",
            "ampdu_size",
            "ampdu_time",
            "block_ack_request",
            "immediate_access",
            "busy_slot_counts",
            "reorder_timeout",
            "edca",
            "video_txop",
            "voice_txop",
        ];
        propagation::refuse(&keys, &others, "802.11n", "mac.profile = \"ht\"");
    }
    keys.finish("[mac]");
    MacConfig { profile, retries, ht: is_ht.then_some(ht), ..MacConfig::default() }
}

/// Aggregates.
fn ht(keys: &mut Reader<'_>) -> HtConfig {
    let mut ht = HtConfig::default();
    assign(
        &mut ht.mpdus,
        keys.whole("ampdu_mpdus", 1..=u64::from(HtConfig::WINDOW), "MPDUs").map(|mpdus| mpdus as u32),
    );
    let (most, longest) = (f64::from(ht.bytes), ht.longest.as_secs_f64());
    if let Some(bytes) = keys.quantity("ampdu_size", &SIZE, Sign::Positive, most) {
        ht.bytes = bytes as u32;
    }
    if let Some(time) = keys.quantity("ampdu_time", &TIME, Sign::Positive, longest) {
        ht.longest = Duration::from_secs_f64(time);
    }
    assign(&mut ht.asks, keys.flag("block_ack_request"));
    assign(&mut ht.immediate, keys.flag("immediate_access"));
    assign(&mut ht.busy_slot_counts, keys.flag("busy_slot_counts"));
    let timeout = keys.quantity("reorder_timeout", &TIME, Sign::Positive, MAX_SECONDS).map(Duration::from_secs_f64);
    assign(&mut ht.reorder_timeout, timeout);
    let mut edca = EdcaConfig::default();
    for (key, txop) in [("video_txop", &mut edca.video_txop), ("voice_txop", &mut edca.voice_txop)] {
        assign(txop, keys.quantity(key, &TIME, Sign::NotNegative, MAX_TXOP_S).map(Duration::from_secs_f64));
    }
    ht.edca = keys.flag("edca").unwrap_or_default().then_some(edca);
    ht
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
