//! The keys of a quiet train in `flow.transport`.

use super::pacing::{assign, rate, time};
use super::reader::{Reader, Sign};
use meshpace_transport::train::{Config, control, estimator, solo};

/// Reads all of them.
pub fn read(keys: &mut Reader<'_>, config: &mut Config) {
    assign(&mut config.ack_timer, time(keys, "ack_timer", Sign::Positive));
    read_control(keys, &mut config.control);
    assign(&mut config.control.aggregates, keys.flag("aggregates"));
    assign(&mut config.control.competitive, keys.number("competitive", 1.0..=100.0));
    read_estimator(keys, &mut config.estimator);
    assign(&mut config.estimator.hop_error, keys.number("hop_error", -254.0..=254.0));
    assign(&mut config.estimator.rate, rate(keys, "path_rate").map(Some));
    if keys.get("rto").is_some() {
        let mut rto = keys.table("rto");
        assign(&mut config.timeout.initial, time(&mut rto, "initial", Sign::Positive));
        assign(&mut config.timeout.min, time(&mut rto, "min", Sign::Positive));
        assign(&mut config.timeout.max, time(&mut rto, "max", Sign::Positive));
        rto.finish("the retransmission timer");
    }
}

/// Reads those of trains that are a TCP's pacing.
pub fn read_solo(keys: &mut Reader<'_>, config: &mut solo::Config) {
    read_control(keys, &mut config.control);
    read_estimator(keys, &mut config.estimator);
}

fn read_control(keys: &mut Reader<'_>, control: &mut control::Config) {
    assign(&mut control.near_floor, keys.number("near_floor", 0.1..=10.0));
    assign(&mut control.far_floor, keys.number("far_floor", 0.1..=10.0));
    assign(&mut control.delay, keys.number("delay", 1e-3..=100.0));
    assign(&mut control.exponent, keys.number("exponent", 0.1..=10.0));
    assign(&mut control.length, keys.number("length", 0.0..=100.0));
    assign(&mut control.gain, keys.number("gain", 1e-3..=100.0));
    assign(&mut control.marks, keys.number("marks", 0.0..=1000.0));
    assign(&mut control.loss, keys.number("loss", 0.0..=10.0));
    assign(&mut control.start, keys.number("start", 0.1..=100.0));
    assign(&mut control.first, keys.whole("first", 1..=65535, "segments").map(|n| n as u32));
    assign(&mut control.train, keys.whole("train", 1..=65535, "segments").map(|n| n as u32));
    assign(&mut control.span, time(keys, "span", Sign::Positive));
    assign(&mut control.interval, time(keys, "interval", Sign::Positive).map(Some));
    assign(&mut control.near_train, keys.whole("near_train", 1..=65535, "segments").map(|n| Some(n as u32)));
    assign(&mut control.near_delay, keys.number("near_delay", 1e-3..=100.0).map(Some));
    assign(&mut control.keep_interval, keys.flag("keep_interval"));
}

fn read_estimator(keys: &mut Reader<'_>, estimator: &mut estimator::Config) {
    assign(&mut estimator.horizon, time(keys, "horizon", Sign::Positive));
    assign(&mut estimator.smoothing, time(keys, "smoothing", Sign::Positive));
    assign(&mut estimator.hop_noise, time(keys, "hop_noise", Sign::NotNegative));
}
