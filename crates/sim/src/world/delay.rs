//! One-way delay of the packets of a flow, computed as a stream: mean, jitter and quantiles in
//! constant memory.
//!
//! Quantiles come from a histogram with 64 cells per power of two, so that a value has a resolution
//! of 1.6 % (as in HdrHistogram), from 1 us to 71 minutes. Jitter is the mean of the absolute
//! differences between packets that arrive one after another (IPDV: C. Demichelis, P. Chimento, RFC
//! 3393; A. Morton, B. Claise, RFC 5481).

use crate::outcome::DelayOutcome;
use alloc::vec::Vec;

/// Number of cells per power of two.
const CELLS: u32 = 64;
/// Binary logarithm of [`CELLS`].
const CELL_BITS: u32 = 6;

/// Delays of one flow.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    count: u64,
    sum_us: u64,
    last_us: Option<u32>,
    difference_sum_us: u64,
    /// Number of packets by cell of delay. The vector is as long as the longest delay requires.
    histogram: Vec<u32>,
}

/// Sending times, in us, of the latest packets of a run. Their number per flow is large enough to
/// include all packets in flight. (A packet of the simulator has no room for a time.)
#[derive(Clone, Debug)]
pub struct SendTimes {
    /// Number and time of a packet, at the index given by the lowest bits of the number.
    last: Vec<(u32, u32)>,
}

impl SendTimes {
    /// Creates the memory for `flows` flows.
    pub fn new(flows: usize) -> SendTimes {
        let places = (512 * flows).next_power_of_two().clamp(1 << 10, 1 << 20);
        SendTimes { last: alloc::vec![(u32::MAX, 0); places] }
    }

    /// Stores the time at which packet `id` leaves its transport.
    #[inline]
    pub fn set(&mut self, id: u32, us: u32) {
        let place = id as usize & (self.last.len() - 1);
        self.last[place] = (id, us);
    }

    /// Time at which packet `id` left its transport; `None` if too many packets were sent since.
    #[inline]
    pub fn get(&self, id: u32) -> Option<u32> {
        let (last, us) = self.last[id as usize & (self.last.len() - 1)];
        (last == id).then_some(us)
    }
}

/// Cell of a delay: exact below 64 us, then 64 cells for each power of two.
fn cell(us: u32) -> usize {
    let octave = (32 - us.leading_zeros()).saturating_sub(CELL_BITS);
    if octave <= 1 {
        return us as usize;
    }
    let shift = octave - 1;
    (shift * CELLS + (us >> shift)) as usize
}

/// Lower bound of a cell, in us.
fn least_us(cell: usize) -> f64 {
    let cell = cell as u32;
    if cell < 2 * CELLS {
        return f64::from(cell);
    }
    let shift = cell / CELLS - 1;
    f64::from(cell - shift * CELLS) * libm::exp2(f64::from(shift))
}

impl Delays {
    /// Adds a packet that arrived after `us` microseconds.
    #[inline]
    pub fn add(&mut self, us: u32) {
        self.count += 1;
        self.sum_us += u64::from(us);
        if let Some(last) = self.last_us.replace(us) {
            self.difference_sum_us += u64::from(us.abs_diff(last));
        }
        let cell = cell(us);
        if self.histogram.len() <= cell {
            self.histogram.resize(cell + 1, 0);
        }
        self.histogram[cell] = self.histogram[cell].saturating_add(1);
    }

    /// Delay in seconds that a share of the packets does not exceed, with linear interpolation
    /// between the bounds of a cell.
    fn quantile_s(&self, share: f64) -> f64 {
        let wanted = share * self.count as f64;
        let mut below = 0.0;
        for (cell, &packets) in self.histogram.iter().enumerate() {
            let packets = f64::from(packets);
            if packets > 0.0 && below + packets >= wanted {
                let (least, most) = (least_us(cell), least_us(cell + 1));
                return (least + (most - least) * (wanted - below) / packets) * 1e-6;
            }
            below += packets;
        }
        f64::NAN
    }

    /// Mean, quantiles and jitter of the delays.
    pub fn outcome(&self) -> DelayOutcome {
        DelayOutcome {
            mean_s: self.sum_us as f64 * 1e-6 / self.count as f64,
            p50_s: self.quantile_s(0.5),
            p95_s: self.quantile_s(0.95),
            p99_s: self.quantile_s(0.99),
            jitter_s: self.difference_sum_us as f64 * 1e-6 / (self.count as f64 - 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cover_all_delays_without_a_gap_and_are_narrow() {
        for us in (0..5_000).chain([65_535, 1 << 20, 1_234_567_890, u32::MAX]) {
            let (least, most) = (least_us(cell(us)), least_us(cell(us) + 1));
            assert!(least <= f64::from(us) && f64::from(us) < most, "{us}: {least}..{most}");
            assert!(most - least <= 1.0 || (most - least) / least <= 1.0 / 64.0, "{us}");
        }
    }

    #[test]
    fn quantiles_of_a_thousand_equally_spaced_delays() {
        // The delays are 1, 2, ..., 1000 ms: the median is 500 ms, and so on, within the width of a
        // cell.
        let mut delays = Delays::default();
        (1..=1000).for_each(|ms| delays.add(ms * 1_000));
        let outcome = delays.outcome();
        assert!((outcome.mean_s - 0.5005).abs() < 1e-9);
        assert!((outcome.jitter_s - 0.001).abs() < 1e-9, "each a millisecond after the one before");
        for (measured, expected) in [(outcome.p50_s, 0.5), (outcome.p95_s, 0.95), (outcome.p99_s, 0.99)] {
            assert!((measured / expected - 1.0).abs() < 0.016, "{measured} {expected}");
        }
    }

    #[test]
    fn without_packets_nothing_is_known() {
        let outcome = Delays::default().outcome();
        assert!(outcome.mean_s.is_nan() && outcome.p99_s.is_nan());
        let mut one = Delays::default();
        one.add(5);
        assert!(one.outcome().jitter_s.is_nan(), "a difference takes two");
    }
}
