//! A pacing rule of one's own, outside meshpace: adaptive pacing (AP05, section 4) written anew, beside the built-in one.
//!
//!   cargo run --release -p meshpace-examples --bin pacing_rule
//!
//! A rule hears of measurements and answers with the time between two segments. When a segment may then leave, what a
//! retransmission does and that the window holds is done already. A rule that belongs into meshpace is a file and a line there
//! (docs/new-pacing-rule.md).

use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::Position;
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::pacing::{self, Sample, custom};
use meshpace_transport::{Config as Transport, names};

/// IPv4 and TCP headers, and an ACK made of them alone, bytes (AP05, section 4.3).
const HEADERS: u32 = 40;
/// Weight of the old value in the average (AP05, section 4.3).
const ALPHA: f64 = 0.7;
/// Round trips whose variation counts (AP05, section 4.2).
const SAMPLES: usize = 50;

/// AP05's rule.
#[derive(Clone, Debug)]
struct FourHopDelay {
    data_bits: f64,
    /// The last round trips, seconds; the oldest is overwritten.
    round_trips: Vec<f64>,
    measured: usize,
    average: Option<f64>,
}

impl custom::Rule for FourHopDelay {
    fn on_sample(&mut self, sample: &Sample) {
        let (hops, rate) = (f64::from(sample.hops), sample.rate.as_bps_f64());
        let ack_bits = 8.0 * f64::from(HEADERS);
        let queueing = 0.5 * (sample.rtt / hops - (self.data_bits + ack_bits) / rate);
        let delay = hops.min(4.0) * (queueing + self.data_bits / rate);
        self.average = Some(self.average.map_or(delay, |old| ALPHA * old + (1.0 - ALPHA) * delay));
        match self.round_trips.get_mut(self.measured % SAMPLES) {
            Some(oldest) => *oldest = sample.rtt,
            None => self.round_trips.push(sample.rtt),
        }
        self.measured += 1;
    }

    fn interval(&self) -> f64 {
        self.average.map_or(0.0, |delay| delay * (1.0 + 2.0 * self.cov()))
    }

    fn copy(&self) -> Box<dyn custom::Rule> {
        Box::new(self.clone())
    }
}

impl FourHopDelay {
    fn new(payload: u32) -> FourHopDelay {
        let data_bits = 8.0 * f64::from(payload + HEADERS);
        FourHopDelay { data_bits, round_trips: Vec::new(), measured: 0, average: None }
    }

    /// Coefficient of variation of the last round trips (AP05, section 4.2).
    fn cov(&self) -> f64 {
        let n = self.round_trips.len() as f64;
        let mean = self.round_trips.iter().sum::<f64>() / n;
        let squares: f64 = self.round_trips.iter().map(|rtt| (rtt - mean).powi(2)).sum();
        if n < 2.0 { 0.0 } else { (squares / (n - 1.0)).sqrt() / mean }
    }
}

/// NewReno, paced by the rule above.
fn paced_by_hand() -> Transport {
    let Some(Transport::Tcp(mut tcp)) = names::lookup("newreno") else { panic!("newreno is a TCP") };
    tcp.pacing =
        pacing::Config::Custom(custom::Config::new("four hops", |payload| Box::new(FourHopDelay::new(payload))));
    Transport::Tcp(tcp)
}

/// 60 s over a chain of seven hops.
fn simulate(transport: Transport, seed: u64) -> Outcome {
    let flow = Flow {
        from: NodeId(0),
        to: NodeId(7),
        transport,
        traffic: Traffic::Ftp,
        start: Time::ZERO,
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    };
    let config = Config {
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(5),
        positions: (0..=7).map(|node| Position { x: 200.0 * f64::from(node), y: 0.0 }).collect(),
        flows: vec![flow],
        ..Config::default()
    };
    run(&config, seed)
}

fn main() {
    let transports = [
        ("newreno", names::lookup("newreno")),
        ("tcp-ap", names::lookup("tcp-ap")),
        ("by hand", Some(paced_by_hand())),
    ];
    for (name, transport) in transports {
        let outcome = simulate(transport.expect("a name of `meshpace transports`"), 1);
        let goodput = outcome.aggregate_goodput_bps / 1e3;
        println!("{name:8} {goodput:.0} kbit/s, {} retransmissions", outcome.flows[0].retransmissions);
    }
}

#[test]
fn written_anew_it_is_the_built_in_rule() {
    let built_in = names::lookup("tcp-ap").expect("a name");
    for seed in 1..=3 {
        let (by_hand, built_in) = (simulate(paced_by_hand(), seed), simulate(built_in.clone(), seed));
        assert_eq!(by_hand.fingerprint, built_in.fingerprint, "seed {seed}");
    }
}

#[test]
fn every_sender_has_a_rule_of_its_own() {
    let (a, b) = (paced_by_hand(), paced_by_hand());
    assert_ne!(a, b);
    assert_eq!(a, a.clone());
}
