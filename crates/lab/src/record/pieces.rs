//! Parts of a run in a record: its time series and its batches. A field that a whole run has too
//! has the same name here, so that a program can read both in the same way.

use super::column::{columns, number};
use super::measured;
use meshpace_mesh::link::LinkState;
use meshpace_mesh::link::dcc::congestion_index;
use meshpace_sim::outcome::{Batch, FlowWindow, Series};

columns! {
    /// The time series of a run, from its start.
    pub struct SeriesRecord {
        /// Start of the first window, seconds.
        #[serde(deserialize_with = "number")]
        start_s: f64;
        /// Length of a window, seconds.
        #[serde(deserialize_with = "number")]
        window_s: f64;
        /// One entry per flow.
        flows: Vec<FlowSeries>;
        /// One entry per watched link; only if the scenario watches any.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        links: Vec<LinkSeries>;
    }
}

columns! {
    /// State of a watched link at the end of each window. Values are `null` without a route, and if
    /// the link layer does not measure them.
    pub struct LinkSeries {
        /// Share of attempts that failed, averaged as in DCC.
        collision_probability: Vec<Option<f64>>;
        /// Share of time on the air, averaged as in DCC.
        air_time: Vec<Option<f64>>;
        /// DCC's congestion index: the share of failed attempts times the square of the share of
        /// time on the air.
        congestion_index: Vec<Option<f64>>;
        /// LLAP's estimate of the four-hop delay, seconds.
        four_hop_delay_s: Vec<Option<f64>>;
    }
}

impl LinkSeries {
    fn new(series: &Series, number: usize) -> LinkSeries {
        let state = |of: fn(&LinkState) -> f64| {
            let at = |window: &Vec<Option<LinkState>>| window[number].as_ref().and_then(|state| measured(of(state)));
            series.links.iter().map(at).collect()
        };
        LinkSeries {
            collision_probability: state(|link| link.collision_probability),
            air_time: state(|link| link.air_time),
            congestion_index: state(|link| congestion_index(link.collision_probability, link.air_time)),
            four_hop_delay_s: state(|link| link.four_hop_delay_s),
        }
    }
}

columns! {
    /// Values of a flow in each window. A value is `null` if there was nothing to average.
    pub struct FlowSeries {
        /// Goodput, bit/s.
        goodput_bps: Vec<f64>;
        /// Mean RTT, seconds.
        rtt_mean_s: Vec<Option<f64>>;
        /// Mean coefficient of variation of the RTT.
        cov_rtt: Vec<Option<f64>>;
        /// Mean pacing interval, seconds.
        interval_s: Vec<Option<f64>>;
        /// Data segments that arrived for the first time.
        segments_received: Vec<u64>;
        /// Data segments retransmitted.
        retransmissions: Vec<u64>;
        /// Expiries of the retransmission timer.
        timeouts: Vec<u64>;
        /// Hops of the route at the end of the window; `null` without a route.
        hops: Vec<Option<u8>>;
    }
}

columns! {
    /// One batch of delivered packets.
    pub struct BatchRecord {
        /// Start of the batch, seconds.
        #[serde(deserialize_with = "number")]
        start_s: f64;
        /// End of the batch, seconds.
        #[serde(deserialize_with = "number")]
        end_s: f64;
        /// Sum of the flows' goodputs, bit/s.
        #[serde(deserialize_with = "number")]
        aggregate_goodput_bps: f64;
        /// Jain's index of the flows' goodputs.
        #[serde(deserialize_with = "number")]
        jain: f64;
        /// Ratio of retransmissions to distinct segments received.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64;
        /// Results of each flow.
        flows: Vec<FlowPiece>;
    }
}

columns! {
    /// Values of a flow in a batch.
    pub struct FlowPiece {
        /// Goodput, bit/s.
        #[serde(deserialize_with = "number")]
        goodput_bps: f64;
        /// In-order payload delivered, bytes.
        delivered_bytes: u64;
        /// Mean RTT, seconds.
        #[serde(deserialize_with = "number")]
        rtt_mean_s: f64;
        /// Mean coefficient of variation of the RTT.
        #[serde(deserialize_with = "number")]
        cov_rtt: f64;
        /// Data segments retransmitted.
        retransmissions: u64;
        /// Expiries of the retransmission timer.
        timeouts: u64;
        /// Ratio of retransmissions to distinct segments received.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64;
        /// Time in which a file was being transferred, seconds.
        #[serde(deserialize_with = "number")]
        transferring_s: f64;
    }
}

impl SeriesRecord {
    /// Creates the record of a time series.
    pub fn new(series: &Series) -> SeriesRecord {
        let flows = series.windows.first().map_or(0, Vec::len);
        let flow = |number: usize| {
            let windows = || series.windows.iter().map(move |window| window[number]);
            FlowSeries {
                goodput_bps: windows().map(|window| window.goodput_bps).collect(),
                rtt_mean_s: windows().map(|window| measured(window.rtt_mean_s)).collect(),
                cov_rtt: windows().map(|window| measured(window.cov_rtt)).collect(),
                interval_s: windows().map(|window| measured(window.interval_s)).collect(),
                segments_received: windows().map(|window| window.segments_received).collect(),
                retransmissions: windows().map(|window| window.retransmissions).collect(),
                timeouts: windows().map(|window| window.timeouts).collect(),
                hops: windows().map(|window| window.hops).collect(),
            }
        };
        let links = series.links.first().map_or(0, Vec::len);
        SeriesRecord {
            start_s: 0.0,
            window_s: series.window_s,
            flows: (0..flows).map(flow).collect(),
            links: (0..links).map(|number| LinkSeries::new(series, number)).collect(),
        }
    }
}

impl BatchRecord {
    /// Creates the record of a batch.
    pub fn new(batch: &Batch) -> BatchRecord {
        let piece = |flow: &FlowWindow| FlowPiece {
            goodput_bps: flow.goodput_bps,
            delivered_bytes: flow.delivered_bytes,
            rtt_mean_s: flow.rtt_mean_s,
            cov_rtt: flow.cov_rtt,
            retransmissions: flow.retransmissions,
            timeouts: flow.timeouts,
            retransmission_index: flow.retransmissions as f64 / flow.segments_received as f64,
            transferring_s: flow.transferring_s,
        };
        BatchRecord {
            start_s: batch.start_s,
            end_s: batch.end_s,
            aggregate_goodput_bps: batch.aggregate_goodput_bps,
            jain: batch.jain,
            retransmission_index: batch.retransmission_index,
            flows: batch.flows.iter().map(piece).collect(),
        }
    }
}
