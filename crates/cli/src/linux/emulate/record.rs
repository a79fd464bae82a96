//! Traffic over an emulated mesh in the format of the simulator's records, with measurements of the
//! emulation's timing.
//!
//! A flow is one direction of a conversation. Flows with less than 1 % of the payload, such as
//! iperf3's control connection and acknowledgements, are left out. Programs start and end at any
//! time. Goodput is therefore measured from the end of the scenario's warm-up, or from the first
//! packet of the flow if that is later. It is measured until the last arrival of payload. If the
//! emulation ended within the warm-up, the record covers all of it.

use meshpace_core::Duration;
use meshpace_emulator::emulation::{Emulation, ProgramReport};
use meshpace_emulator::traffic::{Counted, Stream};
use meshpace_lab::campaign::Campaign;
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::record::line::FORMAT;
use meshpace_lab::record::store::Store;
use meshpace_lab::record::{FlowRecord, Record};
use meshpace_scenario::Scenario;
use meshpace_sim::outcome::jain;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Protocol number of UDP in IP (IANA).
const UDP: u8 = 17;
/// Smallest share of all payload with which a stream counts as a flow.
const FLOW: f64 = 0.01;

/// Returns the record as a line of JSON.
pub fn line(scenario: &Scenario, seed: u64, emulation: &Emulation) -> String {
    record(scenario, seed, emulation).judged().json_line()
}

/// Describes how well the machine kept the time. Times are in seconds by the machine's clock.
fn real_time(emulation: &Emulation) -> Value {
    let Emulation { lateness, losses, .. } = emulation;
    let program = |program: &ProgramReport| {
        json!({
            "node": program.spec.node.0,
            "command": program.spec.command,
            "status": program.status,
            "waited_s": program.share.waited as f64 / 1e9,
            "ran_s": program.share.ran as f64 / 1e9,
            "mean_wait_s": program.share.mean_wait_s(),
            "waiting": program.waiting().share,
        })
    };
    json!({
        "verdict": emulation.verdict.to_string(),
        "deliveries": lateness.deliveries,
        "late_p50_s": lateness.p50_s,
        "late_p99_s": lateness.p99_s,
        "late_max_s": lateness.max_s,
        "later_than_slot": lateness.later_than_slot,
        "later_than_air_time": lateness.later_than_air_time,
        "realtime_priority": emulation.had_priority,
        "elapsed_s": emulation.elapsed.as_secs_f64(),
        "slowdown": (emulation.elapsed.0 as f64 / emulation.duration.0.max(1) as f64).round(),
        "lost": {"queues": losses.queue, "links": losses.link, "routing": losses.routing},
        "programs": emulation.programs.iter().map(program).collect::<Vec<_>>(),
    })
}

/// Warm-up of the scenario; zero if the emulation ended within it.
pub fn warmup(scenario: &Scenario, emulation: &Emulation) -> Duration {
    let warmup = scenario.points[0].config.warmup;
    if emulation.duration > warmup { warmup } else { Duration::ZERO }
}

fn record(scenario: &Scenario, seed: u64, emulation: &Emulation) -> Record {
    let warmup = warmup(scenario, emulation);
    let is_warm = warmup > Duration::ZERO;
    let streams = emulation.traffic.streams().iter();
    let streams: Vec<(&Stream, &Counted)> =
        streams.map(|stream| (stream, if is_warm { &stream.measured } else { &stream.whole })).collect();
    let payload: u64 = streams.iter().map(|(_, counted)| counted.delivered_bytes).sum();
    let is_flow = |(_, counted): &(&Stream, &Counted)| {
        counted.delivered_bytes > 0 && counted.delivered_bytes as f64 >= FLOW * payload as f64
    };
    let flows: Vec<(&Stream, &Counted)> = streams.into_iter().filter(is_flow).collect();
    let goodputs: Vec<f64> = flows.iter().map(|(_, counted)| counted.goodput_bps()).collect();
    let windows = flows.iter().map(|(_, counted)| counted.windows.len()).max().unwrap_or(0);
    // An incomplete last window does not count.
    let complete = ((emulation.duration - warmup).0 / meshpace_emulator::traffic::WINDOW.0) as usize;
    let shares = |window: usize| -> Vec<f64> {
        flows.iter().map(|(_, counted)| counted.windows.get(window).copied().unwrap_or(0) as f64).collect()
    };
    let indices: Vec<Option<f64>> = (0..windows.min(complete)).map(|window| jain(&shares(window))).collect();
    let known: Vec<f64> = indices.iter().copied().flatten().collect();
    let sum = |of: fn(&Counted) -> u64| flows.iter().map(|(_, counted)| of(counted)).sum::<u64>();
    let (repeated, sent) = (sum(|counted| counted.retransmissions), sum(|counted| counted.segments_sent));
    Record {
        scenario: scenario.name.clone(),
        seed,
        duration_s: emulation.duration.as_secs_f64(),
        aggregate_goodput_bps: goodputs.iter().sum(),
        jain: jain(&goodputs).unwrap_or(f64::NAN),
        jain_2s: known.iter().sum::<f64>() / known.len() as f64,
        idle_windows: (indices.len() - known.len()) as u32,
        retransmission_index: repeated as f64 / (sent - repeated) as f64,
        frames: emulation.frames,
        flows: flows.iter().enumerate().map(|(id, (stream, counted))| flow(id, stream, counted)).collect(),
        warmup_s: warmup.as_secs_f64(),
        // The record has no fingerprint, because an emulation cannot be repeated exactly.
        format: FORMAT,
        model: meshpace_sim::MODEL_REVISION,
        real_time: Some(real_time(emulation)),
        starved_after_s: Some(scenario.points[0].starved_after * (emulation.duration - warmup).as_secs_f64()),
        ..Record::default()
    }
}

/// Creates the record of a flow. `counted` are the counts of the stream in the measured interval.
fn flow(id: usize, stream: &Stream, counted: &Counted) -> FlowRecord {
    let fresh = counted.segments_sent - counted.retransmissions;
    let transport = match stream.conversation.protocol {
        Some(1) => "icmp".to_owned(),
        Some(6) => "emulated-tcp".to_owned(),
        Some(UDP) => "emulated-udp".to_owned(),
        Some(other) => format!("ip-{other}"),
        None => "other".to_owned(),
    };
    // The number of nodes that should receive a broadcast is not known, so a broadcast has no loss
    // ratio.
    let is_datagrams = stream.conversation.protocol == Some(UDP) && !stream.to.is_broadcast();
    let lost = counted.packets_sent.saturating_sub(counted.packets_delivered);
    FlowRecord {
        id,
        from: stream.from.0,
        to: stream.to.0,
        hops: stream.hops,
        transport,
        goodput_bps: counted.goodput_bps(),
        delivered_bytes: Some(counted.delivered_bytes),
        segments_sent: stream.whole.segments_sent,
        retransmissions: stream.whole.retransmissions,
        // Only the kernels of the programs know the timeouts. A comparison must not read the
        // missing value as zero.
        timeouts: None,
        retransmission_index: counted.retransmissions as f64 / fresh as f64,
        loss_ratio: (is_datagrams && counted.packets_sent > 0).then(|| lost as f64 / counted.packets_sent as f64),
        ..FlowRecord::default()
    }
}

/// Directory of the record, which is prepared before the programs start.
pub struct Place {
    store: Store,
    manifest: Manifest,
}

/// Key of the only point.
const POINT: &str = "{}";

impl Place {
    /// Prepares the directory. Real programs cannot be repeated exactly, so an existing record of
    /// the seed is an error, unless `force` is set and replaces it.
    pub fn new(directory: &Path, scenario: &Scenario, seed: u64, force: bool) -> io::Result<Place> {
        let campaign = Campaign { scenario: scenario.clone(), first_seed: seed, seeds: 1 };
        let manifest = campaign.manifest(1);
        let store = Store::open(directory, &manifest, force)?;
        if store.has(&(POINT.to_owned(), seed)) {
            let message = format!("{} already has a record of seed {seed}; --force replaces it", directory.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(Place { store, manifest })
    }

    /// Writes the record and the manifest.
    pub fn finish(mut self, seed: u64, elapsed: Duration, line: &str) -> io::Result<()> {
        self.store.add((POINT.to_owned(), seed), line)?;
        let manifest = Manifest { wall_time_s: elapsed.as_secs_f64(), ..self.manifest };
        self.store.finish(&[POINT.to_owned()], &manifest)
    }
}
