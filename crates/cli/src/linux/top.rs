//! `meshpace emulate top`: shows the activity of a running emulation.

use crate::linux::shell;
use crate::output::{complain, failed, results};
use crate::{FAILED, REFUSED};
use clap::Args;
use console::Term;
use meshpace_command::quantities::seconds;
use meshpace_emulator::control::ask;
use meshpace_lab::record::table::listing;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Largest number of streams that are shown. Those with the most packets since the last look are
/// chosen.
const MOST_STREAMS: usize = 20;

/// The arguments of `meshpace emulate top`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Name of the emulation, if several are running.
    #[arg(long, value_name = "TOKEN")]
    run: Option<String>,
    /// Time between two updates.
    #[arg(long, default_value = "1 s", value_name = "TIME", value_parser = interval)]
    interval: f64,
    /// End after this number of updates [default: when the emulation ends].
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print one JSON object per update and line, with all counts since the start.
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    match seconds(text)? {
        seconds if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected 0.1 s to 3600 s".to_owned()),
    }
}

/// Runs the command.
#[expect(clippy::disallowed_methods, reason = "people look once a second")]
pub fn main(arguments: &Arguments) -> ExitCode {
    let directory = match shell::choose(arguments.run.as_deref()) {
        Ok(directory) => directory,
        Err(error) => {
            complain(&error);
            return ExitCode::from(REFUSED);
        }
    };
    let terminal = Term::stdout();
    let (mut before, mut shown, mut looks) = (None, 0, 0);
    loop {
        let now = match look(&directory) {
            Ok(now) => now,
            // The emulation has ended: it was there before, and its directory was removed with it.
            Err(_) if looks > 0 && !directory.exists() => return ExitCode::SUCCESS,
            Err(error) => {
                complain(&error);
                return ExitCode::from(FAILED);
            }
        };
        let text = if arguments.json { format!("{now}\n") } else { page(&now, before.as_ref()) };
        if terminal.is_term() && !arguments.json {
            // A terminal that does not support this shows the pages below each other.
            let _ = terminal.clear_last_lines(shown);
            shown = text.lines().count();
        }
        if let Err(error) = results(&text) {
            return failed(&error);
        }
        before = Some(now);
        looks += 1;
        if arguments.count.is_some_and(|count| looks >= count) {
            return ExitCode::SUCCESS;
        }
        sleep(Duration::from_secs_f64(arguments.interval));
    }
}

fn look(directory: &Path) -> Result<Value, String> {
    serde_json::from_str(&ask(directory, "state")?).map_err(|error| error.to_string())
}

/// Page with the changes since `before`, or since the start if `before` is `None`.
fn page(now: &Value, before: Option<&Value>) -> String {
    let since = |pointer: &str| {
        let at = |state: &Value| state.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        at(now) - before.map_or(0.0, at)
    };
    let seconds = since("/time_s").max(1e-9);
    let late = |name: &str| now["late"][name].as_f64().unwrap_or(0.0);
    let head = format!(
        "{:.1} s; {:.0} frames/s; packets lost: {:.0} in queues, {:.0} on links, {:.0} without a route\n\
         frames late by {:.3} ms (p50), {:.3} ms (p99); {:.2} % later than their air time\n",
        now["time_s"].as_f64().unwrap_or(0.0),
        since("/frames") / seconds,
        since("/lost/queue"),
        since("/lost/link"),
        since("/lost/routing"),
        late("p50_s") * 1e3,
        late("p99_s") * 1e3,
        late("later_than_air_time") * 1e2,
    );
    let empty = Vec::new();
    let streams = now["streams"].as_array().unwrap_or(&empty);
    let mut rows: Vec<(f64, [String; 6])> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| {
            let since = |name: &str| since(&format!("/streams/{number}/{name}"));
            let (bytes, packets) = (since("delivered_bytes"), since("packets_sent"));
            let share = if packets > 0.0 { since("retransmissions") / packets * 1e2 } else { 0.0 };
            let path: Vec<String> =
                stream["path"].as_array().unwrap_or(&empty).iter().map(|n| format!("n{n}")).collect();
            let row = [
                ends(stream),
                protocol(stream),
                format!("{:.1}", bytes * 8e-3 / seconds),
                format!("{:.0}", packets / seconds),
                format!("{share:.1}"),
                if path.is_empty() { "-".to_owned() } else { path.join(" ") },
            ];
            (packets, row)
        })
        .filter(|(packets, _)| *packets > 0.0)
        .collect();
    rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let left_out = rows.len().saturating_sub(MOST_STREAMS);
    let header = ["stream", "protocol", "kbit/s", "packets/s", "sent again %", "way now"];
    let table = listing(header, rows.into_iter().take(MOST_STREAMS).map(|(_, row)| row));
    let more = if left_out > 0 { format!("and {left_out} more streams with fewer packets\n") } else { String::new() };
    let queues = now["queues"].as_array().unwrap_or(&empty).iter().enumerate();
    let waiting: Vec<String> =
        queues.filter(|(_, queue)| queue.as_u64() != Some(0)).map(|(node, queue)| format!("n{node} {queue}")).collect();
    let waiting = if waiting.is_empty() { "none".to_owned() } else { waiting.join(", ") };
    format!("{head}{table}{more}packets waiting: {waiting}\n")
}

/// Both ends of a stream, with ports.
fn ends(stream: &Value) -> String {
    let end = |node: &Value, place: usize| {
        let name = if node.is_null() { "all".to_owned() } else { format!("n{node}") };
        match stream["ports"][place].as_u64() {
            None | Some(0) => name,
            Some(port) => format!("{name}:{port}"),
        }
    };
    format!("{} > {}", end(&stream["from"], 0), end(&stream["to"], 1))
}

/// Name of the protocol, by its number (IANA).
fn protocol(stream: &Value) -> String {
    match stream["protocol"].as_u64() {
        Some(1) => "icmp".to_owned(),
        Some(6) => "tcp".to_owned(),
        Some(17) => "udp".to_owned(),
        Some(number) => number.to_string(),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(time: f64, bytes: u64) -> Value {
        json!({
            "time_s": time, "frames": bytes / 100, "lost": {"queue": 0, "link": 2, "routing": 0},
            "late": {"p50_s": 6e-5, "p99_s": 2e-4, "later_than_air_time": 0.001},
            "streams": [{"from": 0, "to": 2, "protocol": 6, "ports": [40000, 5201], "path": [0, 1, 2],
                "packets_sent": bytes / 1000, "retransmissions": bytes / 10000, "delivered_bytes": bytes}],
            "queues": [3, 0, 0],
        })
    }

    #[test]
    fn a_page_shows_what_changed_since_the_last_look() {
        let page = page(&state(12.0, 300_000), Some(&state(10.0, 100_000)));
        // 200,000 bytes in 2 s, 200 packets, 20 of them again; 2000 frames.
        for part in ["12.0 s; 1000 frames/s", "n0:40000 > n2:5201", "800.0", "10.0", "n0 n1 n2", "waiting: n0 3"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_silent_stream_is_not_shown() {
        let page = page(&state(12.0, 100_000), Some(&state(10.0, 100_000)));
        assert!(!page.contains("n0:40000") && page.contains("0 on links"), "{page}");
    }
}
