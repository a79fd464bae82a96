//! A transport's pieces and parameters in one line, for people.

use crate::pacing::{self, AdaptiveConfig, Dispersion, Measure, RateLimit, Sensing};
use crate::tcp::{self, ack, ecn};
use crate::{Config, tpa, train};
use alloc::format;
use alloc::string::String;

/// The pieces of `config` with the parameters that tell it from others.
pub fn describe(config: &Config) -> String {
    match config {
        Config::Tcp(config) => tcp(config),
        Config::Tpa(config) => tpa(config),
        Config::Train(config) => train(config),
        Config::Udp(config) => match config.rate {
            Some(rate) => format!("{rate}"),
            None => String::from("no window, no pacing of its own"),
        },
    }
}

fn tcp(config: &tcp::Config) -> String {
    let counting = match config.byte_counting {
        Some(limit) => format!(" by bytes, L {limit}"),
        None => String::new(),
    };
    let ack = match &config.ack {
        ack::Config::EverySegment => String::from("every segment"),
        ack::Config::Delayed(delayed) => format!("every {} or {} s", delayed.segments, delayed.timer.as_secs_f64()),
        ack::Config::Dynamic(dynamic) => {
            let [l1, l2, l3] = dynamic.thresholds;
            format!("every 1..4 (from segment {l1}, {l2}, {l3}) or {} s", dynamic.timer.as_secs_f64())
        }
    };
    let mut line = format!("window {}{counting}; ACK {ack}; {}", config.window.describe(), pacing(&config.pacing));
    match config.ecn {
        ecn::Config::Off => {}
        ecn::Config::On { reaction: true, .. } => line.push_str("; ECN"),
        ecn::Config::On { reaction: false, .. } => line.push_str("; ECN without effect on the window"),
    }
    match config.initial_ssthresh {
        Some(20) => {}
        Some(segments) => line.push_str(&format!("; slow start to {segments}")),
        None => line.push_str("; slow start to the first loss"),
    }
    if config.sack {
        line.push_str("; SACK");
    }
    line
}

fn tpa(config: &tpa::Config) -> String {
    let window = config.congestion.window;
    let ack = match config.ack {
        tpa::ack::Rule::EveryOther => "every 2",
        tpa::ack::Rule::EveryWindow => "every window",
    };
    format!("window {window}; ACK {ack} or {} s; {}", config.ack_delay.as_secs_f64(), pacing(&config.pacing))
}

fn pacing(config: &pacing::Config) -> String {
    match config {
        pacing::Config::None => String::from("no pacing"),
        pacing::Config::Adaptive(config) => format!("paced by {}", adaptive(config)),
        pacing::Config::Dcc(config) => format!("paced by marks, alpha {}, beta {}", config.alpha, config.beta),
        pacing::Config::Rule(config) => format!("paced by {}", config.describe()),
    }
}

fn adaptive(config: &AdaptiveConfig) -> String {
    let measure = match &config.measure {
        Measure::RoundTrip => format!("the {}-hop delay", config.reuse_hops),
        Measure::OneWay => format!("the {}-hop delay of synchronized clocks", config.reuse_hops),
        Measure::OutOfInterference(oid) => match &oid.sensing {
            Sensing::Fixed(hops) => format!("the delay over {hops} + 1 hops"),
            Sensing::Estimated(sense) => {
                format!("the out-of-interference delay, p {}, T_cs {} dBm", sense.exponent, sense.threshold_dbm)
            }
        },
    };
    let dispersion = match config.dispersion {
        Dispersion::CovRtt => "cov of the RTT",
        Dispersion::MadRtt => "mean deviation of the RTT",
        Dispersion::MadDelay => "mean deviation of the delay",
    };
    let timer = match config.limit {
        RateLimit::EarliestSend => "",
        RateLimit::FreeRunning => ", free-running timer",
    };
    let scale = if config.scale == 1.0 { String::new() } else { format!(", K {}", config.scale) };
    format!("{measure}, alpha {}, N {}, {dispersion}{scale}{timer}", config.alpha, config.history)
}

fn train(config: &train::Config) -> String {
    let control = &config.control;
    format!(
        "trains of {} to {} segments, {} s at most; floor {} or {}, delay {}, exponent {}, marks {}",
        control.first,
        control.train,
        control.span.as_secs_f64(),
        control.near_floor,
        control.far_floor,
        control.delay,
        control.exponent,
        control.marks
    )
}
