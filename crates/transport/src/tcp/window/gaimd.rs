//! GAIMD: AIMD that gives up less of the window after a loss and grows by less per round trip.
//!
//! Y. R. Yang, S. S. Lam, "General AIMD Congestion Control", ICNP 2000. After a loss the fraction
//! beta of the window remains, and each round trip adds alpha segments. A flow gets the same rate
//! as TCP (beta 1/2, alpha 1) at the same loss rate if
//!
//! ```text
//! alpha = 4 (1 - beta^2) / 3          congestion avoidance, per ACK: cwnd += alpha / cwnd
//! ```
//!
//! The paper proposes beta = 7/8, so alpha = 0.31. Departures: slow start and the response to a
//! timeout are those of NewReno. After a loss beta of min(cwnd + inflation, limit) remains, but at
//! least two segments, as for every rule here.

use super::{About, Ack, Base, Described, Rule, parameter};

/// State of the rule, which is only its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Gaimd {
    /// Segments that a round trip adds.
    alpha: f64,
    /// Fraction of the window that remains after a loss.
    beta: f64,
}

impl Described for Gaimd {
    const ABOUT: About = About {
        name: "gaimd",
        description: "AIMD that keeps a share beta of the window after a loss, with slower growth that is fair to NewReno",
        source: "Yang, Lam, ICNP 2000; docs/new-window-rule.md",
        parameters: &[parameter!(beta: f64 = 0.875 => number(0.1, 0.99), Expert,
            "beta, share of the window that remains after a loss", "Yang, Lam, ICNP 2000")],
    };

    fn new(parameters: &[f64]) -> Gaimd {
        let beta = parameters[0];
        Gaimd { alpha: 4.0 * (1.0 - beta * beta) / 3.0, beta }
    }
}

impl Rule for Gaimd {
    fn on_ack(&mut self, base: &mut Base, _: &Ack) {
        let step = if base.in_slow_start() { 1.0 } else { self.alpha / base.cwnd() };
        base.set_cwnd(base.cwnd() + step);
    }

    fn on_counted_ack(&mut self, base: &mut Base, step: f64, _: &Ack) {
        let step = if base.in_slow_start() { step } else { self.alpha * step };
        base.set_cwnd(base.cwnd() + step);
    }

    fn on_fast_retransmit(&mut self, base: &mut Base, inflation: u32) {
        base.reduce_to(self.beta * base.window(inflation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Time;

    const ACK: Ack = Ack { segments: 1, now: Time::ZERO, rtt: 0.0, sample: 0.0, outstanding: 0 };

    /// A window of 16 segments that loses one.
    fn after_a_loss(rule: &mut Gaimd) -> Base {
        let mut base = Base::new(64, 64);
        rule.restart(&mut base, 16);
        rule.on_fast_retransmit(&mut base, 0);
        base
    }

    #[test]
    fn a_loss_leaves_seven_eighths_and_a_round_trip_adds_five_sixteenths() {
        // alpha = 4 (1 - 49/64) / 3 = 5/16; 7/8 of 16 is 14; one ACK adds 0.3125/14 = 0.022321.
        let mut rule = Gaimd::new(&[0.875]);
        let mut base = after_a_loss(&mut rule);
        assert_eq!((base.cwnd(), base.ssthresh()), (14.0, 14));
        rule.on_ack(&mut base, &ACK);
        assert!((base.cwnd() - 14.022321).abs() < 1e-6, "{}", base.cwnd());
        // Counted, the step of a round trip at once.
        rule.on_counted_ack(&mut base, 1.0, &ACK);
        assert!((base.cwnd() - 14.334821).abs() < 1e-6, "{}", base.cwnd());
    }

    #[test]
    fn half_is_newreno() {
        let mut rule = Gaimd::new(&[0.5]);
        let mut base = after_a_loss(&mut rule);
        let mut newreno = base.clone();
        assert_eq!(base.cwnd(), 8.0);
        for _ in 0..100 {
            rule.on_ack(&mut base, &ACK);
            newreno.on_ack();
            assert_eq!(base, newreno);
        }
    }
}
