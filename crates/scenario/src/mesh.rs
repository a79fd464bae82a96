//! `[radio]`, `[mac]` and `[routing]`. Module `link` reads `[link]`.

use super::Files;
use super::files::Load;
use super::link;
use super::links;
use super::propagation;
use super::rates;
use super::reader::{Reader, Sign};
use super::topology;
use meshpace_core::{Parameter, parameter};
use meshpace_mesh::config::{
    AodvDetection, EdcaConfig, HtConfig, LinkConfig, MacConfig, MacProfile, MarkerConfig, MeshConfig, QueueConfig,
    RadioConfig, RetryLimits, RoutingConfig, RtsPolicy,
};
use meshpace_settings::quantity::SIZE;
use meshpace_settings::value::Kind;

static QUEUE: Parameter = parameter!(queue: usize = LinkConfig::default().limit => whole("packets", 1, 1_000_000), Basic,
    "length of the drop-tail queue", "ns-2.35, Queue/DropTail/PriQueue");

/// Reads everything below the transport, and returns the configuration and the files that it names.
pub fn read(reader: &mut Reader<'_>, load: Load<'_>) -> (MeshConfig, Files) {
    let mut mac = mac(reader);
    let names = node_names(reader, load);
    let (radio, limit, files) = radio(reader, &mut mac, &names, load);
    let link = LinkConfig { limit, ..link::read(reader) };
    let is_marked = link.marker != MarkerConfig::None;
    let has_categories = matches!(link.queue, QueueConfig::DropTail | QueueConfig::FqCodelAirtime(_));
    if (is_marked || !has_categories) && mac.ht.is_some_and(|ht| ht.edca.is_some()) {
        let what = "each category of mac.edca has its own queue, which must be drop-tail or fq-codel-airtime, without a marker";
        let expected = "expected link.queue \"drop-tail\" or \"fq-codel-airtime\" and no link.marker with it";
        reader.report_conflict(&["link", "mac"], what, expected);
    } else if (is_marked || matches!(link.queue, QueueConfig::Llap(_))) && mac.ht.is_some_and(|ht| ht.mpdus > 1) {
        let what = "the aggregates of mac.profile = \"ht\" come from a drop-tail, fq-codel or fq-codel-airtime queue without a marker";
        let expected = "expected neither llap nor link.marker with it, or mac.ampdu_mpdus = 1";
        reader.report_conflict(&["link", "mac"], what, expected);
    }
    (MeshConfig { radio, mac, routing: routing(reader), link }, files)
}

/// Reads `[radio]`. The table also determines the use of RTS/CTS and the length of a drop-tail
/// queue.
fn radio(
    reader: &mut Reader<'_>,
    mac: &mut MacConfig,
    names: &[String],
    load: Load<'_>,
) -> (RadioConfig, usize, Files) {
    let mut keys = reader.table("radio");
    let mut radio = RadioConfig::default();
    rates::read(&mut keys, &mut radio, mac);
    let always = keys.flag("rts_cts");
    let both = keys.get("rts_cts").is_some() && keys.get("rts_threshold").is_some();
    let threshold = keys.quantity("rts_threshold", &SIZE, Sign::NotNegative, f64::from(u32::MAX));
    if both {
        keys.report_conflict(
            &["rts_threshold", "rts_cts"],
            "cannot be combined with radio.rts_cts, which is also set",
            "expected one of the two",
        );
    }
    mac.rts = match (always, threshold) {
        (_, Some(bytes)) => RtsPolicy::Threshold(bytes.ceil() as u32),
        (Some(false), None) => RtsPolicy::Never,
        (_, None) => RtsPolicy::Always,
    };
    let limit = keys.standalone(&QUEUE);
    propagation::read(&mut keys, &mut radio);
    let files = links::read(&mut keys, &mut radio, names, load);
    keys.finish("[radio]");
    (radio, limit, files)
}

/// Names of the nodes of the map in `topology.file`, which `radio.links` may use. Empty if there is
/// no such map or no `radio.links`.
fn node_names(reader: &Reader<'_>, load: Load<'_>) -> Vec<String> {
    let table = |key: &str| match reader.value(key).map(|value| &value.kind) {
        Some(Kind::Table(table)) => Some(table),
        _ => None,
    };
    if table("radio").is_none_or(|radio| radio.get("links").is_none()) {
        return Vec::new();
    }
    let file = table("topology").and_then(|topology| topology.get("file")).map(|value| &value.kind);
    let Some(Kind::String(name)) = file else { return Vec::new() };
    // Errors in the map are reported where its positions are read.
    load(name).map(|bytes| topology::node_names(name, &bytes)).unwrap_or_default()
}

fn mac(reader: &mut Reader<'_>) -> MacConfig {
    let mut keys = reader.table("mac");
    let profiles =
        [("ns2", (MacProfile::Ns2, false)), ("ieee", (MacProfile::Ieee, false)), ("ht", (MacProfile::Ieee, true))];
    let (profile, is_ht) = keys.choice("profile", &profiles, &[]).unwrap_or_default();
    let mut retries = RetryLimits::default();
    keys.parameters(&mut retries);
    let (mut ht, mut edca) = (HtConfig::default(), EdcaConfig::default());
    keys.parameters(&mut ht);
    keys.parameters(&mut edca);
    ht.edca = keys.flag("edca").unwrap_or_default().then_some(edca);
    if is_ht && keys.value("long_retry_limit").is_some() {
        let instead = "expected mac.short_retry_limit, which counts every attempt";
        keys.report_invalid("long_retry_limit", "802.11n has one limit", instead);
    }
    if !is_ht {
        let of_ht = HtConfig::PARAMETERS.iter().chain(EdcaConfig::PARAMETERS).map(|parameter| parameter.key);
        let of_ht: Vec<&str> = of_ht.chain(["edca"]).collect();
        propagation::refuse(&keys, &of_ht, "802.11n", "mac.profile = \"ht\"");
    }
    keys.finish("[mac]");
    MacConfig { profile, retries, ht: is_ht.then_some(ht), ..MacConfig::default() }
}

fn routing(reader: &mut Reader<'_>) -> RoutingConfig {
    let mut keys = reader.table("routing");
    let mut protocols: Vec<_> = RoutingConfig::all().collect();
    let places: Vec<_> = protocols.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
    let chosen = keys.choice("protocol", &places, &[]);
    // The keys of every protocol are read with each protocol, even where they have no effect. A
    // sweep over protocols can therefore keep them.
    for (_, protocol) in &mut protocols {
        if let Some(parameters) = protocol.parameters() {
            keys.parameters(parameters);
        }
    }
    let mut routing = chosen.map(|place| protocols[place].1).unwrap_or_default();
    if let RoutingConfig::Olsr(olsr) = &mut routing {
        olsr.link_layer = is_olsr_told_of_failures(&keys, &protocols);
    }
    keys.finish("[routing]");
    routing
}

/// Returns whether OLSR also learns of lost links from the MAC. AODV declares the key
/// `routing.detection`, which applies to both protocols.
fn is_olsr_told_of_failures(keys: &Reader<'_>, protocols: &[(&str, RoutingConfig)]) -> bool {
    let detection = protocols.iter().find_map(|(_, protocol)| match protocol {
        RoutingConfig::Aodv(aodv) => Some(aodv.detection),
        _ => None,
    });
    if keys.value("detection").is_some() && detection == Some(AodvDetection::LinkLayer) {
        keys.report_conflict(
            &["detection", "protocol"],
            "OLSR needs HELLOs to know its neighbours",
            "expected \"hello\" or \"both\" under OLSR",
        );
    }
    detection == Some(AodvDetection::Both)
}
