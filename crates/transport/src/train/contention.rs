//! Detection of senders that keep queues full however much a train yields, and the share of the
//! path that is claimed beside them.
//!
//! A quiet train that yields to delay sends less and less beside a sender whose window fills
//! queues, such as CUBIC. Over four hops of 11 Mbit/s it is left with a train of two segments each
//! second. Few of these lose anything, so that losses (`competition`) do not show the other sender.
//! The delay does: in the equilibrium of the control law, N quiet trains cause a delay of 0.09
//! scale tau N^1.5. Ten of them cause 2.8 scale tau; a sender with a window causes ten and more, or
//! three where nodes have FQ-CoDel. Copa (Arun and Balakrishnan, NSDI 2018, section 2.2) similarly
//! looks for a queue that is never nearly empty.
//!
//! A queue that never empties soon becomes part of the least delay. It also becomes part of tau,
//! which follows from the least round trip of the last half minute. So tau is compared with the
//! least tau ever seen over this path, and with the n t_d that hops and rate give (n hops of
//! channel reuse, t_d the air time of a data exchange). On an empty path, tau is 1.03 to 1.2 times
//! n t_d.
//!
//! ```text
//! tau0    = min(least tau, 1.5 n t_d)
//! delay   = (d + tau - tau0) / (scale tau0)
//! active  once the delay has been above 2.8 for 4 s
//! until   the delay is below 1.4, or a fifth of the segments is lost, or 40 s have passed;
//!         then the sender yields, and the delay has to be seen for 4 s again
//! I      <= 1.07 tau0 / claim  while active
//! ```
//!
//! The claim is a share of the path and not a tolerated delay: a bound on delay would have to
//! follow the length of the other sender's queue. There may be several trains that all take each
//! other for a competitor, because one was there. They find out as soon as one of them yields: the
//! delay ends, and with it the reason. Where the path is more than five times slower than it is
//! said to be, its slowness is taken for a competitor; losses then end the claim.

/// Delay above which it cannot come from quiet trains alone, in scale tau: 0.09 x 10^1.5.
const BEGINS: f64 = 2.8;
/// Delay below which no sender keeps queues full any more, in scale tau.
const ENDS: f64 = BEGINS / 2.0;
/// Largest tau of an empty path, in n t_d.
const MOST_TAU: f64 = 1.5;
/// Share of lost segments that ends the claim, and the number of segments after which 1 - 1/e of
/// the loss history is forgotten.
const LOSES: f64 = 0.2;
const MEMORY: f64 = 64.0;
/// Time for which the delay has to last before the claim begins, in seconds: longer than a new
/// transfer needs to find its rate.
const PATIENCE_S: f64 = 4.0;
/// Longest duration of a claim, in seconds.
const TERM_S: f64 = 40.0;

/// State of the detection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contention {
    /// Share of the path that is claimed while the detector is active, 0 to 1; 0 turns it off.
    claim: f64,
    /// Time for which the delay has lasted, or for which the detector has been active, in seconds.
    since_s: f64,
    active: bool,
    /// Least tau over this path, and n t_d, in seconds.
    least: f64,
    reuse: f64,
    /// Moving average of the share of lost segments.
    lost: f64,
}

impl Contention {
    /// Creates a detector that has seen no contention.
    pub fn new(claim: f64) -> Contention {
        Contention { claim, since_s: 0.0, active: false, least: f64::INFINITY, reuse: f64::INFINITY, lost: 0.0 }
    }

    /// The path has changed; its n t_d is `reuse`, in seconds.
    pub fn on_path(&mut self, reuse: f64) {
        (self.least, self.reuse) = (f64::INFINITY, reuse);
    }

    /// tau0 in seconds.
    fn empty(&self) -> f64 {
        self.least.min(MOST_TAU * self.reuse)
    }

    /// A train of `sent` segments is over; `missing` of them are lost.
    pub fn on_train(&mut self, sent: u32, missing: u32) {
        let sent = f64::from(sent.max(1));
        self.lost += (1.0 - libm::exp(-sent / MEMORY)) * (f64::from(missing) / sent - self.lost);
    }

    /// Processes a sample: for the last `dt` seconds tau and d were `tau` and `queueing`, over a
    /// path of this `scale`.
    pub fn on_sample(&mut self, dt: f64, tau: f64, queueing: f64, scale: f64) {
        self.least = self.least.min(tau);
        let empty = self.empty();
        let delay = (queueing + tau - empty) / (scale * empty);
        self.since_s += dt;
        let turns = if self.active {
            delay < ENDS || self.lost > LOSES || self.since_s >= TERM_S
        } else {
            if delay <= BEGINS {
                self.since_s = 0.0;
            }
            self.since_s >= PATIENCE_S
        };
        if turns && self.claim > 0.0 {
            (self.active, self.since_s) = (!self.active, 0.0);
        }
    }

    /// Longest interval that the claim allows, in seconds, where an empty path allows an interval
    /// of `floor` tau. Infinite while the detector is not active.
    pub fn most(&self, floor: f64) -> f64 {
        if self.active { floor * self.empty() / self.claim } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: f64 = 0.012;

    /// Detector with this claim, over a path whose empty tau is [`TAU`].
    fn over_a_path(claim: f64) -> Contention {
        let mut contention = Contention::new(claim);
        contention.on_path(TAU / 1.1);
        contention.on_sample(1.0, TAU, 0.0, 1.0);
        contention
    }

    /// Seconds until `active` is the state of the detector, with tau and d in units of [`TAU`].
    fn seconds_until(contention: &mut Contention, active: bool, tau: f64, queueing: f64) -> u32 {
        let turned = |contention: &mut Contention| {
            contention.on_sample(1.0, tau * TAU, queueing * TAU, 1.0);
            contention.active == active
        };
        (1..1000).find(|_| turned(contention)).unwrap_or(1000)
    }

    #[test]
    fn a_delay_that_lasts_is_contended_with_until_it_goes() {
        let mut contention = over_a_path(0.5);
        assert_eq!(seconds_until(&mut contention, true, 1.0, 10.0), 4);
        assert!((contention.most(1.07) / (2.14 * TAU) - 1.0).abs() < 1e-9);
        assert_eq!(seconds_until(&mut contention, false, 1.0, 0.9), 1);
        assert_eq!(contention.most(1.07), f64::INFINITY);
        // A peak that is over before is none, and neither is what nine quiet trains cause.
        (0..3).for_each(|_| contention.on_sample(1.0, TAU, 10.0 * TAU, 1.0));
        contention.on_sample(1.0, TAU, 1.9 * TAU, 1.0);
        assert_eq!(seconds_until(&mut contention, true, 1.0, 0.09 * 9_f64.powf(1.5)), 1000);
    }

    #[test]
    fn a_queue_that_never_empties_is_seen_in_tau() {
        let mut contention = over_a_path(0.5);
        assert_eq!(seconds_until(&mut contention, true, 8.0, 0.0), 4);
        assert_eq!(seconds_until(&mut contention, false, 8.0, 0.0), 40);
        // One that was there from the beginning is seen by what hops and rate say.
        let mut contention = Contention::new(0.5);
        contention.on_path(TAU / 1.1);
        assert_eq!(seconds_until(&mut contention, true, 8.0, 0.0), 4);
        assert!((contention.most(1.0) / (2.0 * 1.5 / 1.1 * TAU) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn now_and_then_it_is_looked_for_again_and_losses_end_it() {
        let mut contention = over_a_path(0.5);
        assert_eq!(seconds_until(&mut contention, true, 1.0, 3.8), 4);
        assert_eq!(seconds_until(&mut contention, false, 1.0, 3.8), 40);
        assert_eq!(seconds_until(&mut contention, true, 1.0, 3.8), 4);
        (0..20).for_each(|_| contention.on_train(16, 3));
        assert_eq!(seconds_until(&mut contention, false, 1.0, 3.8), 40);
        (0..20).for_each(|_| contention.on_train(16, 4));
        assert_eq!(seconds_until(&mut contention, true, 1.0, 3.8), 4);
        assert_eq!(seconds_until(&mut contention, false, 1.0, 3.8), 1);
    }

    #[test]
    fn who_claims_nothing_never_contends() {
        assert_eq!(seconds_until(&mut over_a_path(0.0), true, 1.0, 100.0), 1000);
    }
}
