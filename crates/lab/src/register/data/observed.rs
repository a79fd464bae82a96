//! Source of a quantity of the register: a run or one of its batches, with its flows and its time
//! series.

use crate::record::{BatchRecord, Columns, CompletionRecord, FlowPiece, FlowRecord, Record, SeriesRecord};
use crate::statistics::jain;

/// A run, or one batch of it.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The whole run.
    Run(&'a Record),
    /// One batch of a run.
    Batch(&'a BatchRecord),
}

/// A flow of a run or of a batch.
#[derive(Clone, Copy, Debug)]
pub enum ObservedFlow<'a> {
    /// A flow of a run.
    Run(&'a FlowRecord),
    /// A flow of a batch.
    Batch(&'a FlowPiece),
}

impl<'a> From<&'a Record> for Observed<'a> {
    fn from(run: &'a Record) -> Observed<'a> {
        Observed::Run(run)
    }
}

impl<'a> From<&'a BatchRecord> for Observed<'a> {
    fn from(batch: &'a BatchRecord) -> Observed<'a> {
        Observed::Batch(batch)
    }
}

impl<'a> Observed<'a> {
    /// Number in the field called `field`.
    pub fn number(self, field: &str) -> Option<f64> {
        match self {
            Observed::Run(run) => run.number(field),
            Observed::Batch(batch) => batch.number(field),
        }
    }

    /// All flows.
    pub fn flows(self) -> Vec<ObservedFlow<'a>> {
        match self {
            Observed::Run(run) => run.flows.iter().map(ObservedFlow::Run).collect(),
            Observed::Batch(batch) => batch.flows.iter().map(ObservedFlow::Batch).collect(),
        }
    }
}

impl ObservedFlow<'_> {
    /// Goodput, bit/s.
    pub fn goodput_bps(self) -> f64 {
        match self {
            ObservedFlow::Run(flow) => flow.goodput_bps,
            ObservedFlow::Batch(flow) => flow.goodput_bps,
        }
    }

    /// Value of a field of the flow, or of a quantity that is computed from the flow. NaN if
    /// nothing was measured. `all_goodput` is the sum of the goodputs of all flows.
    pub fn quantity(self, field: &str, all_goodput: f64) -> f64 {
        match field {
            "share" => self.goodput_bps() / all_goodput,
            "averaged_goodput_bps" => self.averaged_goodput_bps(),
            "download_delay_s" => {
                let delays: Vec<f64> = self.files().iter().map(CompletionRecord::time_s).collect();
                delays.iter().sum::<f64>() / delays.len() as f64
            }
            field => self.number(field).unwrap_or(f64::NAN),
        }
    }

    fn number(self, field: &str) -> Option<f64> {
        match self {
            ObservedFlow::Run(flow) => flow.number(field),
            ObservedFlow::Batch(flow) => flow.number(field),
        }
    }

    /// Goodput in the time during which a file was in transfer (AP05, section 5.2.5: the pauses
    /// between two files do not count).
    fn averaged_goodput_bps(self) -> f64 {
        let (bytes, seconds) = match self {
            ObservedFlow::Run(flow) => (flow.delivered_bytes, flow.transferring_s.unwrap_or(f64::NAN)),
            ObservedFlow::Batch(flow) => (Some(flow.delivered_bytes), flow.transferring_s),
        };
        let bytes = bytes.map_or(f64::NAN, |bytes| bytes as f64);
        if seconds > 0.0 { 8.0 * bytes / seconds } else { f64::NAN }
    }

    fn files(&self) -> &[CompletionRecord] {
        match self {
            ObservedFlow::Run(flow) => flow.completions.as_deref().unwrap_or_default(),
            ObservedFlow::Batch(_) => &[],
        }
    }
}

/// Time series of a run: of its flows, or of the links that the scenario watches.
pub struct Series<'a> {
    record: &'a SeriesRecord,
    is_of_links: bool,
}

impl<'a> Series<'a> {
    /// Finds the series of flows or of links to which `field` belongs. Also returns the name of the
    /// field without its prefix. `None` for a batch, or if the run has no time series.
    pub fn of<'b>(observed: Observed<'a>, field: &'b str) -> Option<(Series<'a>, &'b str)> {
        let Observed::Run(run) = observed else { return None };
        let (of, field) = field.split_once('.')?;
        Some((Series { record: run.series.as_ref()?, is_of_links: of == "links" }, field))
    }

    /// Number of flows, or of links.
    pub fn len(&self) -> usize {
        if self.is_of_links { self.record.links.len() } else { self.record.flows.len() }
    }

    /// Values of a flow, or of a link, in each window.
    pub fn values(&self, number: usize, field: &str) -> Vec<Option<f64>> {
        match self.is_of_links {
            true => self.record.links[number].numbers(field),
            false => self.record.flows[number].numbers(field),
        }
    }

    /// Jain's index in each window. `None` for a window in which nothing was delivered.
    pub fn jain(&self) -> Vec<Option<f64>> {
        let flows: Vec<&[f64]> = self.record.flows.iter().map(|flow| flow.goodput_bps.as_slice()).collect();
        let windows = flows.iter().map(|flow| flow.len()).min().unwrap_or(0);
        let index = |window: usize| {
            let shares: Vec<f64> = flows.iter().map(|flow| flow[window]).collect();
            Some(jain(&shares)).filter(|index| index.is_finite())
        };
        (0..windows).map(index).collect()
    }

    /// Middle of a window, seconds.
    pub fn middle(&self, number: usize) -> f64 {
        self.record.start_s + (number as f64 + 0.5) * self.record.window_s
    }

    /// Returns whether a window lies inside the interval `window`, which is given in seconds of the
    /// run.
    pub fn is_within(&self, number: usize, window: Option<[f64; 2]>) -> bool {
        let begin = self.record.start_s + number as f64 * self.record.window_s;
        window.is_none_or(|[from, to]| begin >= from - 1e-9 && begin + self.record.window_s <= to + 1e-9)
    }
}
