//! Counters of an endpoint.

/// Counters and sums since the start. They only grow, so a caller measures an interval by
/// subtracting a snapshot.
///
/// There are more than 15 fields, because all are counters of one kind, which addition and
/// subtraction treat alike. Any combination of them is of use.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stats {
    /// Sender: data segments (UDP: datagrams) sent, retransmissions included; SYN, FIN, probes and
    /// pure ACKs excluded.
    pub segments_sent: u64,
    /// Sender: data segments sent again.
    pub retransmissions: u64,
    /// Sender: expiries of the retransmission timer.
    pub timeouts: u64,
    /// Sender: fast retransmits.
    pub fast_retransmits: u64,
    /// Sender: duplicate ACKs received.
    pub duplicate_acks: u64,
    /// Sender: payload bytes acknowledged cumulatively.
    pub acked_bytes: u64,
    /// Receiver: data segments received for the first time. UDP sink: datagrams received.
    pub distinct_segments_received: u64,
    /// Receiver: data segments received that brought nothing new.
    pub duplicate_segments_received: u64,
    /// Receiver: pure ACKs sent, SYN-ACK excluded.
    pub acks_sent: u64,
    /// Sender: RTT samples by the rule of the pacing. Without pacing the samples are those of ACKs
    /// of new data that cover no retransmission.
    pub rtt_samples: u64,
    /// Sum of these RTT samples, seconds.
    pub rtt_sum_s: f64,
    /// Evaluations of the coefficient of variation of the last N RTT samples, one per sample.
    pub cov_samples: u64,
    /// Sum of the coefficients of variation (divisor N - 1; 0 below two samples).
    pub cov_sum: f64,
    /// Evaluations of the smoothed n-hop delay, one per sample (adaptive pacing only).
    pub delay_samples: u64,
    /// Sum of the smoothed n-hop delays, seconds.
    pub delay_sum_s: f64,
    /// Sum, over the evaluations that `delay_samples` counts, of the mean absolute deviation
    /// divided by the mean of the quantity that the pacing measures. That quantity is the RTT, or
    /// with `Dispersion::MadDelay` the n-hop delay.
    pub rel_abs_dev_sum: f64,
    /// Readings of the pacing interval: one per paced segment, or with a free-running timer one per
    /// tick.
    pub interval_samples: u64,
    /// Sum of these intervals, seconds.
    pub interval_sum_s: f64,
    /// Sum over these readings of the smoothed n-hop delay at the time of the reading, seconds; 0
    /// before the first sample.
    pub interval_delay_sum_s: f64,
    /// Sum over these readings of the dispersion at the time of the reading.
    pub interval_dispersion_sum: f64,
}

impl core::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        // All fields are named here, so the compiler reports a counter that is missing in the
        // additions below.
        let Stats {
            segments_sent,
            retransmissions,
            timeouts,
            fast_retransmits,
            duplicate_acks,
            acked_bytes,
            distinct_segments_received,
            duplicate_segments_received,
            acks_sent,
            rtt_samples,
            rtt_sum_s,
            cov_samples,
            cov_sum,
            delay_samples,
            delay_sum_s,
            rel_abs_dev_sum,
            interval_samples,
            interval_sum_s,
            interval_delay_sum_s,
            interval_dispersion_sum,
        } = other;
        self.segments_sent += segments_sent;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
        self.fast_retransmits += fast_retransmits;
        self.duplicate_acks += duplicate_acks;
        self.acked_bytes += acked_bytes;
        self.distinct_segments_received += distinct_segments_received;
        self.duplicate_segments_received += duplicate_segments_received;
        self.acks_sent += acks_sent;
        self.rtt_samples += rtt_samples;
        self.rtt_sum_s += rtt_sum_s;
        self.cov_samples += cov_samples;
        self.cov_sum += cov_sum;
        self.delay_samples += delay_samples;
        self.delay_sum_s += delay_sum_s;
        self.rel_abs_dev_sum += rel_abs_dev_sum;
        self.interval_samples += interval_samples;
        self.interval_sum_s += interval_sum_s;
        self.interval_delay_sum_s += interval_delay_sum_s;
        self.interval_dispersion_sum += interval_dispersion_sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_has_the_sum_of_each() {
        // The k-th field has `first + k step`, which floating point has exactly.
        let of = |first: u32, step: u32| Stats {
            segments_sent: u64::from(first + 2 * step),
            retransmissions: u64::from(first + 3 * step),
            timeouts: u64::from(first + 4 * step),
            fast_retransmits: u64::from(first + 5 * step),
            duplicate_acks: u64::from(first + 6 * step),
            acked_bytes: u64::from(first + 7 * step),
            distinct_segments_received: u64::from(first + 8 * step),
            duplicate_segments_received: u64::from(first + 9 * step),
            acks_sent: u64::from(first + 10 * step),
            rtt_samples: u64::from(first + 11 * step),
            cov_samples: u64::from(first + 12 * step),
            delay_samples: u64::from(first + 13 * step),
            interval_samples: u64::from(first + 14 * step),
            rtt_sum_s: f64::from(first + 15 * step),
            cov_sum: f64::from(first + 16 * step),
            delay_sum_s: f64::from(first + 17 * step),
            rel_abs_dev_sum: f64::from(first + 18 * step),
            interval_sum_s: f64::from(first + 19 * step),
            interval_delay_sum_s: f64::from(first + 20 * step),
            interval_dispersion_sum: f64::from(first + 21 * step),
        };
        let mut sum = of(3, 1);
        sum += of(100, 7);
        assert_eq!(sum, of(103, 8));
    }
}
