//! Counters of an end, as a line for users and as a JSON object for programs.

use meshpace_core::Duration;
use meshpace_live::tunnel::{CarriedBy, Totals};
use serde_json::json;
use std::io::{self, Write};

/// Interval at which the counters are printed.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Mean interval between segments that pacing requested. `None` without pacing.
fn interval(totals: &Totals) -> Option<f64> {
    (totals.stats.interval_samples > 0).then(|| totals.stats.interval_sum_s / totals.stats.interval_samples as f64)
}

/// Kind of the transport that carries the streams, for an end that does not choose it. It is not
/// the transport's full name.
pub(super) fn seen(totals: &Totals) -> Option<&'static str> {
    totals.carried_by.map(|by| match by {
        CarriedBy::Tpa => "tpa",
        CarriedBy::Session => "quiet-train",
        CarriedBy::Bbr => "bbr",
    })
}

/// JSON object of the end called `name`. `transport` is the transport of its streams, if this end
/// chooses it.
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

/// Adds the counters of one end to a sum.
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

/// Rewrites the status line of a terminal.
pub(super) fn show(now: &Totals, before: &Totals) {
    // The counters of an end that was restarted begin at zero.
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8e-3 / TICK.as_secs_f64();
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    // An error is ignored: if standard error is closed, nobody reads it.
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
