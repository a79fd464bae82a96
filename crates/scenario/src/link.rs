//! `[link]`: the queue discipline and the marker between routing and MAC, each a kind or a table that spells it out.

use super::pacing::{assign, time};
use super::quantity::{RATE, SIZE};
use super::reader::{Reader, Sign};
use super::value::{Kind, Value};
use meshpace_core::{ParameterError, Rate};
use meshpace_mesh::config::{LinkConfig, MarkerConfig, QueueConfig, Repeats};
use meshpace_mesh::link::dcc::{DccAverages, DccConfig, DccCounts};
use meshpace_mesh::link::fq_codel::FqCodelConfig;
use meshpace_mesh::link::fq_codel_airtime::FqCodelAirtimeConfig;
use meshpace_mesh::link::llap::{DelayBase, DelayUpdate, LlapConfig, QueueLimit, RelayDelay};
use meshpace_mesh::link::lred::{LredAction, LredConfig};

/// The most packets or queues that can be written; the ranges are those of the disciplines.
const MAX_COUNT: u64 = u32::MAX as u64;

/// Reads the table.
pub fn read(root: &mut Reader<'_>) -> LinkConfig {
    let mut keys = root.table("link");
    let queues = [
        ("drop-tail", QueueConfig::DropTail),
        ("llap", QueueConfig::Llap(LlapConfig::default())),
        ("fq-codel", QueueConfig::FqCodel(FqCodelConfig::default())),
        ("fq-codel-airtime", QueueConfig::FqCodelAirtime(FqCodelAirtimeConfig::default())),
    ];
    let markers = [
        ("none", MarkerConfig::None),
        ("lred", MarkerConfig::Lred(LredConfig::default())),
        ("dcc", MarkerConfig::Dcc(DccConfig::default())),
    ];
    let queue = piece(&mut keys, "queue", &queues, |keys, queue| {
        match queue {
            QueueConfig::DropTail => return "the drop-tail queue, whose length is radio.queue",
            QueueConfig::Llap(config) => read_llap(keys, config),
            QueueConfig::FqCodel(config) => read_fq_codel(keys, config),
            QueueConfig::FqCodelAirtime(config) => read_fq_codel_airtime(keys, config),
        }
        report(keys, queue.check());
        "the queue"
    });
    let marker = piece(&mut keys, "marker", &markers, |keys, marker| {
        match marker {
            MarkerConfig::None => return "no marker",
            MarkerConfig::Lred(config) => read_lred(keys, config),
            MarkerConfig::Dcc(config) => read_dcc(keys, config),
        }
        report(keys, marker.check());
        "the marker"
    });
    let mut repeats = Repeats::default();
    assign(&mut repeats.count, keys.whole("repeats", 0..=u64::from(Repeats::MOST), "times").map(|n| n as u8));
    assign(&mut repeats.gap, time(&mut keys, "repeat_gap", Sign::Positive));
    keys.finish("[link]");
    LinkConfig { queue, marker, repeats, ..LinkConfig::default() }
}

/// Reads `key`: one of `kinds`, or a table with its `kind` and parameters, which `parameters` reads; it returns what an
/// unknown key is unknown in.
fn piece<T: Clone + Default>(
    keys: &mut Reader<'_>,
    key: &'static str,
    kinds: &[(&'static str, T)],
    parameters: impl FnOnce(&mut Reader<'_>, &mut T) -> &'static str,
) -> T {
    let Some(Value { kind: Kind::Table(_), .. }) = keys.get(key) else {
        return keys.choice(key, kinds, &[]).unwrap_or_default();
    };
    let mut keys = keys.table(key);
    let kind = keys.choice("kind", kinds, &[]);
    let Some(mut piece) = kind else {
        if keys.value("kind").is_none() {
            let names: Vec<String> = kinds.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            keys.wrong("kind", "is missing", format!("expected one of {}", names.join(", ")));
        }
        // What the parameters mean is unknown, so they are not looked at.
        return T::default();
    };
    let context = parameters(&mut keys, &mut piece);
    keys.finish(context);
    piece
}

/// Points at the key of a parameter that is out of its range.
fn report(keys: &Reader<'_>, checked: Result<(), ParameterError>) {
    if let Err(error) = checked {
        let key = error.name.rsplit('.').next().unwrap_or(error.name);
        let message = format!("expected {}, found {}", error.expected, error.value);
        keys.wrong(key, message, format!("expected {}", error.expected));
    }
}

/// A number whose range is checked later.
fn number(keys: &mut Reader<'_>, key: &'static str) -> Option<f64> {
    keys.number(key, f64::NEG_INFINITY..=f64::INFINITY)
}

/// A number of packets or queues whose range is checked later.
fn count(keys: &mut Reader<'_>, key: &'static str, what: &str) -> Option<usize> {
    keys.whole(key, 0..=MAX_COUNT, what).map(|n| n as usize)
}

fn read_llap(keys: &mut Reader<'_>, config: &mut LlapConfig) {
    assign(&mut config.alpha, number(keys, "alpha"));
    assign(&mut config.queue, count(keys, "queue", "packets"));
    let delays = [("hold", RelayDelay::Hold), ("space", RelayDelay::Space)];
    assign(&mut config.relay_delay, keys.choice("relay_delay", &delays, &[]));
    let updates = [("transmission", DelayUpdate::Transmission), ("overhearing", DelayUpdate::Overhearing)];
    assign(&mut config.delay_update, keys.choice("delay_update", &updates, &[]));
    let bases = [("previous", DelayBase::Previous), ("waited", DelayBase::Waited)];
    assign(&mut config.delay_base, keys.choice("delay_base", &bases, &[]));
    assign(&mut config.negative_delay, keys.flag("negative_delay"));
    assign(&mut config.max_delay, time(keys, "max_delay", Sign::Positive));
    assign(&mut config.by_origin, keys.flag("by_origin"));
    assign(&mut config.pace_acks, keys.flag("pace_acks"));
    assign(&mut config.patience, time(keys, "patience", Sign::Positive));
    let limits = [("per-queue", QueueLimit::PerQueue), ("per-node", QueueLimit::PerNode)];
    assign(&mut config.limit, keys.choice("limit", &limits, &[]));
}

fn read_fq_codel(keys: &mut Reader<'_>, config: &mut FqCodelConfig) {
    let quantum = keys.quantity("quantum", &SIZE, Sign::Positive, f64::from(u32::MAX));
    assign(&mut config.quantum, quantum.map(|bytes| bytes.round() as u32));
    assign(&mut config.target, time(keys, "target", Sign::Positive));
    assign(&mut config.interval, time(keys, "interval", Sign::Positive));
    assign(&mut config.limit, count(keys, "limit", "packets"));
    assign(&mut config.flows, count(keys, "flows", "queues"));
    assign(&mut config.ecn, keys.flag("ecn"));
}

fn read_fq_codel_airtime(keys: &mut Reader<'_>, config: &mut FqCodelAirtimeConfig) {
    read_fq_codel(keys, &mut config.queues);
    assign(&mut config.airtime_quantum, time(keys, "airtime_quantum", Sign::Positive));
    assign(&mut config.aql_low, time(keys, "aql_low", Sign::NotNegative));
    assign(&mut config.aql_high, time(keys, "aql_high", Sign::NotNegative));
    assign(&mut config.aql_threshold, time(keys, "aql_threshold", Sign::NotNegative));
    assign(&mut config.slow.target, time(keys, "slow_target", Sign::Positive));
    assign(&mut config.slow.interval, time(keys, "slow_interval", Sign::Positive));
    let slow_below = keys.quantity("slow_below", &RATE, Sign::NotNegative, 1e12);
    assign(&mut config.slow_below, slow_below.map(|bps| Rate::from_bps(bps.round() as u64)));
}

fn read_lred(keys: &mut Reader<'_>, config: &mut LredConfig) {
    assign(&mut config.min_threshold, number(keys, "min_threshold"));
    assign(&mut config.max_threshold, number(keys, "max_threshold"));
    assign(&mut config.max_probability, number(keys, "max_probability"));
    let actions = [("drop", LredAction::Drop), ("mark", LredAction::Mark)];
    assign(&mut config.action, keys.choice("action", &actions, &[]));
    assign(&mut config.pacing, keys.flag("pacing"));
}

fn read_dcc(keys: &mut Reader<'_>, config: &mut DccConfig) {
    assign(&mut config.k_p, number(keys, "k_p"));
    assign(&mut config.interval, time(keys, "interval", Sign::Positive));
    assign(&mut config.weight, number(keys, "weight"));
    let counts = [("data", DccCounts::Data), ("data-and-acks", DccCounts::DataAndAcks)];
    assign(&mut config.counts, keys.choice("counts", &counts, &[]));
    assign(&mut config.mac_ack, keys.flag("mac_ack"));
    let averages = [("gamma-and-air-time", DccAverages::GammaAndAirTime), ("gamma", DccAverages::Gamma)];
    assign(&mut config.averages, keys.choice("averages", &averages, &[]));
}
