//! Counters of an end, as a line for people and as an object for programs.

use meshpace_core::Duration;
use meshpace_live::tunnel::{CarriedBy, Totals};
use serde_json::json;
use std::io::{self, Write};

/// Interval at which they are told.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// The mean interval between segments that pacing asked for; none without pacing.
fn interval(totals: &Totals) -> Option<f64> {
    (totals.stats.interval_samples > 0).then(|| totals.stats.interval_sum_s / totals.stats.interval_samples as f64)
}

/// Kind of transport that carries the streams, if that end does not decide it; not the transport's name.
pub(super) fn seen(totals: &Totals) -> Option<&'static str> {
    totals.carried_by.map(|by| match by {
        CarriedBy::Tpa => "tpa",
        CarriedBy::Session => "quiet-train",
        CarriedBy::Bbr => "bbr",
    })
}

/// The object of an end of this name, whose streams `transport` carries, if this end decides.
pub(super) fn line(name: &str, totals: &Totals, transport: Option<&str>) -> String {
    let Totals { open, opened, refused, aborted, sent, received, hops, narrowed, stats, datagrams, .. } = totals;
    let object = json!({
        "streams": open, "opened": opened, "refused": refused, "aborted": aborted, "sent_bytes": sent,
        "received_bytes": received, "hops": hops, "path_mtu": narrowed, "segments_sent": stats.segments_sent,
        "retransmissions": stats.retransmissions, "timeouts": stats.timeouts, "interval_s": interval(totals),
        "transport": transport.or(seen(totals)), "name": Some(name).filter(|name| !name.is_empty()),
        "flows": datagrams.flows, "datagrams_sent": datagrams.sent, "datagrams_received": datagrams.received,
        "datagrams_dropped": datagrams.dropped,
    });
    format!("{object}\n")
}

/// Adds what one end has done to what others have.
pub(super) fn add(sum: &mut Totals, one: &Totals) {
    sum.open += one.open;
    sum.opened += one.opened;
    sum.refused += one.refused;
    sum.aborted += one.aborted;
    sum.sent += one.sent;
    sum.received += one.received;
    sum.stats += one.stats;
    sum.datagrams += one.datagrams;
    sum.hops = one.hops.or(sum.hops);
}

/// Rewrites the line of a terminal.
pub(super) fn show(now: &Totals, before: &Totals) {
    // An end that has begun anew has counted from zero.
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8e-3 / TICK.as_secs_f64();
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    // Nobody is left to be told if standard error is closed.
    let _ = write!(
        io::stderr(),
        "\rstreams {:4}   flows {:3}   out {:10.1} kbit/s   in {:10.1} kbit/s   hops {:>2}   interval {:>9}   again {:6}   aborted {:4} ",
        now.open,
        now.datagrams.flows,
        rate(now.sent, before.sent),
        rate(now.received, before.received),
        text(now.hops.map(|hops| hops.to_string())),
        text(interval(now).map(|seconds| format!("{:.2} ms", seconds * 1e3))),
        now.stats.retransmissions,
        now.aborted,
    );
    let _ = io::stderr().flush();
}
