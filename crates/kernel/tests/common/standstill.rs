//! Detects connections that stand still, and finds out whether the link of the test bed or the TCP
//! of the sender is the cause.
#![expect(clippy::disallowed_methods, reason = "the kernel's connections live in the machine's time")]

use super::{Flow, eventually};
use meshpace_live::testbed::{Link, Namespace};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Progress of one connection.
#[derive(Clone, Copy)]
struct Progress {
    bytes: u64,
    since: Instant,
    longest: Duration,
}

/// Watches `flows` until `done` returns true or one flow has received no byte for `limit`. Returns,
/// for each flow, the longest time without a byte. `done` receives the number of bytes that have
/// arrived over each flow, and the time since the start.
pub fn watch(flows: &[Flow], limit: Duration, mut done: impl FnMut(&[u64], Duration) -> bool) -> Vec<Duration> {
    let start = Instant::now();
    let mut seen = vec![Progress { bytes: 0, since: start, longest: Duration::ZERO }; flows.len()];
    // The wait ends by `done` or by a standstill.
    eventually(Duration::MAX, || {
        for (one, flow) in seen.iter_mut().zip(flows) {
            let bytes = flow.arrived.load(Relaxed);
            // A gap that has just ended counts too, however late this loop looks.
            one.longest = one.longest.max(one.since.elapsed());
            if bytes != one.bytes {
                (one.bytes, one.since) = (bytes, Instant::now());
            }
        }
        let bytes: Vec<u64> = seen.iter().map(|one| one.bytes).collect();
        done(&bytes, start.elapsed()) || seen.iter().any(|one| one.longest >= limit)
    });
    seen.into_iter().map(|one| one.longest).collect()
}

/// Describes what stopped the connections that received no byte for `limit`, for the output of a
/// test. Empty if none stood still.
///
/// `sender` is the network of the senders, and `link` the link that carries their packets, if it
/// belongs to the test bed.
pub fn blame(flows: &[Flow], longest: &[Duration], limit: Duration, sender: &Namespace, link: Option<&Link>) -> String {
    let stalled: Vec<&Flow> =
        flows.iter().zip(longest).filter(|(_, longest)| **longest >= limit).map(|(flow, _)| flow).collect();
    if stalled.is_empty() {
        return String::new();
    }
    let mut text = match link {
        None => String::new(),
        Some(link) => {
            let faults = link.faults();
            let verdict = if faults.is_empty() { "the link is not to blame" } else { "THE TEST BED MAY BE TO BLAME" };
            format!("{verdict}; its account: {:?}\n{faults}", link.account())
        }
    };
    let listing = match sender.run(|| Command::new("ss").args(["-tinoeOH"]).output()) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            return format!("{text}{} connections stand still; no state of them without ss: {error}\n", stalled.len());
        }
    };
    for flow in stalled {
        let state = listing.lines().find(|line| line.contains(&format!("{} ", flow.from)));
        text += &match state {
            Some(state) => format!("{}: {}\n  {state}\n", flow.from, verdict(state)),
            None => format!("{}: the sender has no such connection any more\n", flow.from),
        };
    }
    text
}

/// Cause of a standstill, as the state of the sender shows it. `state` is a line of `ss -tinO`.
pub fn verdict(state: &str) -> &'static str {
    let words: BTreeMap<&str, &str> = state.split_whitespace().filter_map(|word| word.split_once(':')).collect();
    let number = |key: &str| words.get(key).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let segments = number("unacked");
    // The SYN counts as an acknowledged byte, but not as a sent one.
    let bytes = (number("bytes_sent") + 1).saturating_sub(number("bytes_retrans") + number("bytes_acked"));
    match (segments, bytes) {
        (0, _) => "nothing is in flight: the sender holds its data back, or has none",
        (_, 0) => "only an empty segment is in flight: the kernel took a lost answer of min_tso_segs for 0",
        _ => "segments are in flight: they or their ACKs are lost, or the sender repeats them late",
    }
}
