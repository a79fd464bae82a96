//! Measurements on a real network in the format of the simulator's records.

use meshpace_lab::record::line::FORMAT;
use meshpace_lab::record::{CompletionRecord, FlowRecord, PacingRecord, Record};
use meshpace_live::generator::Measured;
use meshpace_live::generator::receive::Received;
use meshpace_transport::{Config, Stats, pacing};

/// Data about a run that its record contains besides the measurements.
pub struct About<'a> {
    /// Title of the run, which says where the data went to or came from.
    pub title: String,
    /// Name of the transport.
    pub transport: &'a str,
    /// Parameters of the transport, if it is one of ours.
    pub config: Option<&'a Config>,
    /// Number of hops to the other end, as far as it is known.
    pub hops: u8,
    /// Seed of file sizes and pauses.
    pub seed: u64,
}

/// Creates the record of the sender. Its goodput counts the acknowledged data.
pub fn sent(about: &About<'_>, measured: &Measured) -> Record {
    let stats = &measured.progress.stats;
    let duration = measured.duration.as_secs_f64();
    let bytes = measured.progress.acknowledged;
    let mut flow = flow(about, stats, bytes, duration);
    if !measured.files.is_empty() {
        let file = |file: &meshpace_live::generator::File| CompletionRecord {
            start_s: file.start.as_secs_f64(),
            end_s: file.end.as_secs_f64(),
            bytes: file.bytes,
        };
        flow.completions = Some(measured.files.iter().map(file).collect());
        flow.transferring_s = Some(measured.transferring.as_secs_f64());
    }
    let fresh = stats.segments_sent - stats.retransmissions;
    let index = stats.retransmissions as f64 / fresh as f64;
    record(about, flow, duration, measured.idle_windows, index, measured.progress.packets)
}

/// Creates the record of the receiver. Its goodput counts the delivered data. Values that only the
/// sender knows are zero or `null`.
pub fn received(about: &About<'_>, received: &Received) -> Record {
    let duration = received.duration.as_secs_f64();
    let flow = flow(about, &Stats::default(), received.bytes, duration);
    // A receiver sends no data; its acknowledgements are counted in a field of their own.
    let flow = FlowRecord { acks_sent: Some(received.stats.acks_sent), ..flow };
    record(about, flow, duration, 0, f64::NAN, 0)
}

fn flow(about: &About<'_>, stats: &Stats, bytes: u64, duration: f64) -> FlowRecord {
    let mean = |sum: f64, samples: u64| sum / samples as f64;
    let is_paced = match about.config {
        Some(Config::Tcp(tcp)) => matches!(tcp.pacing, pacing::Config::Adaptive(_)),
        Some(Config::Tpa(tpa)) => matches!(tpa.pacing, pacing::Config::Adaptive(_)),
        _ => false,
    };
    FlowRecord {
        id: 0,
        from: 0,
        to: 1,
        hops: about.hops,
        transport: about.transport.to_owned(),
        goodput_bps: bytes as f64 * 8.0 / duration,
        delivered_bytes: Some(bytes),
        segments_sent: stats.segments_sent,
        retransmissions: stats.retransmissions,
        timeouts: Some(stats.timeouts),
        retransmission_index: stats.retransmissions as f64 / (stats.segments_sent - stats.retransmissions) as f64,
        rtt_mean_s: mean(stats.rtt_sum_s, stats.rtt_samples),
        cov_rtt: mean(stats.cov_sum, stats.cov_samples),
        pacing: is_paced.then(|| PacingRecord {
            delay_s: mean(stats.delay_sum_s, stats.delay_samples),
            cov: mean(stats.cov_sum, stats.cov_samples),
            mean_rel_abs_dev: mean(stats.rel_abs_dev_sum, stats.cov_samples),
            interval_s: mean(stats.interval_sum_s, stats.interval_samples),
        }),
        ..FlowRecord::default()
    }
}

fn record(about: &About<'_>, flow: FlowRecord, duration: f64, idle: u32, index: f64, packets: u64) -> Record {
    Record {
        scenario: about.title.clone(),
        seed: about.seed,
        duration_s: duration,
        aggregate_goodput_bps: flow.goodput_bps,
        // Jain's index of a single flow is 1.
        jain: 1.0,
        jain_2s: 1.0,
        idle_windows: idle,
        retransmission_index: index,
        frames: packets,
        flows: vec![flow],
        warmup_s: 0.0,
        format: FORMAT,
        // The revision of the model is 0, because a real network is not a model. There is no
        // fingerprint, because the run cannot be repeated exactly.
        ..Record::default()
    }
    .judged()
}
