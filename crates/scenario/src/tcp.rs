//! The pieces of a TCP in `flow.transport`: window, acknowledgements, marks, timer.

use super::pacing::{self, assign, time};
use super::reader::{Reader, Sign};
use super::value::{Kind, Value};
use meshpace_transport::pacing::OutOfInterference;
use meshpace_transport::tcp::window::{self, HopRule, Setting};
use meshpace_transport::tcp::{self, ack, ecn, rtt};

/// Reads all of them.
pub fn read(keys: &mut Reader<'_>, config: &mut tcp::Config, usual: &OutOfInterference) {
    assign(&mut config.initial_window, keys.whole("initial_window", 1..=65535, "segments").map(|n| n as u32));
    let threshold = keys.whole("initial_ssthresh", 1..=65535, "segments");
    assign(&mut config.initial_ssthresh, threshold.map(|n| Some(n as u32)));
    assign(&mut config.limited_transmit, keys.flag("limited_transmit"));
    assign(&mut config.sack, keys.flag("sack"));
    read_window(keys, config);
    pacing::read(keys, &mut config.pacing, usual);
    read_ack(keys, &mut config.ack);
    read_ecn(keys, &mut config.ecn);
    if keys.get("rto").is_some() {
        let mut rto = keys.table("rto");
        read_rto(&mut rto, &mut config.rto);
        rto.finish("the retransmission timer");
    }
}

fn is_table(value: Option<&Value>) -> bool {
    matches!(value, Some(Value { kind: Kind::Table(_), .. }))
}

fn read_window(keys: &mut Reader<'_>, config: &mut tcp::Config) {
    let window = &mut config.window;
    let kinds = window::Config::kinds();
    if !is_table(keys.get("window")) {
        assign(window, keys.choice("window", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("window");
    if let Some(kind) = keys.choice("kind", &kinds, &[])
        && !kind.is_same_kind(window)
    {
        *window = kind;
    }
    if window.grows()
        && let Some(limit) =
            keys.whole("byte_counting", 0..=65535, "segments an ACK may count for (0: one step per ACK)")
    {
        config.byte_counting = (limit > 0).then_some(limit as u32);
    }
    for (name, setting) in window.settings() {
        match setting {
            Setting::Segments(segments) => {
                assign(segments, keys.whole(name, 1..=65535, "segments").map(|n| n as u32));
            }
            Setting::Number(number, range) => assign(number, keys.number(name, range)),
            Setting::Flag(flag) => assign(flag, keys.flag(name)),
            Setting::HopRule(rule) => assign(rule, keys.choice(name, &HopRule::NAMED, &[])),
        }
    }
    keys.finish(window.noun());
}

fn read_ack(keys: &mut Reader<'_>, ack: &mut ack::Config) {
    let kinds = [
        ("every-segment", ack::Config::EverySegment),
        ("delayed", ack::Config::Delayed(ack::Delayed::default())),
        ("dynamic", ack::Config::Dynamic(ack::Dynamic::default())),
    ];
    if !is_table(keys.get("ack")) {
        assign(ack, keys.choice("ack", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("ack");
    if let Some(kind) = keys.choice("kind", &kinds, &[])
        && core::mem::discriminant(&kind) != core::mem::discriminant(ack)
    {
        *ack = kind;
    }
    match ack {
        ack::Config::EverySegment => keys.finish("acknowledging every segment"),
        ack::Config::Delayed(config) => {
            assign(&mut config.segments, keys.whole("segments", 1..=255, "segments").map(|n| n as u32));
            assign(&mut config.timer, time(&mut keys, "timer", Sign::Positive));
            assign(&mut config.linux_window_2, keys.flag("linux_window_2"));
            keys.finish("delayed acknowledgements");
        }
        ack::Config::Dynamic(config) => {
            assign(&mut config.thresholds, thresholds(&mut keys));
            assign(&mut config.timer, time(&mut keys, "timer", Sign::Positive));
            keys.finish("dynamic delayed acknowledgements");
        }
    }
}

/// `thresholds = [2, 5, 9]`.
fn thresholds(keys: &mut Reader<'_>) -> Option<[u64; 3]> {
    let value = keys.get("thresholds")?;
    let number = |value: &Value| match value.kind {
        Kind::Integer(n) => u64::try_from(n).ok(),
        _ => None,
    };
    let read = match &value.kind {
        Kind::Array(items) => items.iter().map(number).collect::<Option<Vec<u64>>>(),
        _ => None,
    };
    let three = read.and_then(|read| <[u64; 3]>::try_from(read).ok());
    if three.is_none() {
        let expected = "expected three segment numbers that rise, such as [2, 5, 9]";
        keys.wrong("thresholds", format!("{expected}, found {}", value.describe()), expected);
    }
    three
}

fn read_ecn(keys: &mut Reader<'_>, config: &mut ecn::Config) {
    let kinds = [("off", ecn::Config::Off), ("rfc3168", ecn::Config::RFC_3168), ("dcc", ecn::Config::DCC)];
    if !is_table(keys.get("ecn")) {
        assign(config, keys.choice("ecn", &kinds, &[]));
        return;
    }
    let mut keys = keys.table("ecn");
    let (mut new_echo, mut new_reaction) = match *config {
        ecn::Config::On { echo, reaction } => (echo, reaction),
        ecn::Config::Off => (ecn::Echo::Latched, true),
    };
    let echoes = [("latched", ecn::Echo::Latched), ("per-mark", ecn::Echo::PerMark)];
    assign(&mut new_echo, keys.choice("echo", &echoes, &[]));
    assign(&mut new_reaction, keys.flag("reaction"));
    keys.finish("congestion marks");
    *config = ecn::Config::On { echo: new_echo, reaction: new_reaction };
}

fn read_rto(keys: &mut Reader<'_>, config: &mut rtt::Config) {
    assign(&mut config.initial, time(keys, "initial", Sign::Positive));
    assign(&mut config.min, time(keys, "min", Sign::Positive));
    assign(&mut config.max, time(keys, "max", Sign::Positive));
    assign(&mut config.tick, time(keys, "tick", Sign::Positive));
    assign(&mut config.backoff, keys.flag("backoff"));
    let sampling = [("one-timed", rtt::Sampling::OneTimed), ("timestamps", rtt::Sampling::Timestamps)];
    assign(&mut config.sampling, keys.choice("sampling", &sampling, &[]));
}
