//! LLAP's delays towards one destination: how long packets stay in this node (HT) and in the next
//! node (NHT), and the pacing delay (PD) that results.
//!
//! Source: A. Antony Franklin et al., "A Link Layer Adaptive Pacing Scheme for Improving
//! Performance of Wireless Mesh Networks" (LLAP), sections III.C and III.D.
//!
//! ```text
//! HT  = alpha HT  + (1 - alpha) HT_current        NHT = alpha NHT + (1 - alpha) NHT_current
//! relay:  PD = PD + (NHT - HT), from 0            source: PD = k NHT, k = min(h, 4)
//! ```
//!
//! Departures: the first sample initializes an average, because the paper gives no start value. PD
//! is kept between bounds, because an integrator over smoothed values overshoots.

use super::{DelayBase, DelayUpdate, LlapConfig};

/// Averages and relay's delay for one destination, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimate {
    ht: Option<f64>,
    nht: Option<f64>,
    pd: f64,
    /// Time for which the packet sent last waited for its PD.
    waited: f64,
    ceiling_hits: u32,
}

impl Estimate {
    /// Average time that packets spend in this node, from arrival to the end of the MAC's
    /// transmission.
    pub fn ht(&self) -> Option<f64> {
        self.ht
    }

    /// Average time that packets spend in the next node, from the end of the transmission to that
    /// node until its own transmission is overheard.
    pub fn nht(&self) -> Option<f64> {
        self.nht
    }

    /// Delay that a relay adds to the stay of a packet; never negative.
    pub fn relay_delay(&self) -> f64 {
        self.pd.max(0.0)
    }

    /// Spacing of packets at a source that is `hops` hops from the destination: min(h, 4) NHT.
    /// `None` while NHT is unknown.
    pub fn source_delay(&self, hops: u8) -> Option<f64> {
        self.nht.map(|nht| f64::from(hops.min(super::REUSE_HOPS)) * nht)
    }

    /// Number of times that PD reached its upper bound. From then on, PD no longer equals the sum
    /// of the differences.
    pub fn ceiling_hits(&self) -> u32 {
        self.ceiling_hits
    }

    /// Notes that a packet has left after `stay` seconds in this node. For `waited` seconds of
    /// these it waited for its PD.
    pub fn on_stay(&mut self, stay: f64, waited: f64, config: &LlapConfig) {
        self.waited = waited;
        self.ht = Some(smooth(self.ht, stay, config.alpha));
        if config.delay_update == DelayUpdate::Transmission {
            self.integrate(config);
        }
    }

    /// Notes that a packet was overheard leaving the next node, `stay` seconds after it was sent to
    /// that node.
    pub fn on_next_stay(&mut self, stay: f64, config: &LlapConfig) {
        self.nht = Some(smooth(self.nht, stay, config.alpha));
        if config.delay_update == DelayUpdate::Overhearing {
            self.integrate(config);
        }
    }

    /// Adds the difference of the two averages to PD, within its bounds.
    fn integrate(&mut self, config: &LlapConfig) {
        let (Some(ht), Some(nht)) = (self.ht, self.nht) else { return };
        let ceiling = config.max_delay.as_secs_f64();
        let floor = if config.negative_delay { -ceiling } else { 0.0 };
        let base = match config.delay_base {
            DelayBase::Previous => self.pd,
            DelayBase::Waited => self.waited,
        };
        let pd = base + (nht - ht);
        if pd > ceiling {
            self.ceiling_hits = self.ceiling_hits.saturating_add(1);
        }
        self.pd = pd.max(floor).min(ceiling);
    }
}

fn smooth(old: Option<f64>, sample: f64, alpha: f64) -> f64 {
    match old {
        Some(old) => alpha * old + (1.0 - alpha) * sample,
        None => sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use meshpace_core::Duration;

    /// Feeds pairs of samples in milliseconds, NHT first: PD is updated when the packet leaves,
    /// with both averages known.
    fn feed(samples: &[(f64, f64)], config: &LlapConfig) -> Vec<Estimate> {
        let mut estimate = Estimate::default();
        let mut rows = Vec::new();
        for &(ht, nht) in samples {
            estimate.on_next_stay(nht / 1e3, config);
            estimate.on_stay(ht / 1e3, 0.0, config);
            rows.push(estimate);
        }
        rows
    }

    fn assert_ms(value: f64, expected: f64, tolerance: f64) {
        assert!((value * 1e3 - expected).abs() < tolerance, "{} ms, expected {expected} ms", value * 1e3);
    }

    #[test]
    fn source_spacing_by_hops_systems_10_4() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.source_delay(4), None);
        estimate.on_next_stay(7.5e-3, &LlapConfig::default());
        for (hops, expected) in [(1, 7.5), (2, 15.0), (3, 22.5), (4, 30.0), (7, 30.0), (10, 30.0)] {
            assert_ms(estimate.source_delay(hops).expect("NHT is known"), expected, 1e-9);
        }
    }

    #[test]
    fn source_follows_the_next_node_systems_10_4() {
        let config = LlapConfig::default();
        let mut estimate = Estimate::default();
        let nht = [7.5, 7.5, 7.5, 9.0, 10.2, 11.16, 11.928, 12.5424];
        let pd = [30.0, 30.0, 30.0, 36.0, 40.8, 44.64, 47.712, 50.1696];
        for (i, current) in [7.5, 7.5, 7.5, 15.0, 15.0, 15.0, 15.0, 15.0].into_iter().enumerate() {
            estimate.on_next_stay(current / 1e3, &config);
            assert_ms(estimate.nht().expect("sampled"), nht[i], 1e-9);
            assert_ms(estimate.source_delay(10).expect("sampled"), pd[i], 1e-9);
        }
    }

    #[test]
    fn relay_integrates_the_difference_systems_10_4() {
        let samples = [
            (8.0, 8.0),
            (8.0, 8.0),
            (8.0, 14.0),
            (8.0, 20.0),
            (13.2, 20.0),
            (18.0, 20.0),
            (20.0, 20.0),
            (20.0, 12.0),
            (20.0, 8.0),
        ];
        let ht = [8.0, 8.0, 8.0, 8.0, 9.04, 10.832, 12.6656, 14.1325, 15.3060];
        let nht = [8.0, 8.0, 9.2, 11.36, 13.088, 14.4704, 15.5763, 14.8611, 13.4888];
        let pd = [0.0, 0.0, 1.2, 4.56, 8.608, 12.2464, 15.1571, 15.8857, 14.0686];
        for (i, row) in feed(&samples, &LlapConfig::default()).iter().enumerate() {
            assert_ms(row.ht().expect("sampled"), ht[i], 0.5e-4);
            assert_ms(row.nht().expect("sampled"), nht[i], 0.5e-4);
            assert_ms(row.relay_delay(), pd[i], 0.5e-4);
        }
    }

    #[test]
    fn delay_is_updated_when_the_reading_says() {
        let overhearing = LlapConfig { delay_update: DelayUpdate::Overhearing, ..LlapConfig::default() };
        let transmission = LlapConfig::default();
        let mut both = [(Estimate::default(), overhearing), (Estimate::default(), transmission)];
        for (estimate, config) in &mut both {
            estimate.on_stay(0.008, 0.0, config);
            estimate.on_next_stay(0.010, config);
        }
        assert_ms(both[0].0.relay_delay(), 2.0, 1e-9);
        assert_ms(both[1].0.relay_delay(), 0.0, 1e-9);
    }

    #[test]
    fn a_base_of_what_was_waited_does_not_run_ahead() {
        // A packet's own stay is 8 ms and that in the next node 20 ms, so a wait of 12 ms equals
        // them. Each packet waits for the PD that was valid when it arrived, three packets before,
        // and its stay grows by this wait.
        let converge = |delay_base| {
            let config = LlapConfig { delay_base, ..LlapConfig::default() };
            let mut estimate = Estimate::default();
            let mut delays = vec![0.0; 3];
            for packet in 0..200 {
                let waited = delays[packet];
                estimate.on_next_stay(0.020, &config);
                estimate.on_stay(0.008 + waited, waited, &config);
                delays.push(estimate.relay_delay());
            }
            (delays.iter().copied().fold(0.0, f64::max), delays[202])
        };
        let (highest, last) = converge(DelayBase::Waited);
        assert_ms(last, 12.0, 0.01);
        assert!(highest < 0.030, "{highest}");
        let (highest, _) = converge(DelayBase::Previous);
        assert!(highest > 0.040, "{highest}");
    }

    #[test]
    fn delay_stays_within_its_bounds() {
        let config = LlapConfig { max_delay: Duration::from_millis(50), ..LlapConfig::default() };
        // The difference is 40 ms per packet: the second update would give 80 ms.
        let rows = feed(&[(10.0, 50.0), (10.0, 50.0), (10.0, 50.0)], &config);
        assert_ms(rows[0].relay_delay(), 40.0, 1e-9);
        assert_ms(rows[2].relay_delay(), 50.0, 1e-9);
        assert_eq!(rows[2].ceiling_hits(), 2);
        // If PD is limited to zero, it grows at once; if it may be negative, it must first return
        // to zero.
        let down_then_up = vec![(20.0, 10.0), (20.0, 10.0), (20.0, 110.0)];
        let clamped = feed(&down_then_up, &LlapConfig::default());
        let wound = feed(&down_then_up, &LlapConfig { negative_delay: true, ..LlapConfig::default() });
        assert_ms(clamped[1].relay_delay(), 0.0, 1e-9);
        // NHT = 0.8 * 10 + 0.2 * 110 = 30 ms, HT = 20 ms.
        assert_ms(clamped[2].relay_delay(), 10.0, 1e-9);
        assert_ms(wound[2].relay_delay(), 0.0, 1e-9);
    }
}
