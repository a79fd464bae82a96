//! `traffic`: the application of a flow, with the keys that belong to it.

use super::MAX_SECONDS;
use super::files::Load;
use super::reader::{Reader, Sign};
use meshpace_core::{Duration, Parameter, Rate, parameter};
use meshpace_settings::quantity::RATE;
use meshpace_sim::Traffic;
use meshpace_sim::config::TraceWrite;
use std::path::PathBuf;

/// Payload of a datagram of speech, bytes (LLAP, figure 12).
const VOIP_SEGMENT: u32 = 50;
/// Payload, bytes, and rate of music (TPA, figure 9, gives only the rate).
const MP3_SEGMENT: u32 = 1000;
const MP3_RATE: Rate = Rate(192_000);
static WRITE_JITTER: Parameter = parameter!(write_jitter: Duration = Duration::ZERO => TIME.to(MAX_SECONDS), Basic,
    "fixed-rate: largest delay of a write");
static FILE_SIZE: Parameter = parameter!(file_size: f64 = 30_000.0 => SIZE.above(0.0).to(1e12), Basic,
    "http: mean size of a file", "AP05, section 5.2.5");
// With a shape of 1 or less the distribution has no mean; slightly above 1 the mean converges too
// slowly.
static FILE_SHAPE: Parameter = parameter!(file_shape: f64 = 1.5 => number(1.01, 100.0), Basic,
    "http: shape of the Pareto distribution of sizes", "AP05, section 5.2.5");
static PAUSE: Parameter = parameter!(pause: Option<Duration> = None => TIME.to(MAX_SECONDS), Basic,
    "http: mean time between files",
    "AP05, section 5.2.5");
static PERSISTENT: Parameter =
    parameter!(persistent: bool = false => FLAG, Expert, "http: one connection for all files");

/// Application of a flow.
#[derive(Debug)]
pub struct Application {
    /// Traffic for the simulator. A trace has number 0 until the traces of all flows are numbered.
    pub traffic: Traffic,
    /// Writes of the trace, if the application replays one.
    pub trace: Option<Vec<TraceWrite>>,
    /// File of the trace, with its contents.
    pub file: Option<(PathBuf, Vec<u8>)>,
    /// True if the application itself limits its rate, so that UDP can carry the flow.
    pub is_limited: bool,
    /// Transport of a flow that names none; `None` if it is the usual default.
    pub transport: Option<&'static str>,
    /// Segment size of a flow that gives none; `None` if it is the transport's.
    pub segment: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TrafficKind {
    Ftp,
    Http,
    Cbr,
    Voip,
    Mp3,
    FixedRate,
    Trace,
}

/// Keys that belong to some kinds of traffic only: the key, the kinds, and the names of the kinds.
const KEYS: [(&str, &[TrafficKind], &str); 7] = [
    (
        "rate",
        &[TrafficKind::Cbr, TrafficKind::Voip, TrafficKind::Mp3, TrafficKind::FixedRate],
        "cbr, voip, mp3 and fixed-rate",
    ),
    ("write_jitter", &[TrafficKind::FixedRate], "fixed-rate"),
    ("file_size", &[TrafficKind::Http], "http"),
    ("file_shape", &[TrafficKind::Http], "http"),
    ("pause", &[TrafficKind::Http], "http"),
    ("persistent", &[TrafficKind::Http], "http"),
    ("trace", &[TrafficKind::Trace], "trace"),
];

/// Reads `traffic` and its keys. `segment` is the flow's segment size, if one is written.
pub fn read(keys: &mut Reader<'_>, load: Load<'_>, segment: Option<u32>) -> Application {
    let kinds = [
        ("ftp", TrafficKind::Ftp),
        ("http", TrafficKind::Http),
        ("cbr", TrafficKind::Cbr),
        ("voip", TrafficKind::Voip),
        ("mp3", TrafficKind::Mp3),
        ("fixed-rate", TrafficKind::FixedRate),
        ("trace", TrafficKind::Trace),
    ];
    let given = keys.get("traffic").is_some();
    let kind = keys.choice("traffic", &kinds, &[]);
    let mut application = Application {
        traffic: Traffic::Ftp,
        trace: None,
        file: None,
        is_limited: false,
        transport: None,
        segment: None,
    };
    for (key, owners, names) in KEYS {
        if keys.allow(key) && kind.map_or(!given, |kind| !owners.contains(&kind)) {
            keys.report_invalid(
                key,
                format!("belongs to traffic = {names}"),
                format!("expected {key} only with traffic = {names}"),
            );
        }
    }
    // A wrong kind has been reported already. The keys that belong to it are unknown.
    let Some(kind) = kind.filter(|kind| *kind != TrafficKind::Ftp) else { return application };
    application.is_limited = kind != TrafficKind::Http;
    match kind {
        TrafficKind::Ftp => {}
        TrafficKind::Http => application.traffic = http(keys),
        TrafficKind::Cbr => {
            let rate = rate(keys, None);
            application.traffic = Traffic::Cbr { rate };
        }
        TrafficKind::Voip => {
            application.traffic = Traffic::Cbr { rate: rate(keys, None) };
            (application.transport, application.segment) = (Some("udp"), Some(VOIP_SEGMENT));
        }
        TrafficKind::Mp3 => {
            application.traffic = Traffic::Cbr { rate: rate(keys, Some(MP3_RATE)) };
            (application.transport, application.segment) = (Some("udp"), Some(MP3_SEGMENT));
        }
        TrafficKind::FixedRate => {
            let rate = rate(keys, None);
            let jitter = keys.standalone(&WRITE_JITTER);
            let interval = rate.time_for(segment.unwrap_or(1460));
            if jitter > interval {
                let message =
                    format!("a write is due every {} s, so the delay cannot be longer", interval.as_secs_f64());
                keys.report_invalid("write_jitter", message, "expected at most the time between two writes");
            }
            application.traffic = Traffic::FixedRate { rate, jitter };
        }
        TrafficKind::Trace => trace(keys, load, &mut application),
    }
    application
}

fn rate(keys: &mut Reader<'_>, default: Option<Rate>) -> Rate {
    let rate = keys.quantity("rate", &RATE, Sign::Positive, 1e12);
    if default.is_none() && keys.get("rate").is_none() {
        let expected = "this traffic needs a rate such as \"100 kbit/s\"";
        keys.report_invalid("rate", "is missing", expected);
    }
    rate.map_or(default.unwrap_or(Rate(1)), |bps| Rate::from_bps((bps.round() as u64).max(1)))
}

fn http(keys: &mut Reader<'_>) -> Traffic {
    let (mean_size, shape) = (keys.standalone(&FILE_SIZE), keys.standalone(&FILE_SHAPE));
    let pause: Option<Duration> = keys.standalone(&PAUSE);
    if keys.get("pause").is_none() {
        keys.report_invalid("pause", "is missing", "http traffic needs its mean pause, such as \"10 s\"");
    }
    let (persistent, mean_pause) = (keys.standalone(&PERSISTENT), pause.unwrap_or_default());
    Traffic::Http { mean_size, shape, mean_pause, persistent }
}

fn trace(keys: &mut Reader<'_>, load: Load<'_>, application: &mut Application) {
    application.traffic = Traffic::Trace { number: 0 };
    let Some(name) = keys.text("trace") else {
        if keys.get("trace").is_none() {
            keys.report_invalid(
                "trace",
                "is missing",
                "expected the name of a CSV file with the columns time_s and bytes",
            );
        }
        return;
    };
    match load(name) {
        Ok(bytes) => {
            match writes(&bytes) {
                Ok(writes) => application.trace = Some(writes),
                Err((line, why)) => keys.report_invalid("trace", format!("{name}:{line}: {why}"), "read from here"),
            }
            application.file = Some((PathBuf::from(name), bytes));
        }
        Err(why) => keys.report_invalid("trace", why, "expected a CSV file"),
    }
}

/// Parses the writes of a CSV file with the columns `time_s` (since the start of the flow) and
/// `bytes`. An error contains its line.
fn writes(bytes: &[u8]) -> Result<Vec<TraceWrite>, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    let column = |name| header.iter().position(|title| title == name);
    let (Some(time), Some(size)) = (column("time_s"), column("bytes")) else {
        return Err((1, "expected a header with the columns time_s and bytes".to_owned()));
    };
    let mut writes: Vec<TraceWrite> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| (error.position().map_or(0, csv::Position::line), error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let after = match record[time].parse::<f64>() {
            Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Duration::from_secs_f64(seconds),
            _ => return Err((line, format!("expected a number of seconds, found \"{}\"", &record[time]))),
        };
        let bytes = match record[size].parse::<u64>() {
            Ok(bytes) if (1..1 << 40).contains(&bytes) => bytes,
            _ => return Err((line, format!("expected a number of bytes above zero, found \"{}\"", &record[size]))),
        };
        if writes.last().is_some_and(|earlier| after < earlier.after) {
            return Err((line, format!("{} s goes back in time", after.as_secs_f64())));
        }
        writes.push(TraceWrite { after, bytes });
    }
    if writes.is_empty() { Err((1, "the file has no writes".to_owned())) } else { Ok(writes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_names_its_bad_line() {
        let good = writes(b"bytes,time_s\n1000,0\n20,0.5\n30,0.5\n").unwrap();
        let expected = [(0, 1000), (500, 20), (500, 30)];
        assert_eq!(good, expected.map(|(ms, bytes)| TraceWrite { after: Duration::from_millis(ms), bytes }));
        for (text, line) in [
            ("time,bytes\n", 1),
            ("time_s,bytes\n", 1),
            ("time_s,bytes\n1,10\n0.9,10\n", 3),
            ("time_s,bytes\n-1,10\n", 2),
            ("time_s,bytes\n1,10\n2,0\n", 3),
            ("time_s,bytes\n1,10\nNaN,5\n", 3),
        ] {
            assert_eq!(writes(text.as_bytes()).unwrap_err().0, line, "{text}");
        }
    }
}
