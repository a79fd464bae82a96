//! Model of two crossing flows and their hidden terminals: the analysis behind DCC's congestion
//! index.
//!
//! Source: DCC, III.B, Eq. 1 to 6 and Theorem 1. The functions are pure. They serve tests and
//! reports, and are not part of any protocol. Links 1 to 4 carry flow A -> E, links 5 to 8 flow F
//! -> I across it; link i uses a fraction x_i of the air time.
//!
//! ```text
//! theta_U = TX_d / (DIFS + TX_d + SIFS + T_ACK)
//! theta_T = TX_d / (2 DIFS + TX_d + TX_a + 2 SIFS + 2 T_ACK)
//! gamma_1 = (phi theta_U x_4 + theta_U x_5) / (1 - S)        S = x_2 + x_3 + x_6 + x_7
//! gamma_5 = (phi theta_U x_8 + theta_U x_1) / (1 - S)
//! x_1 (1 - gamma_1) = x_2 = x_3 = x_4,  x_5 (1 - gamma_5) = x_6 = x_7 = x_8
//! ```

use meshpace_core::Duration;

/// Times of one exchange.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exchange {
    /// Length of DIFS.
    pub difs: Duration,
    /// Length of SIFS.
    pub sifs: Duration,
    /// Air time of a data frame, TX_d.
    pub data: Duration,
    /// Air time of a frame with a TCP ACK, TX_a.
    pub tcp_ack: Duration,
    /// Air time of a MAC ACK, T_ACK.
    pub mac_ack: Duration,
}

impl Exchange {
    /// Fraction of a UDP exchange that is data, theta_U.
    pub fn theta_udp(&self) -> f64 {
        self.data.as_secs_f64() / (self.difs + self.data + self.sifs + self.mac_ack).as_secs_f64()
    }

    /// Fraction of a TCP exchange, including the acknowledgement, that is data, theta_T.
    pub fn theta_tcp(&self) -> f64 {
        let all = self.difs * 2 + self.data + self.tcp_ack + self.sifs * 2 + self.mac_ack * 2;
        self.data.as_secs_f64() / all.as_secs_f64()
    }
}

/// Collision probabilities on the first links of the two flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Collisions {
    /// Collision probability of link 1.
    pub gamma_1: f64,
    /// Collision probability of link 5.
    pub gamma_5: f64,
}

/// Collision probabilities if the first links use `x_1` and `x_5` of the air time. `phi` is the
/// weight of collisions within a flow, 0 at light load and 1 when saturated. `theta` is the
/// fraction of an exchange that is data. `None` if the air time does not suffice: the equations
/// have no solution with probabilities in [0, 1].
pub fn collisions(x_1: f64, x_5: f64, phi: f64, theta: f64) -> Option<Collisions> {
    let (mut gamma_1, mut gamma_5) = (0.0_f64, 0.0_f64);
    for _ in 0..10_000 {
        let (x_4, x_8) = (x_1 * (1.0 - gamma_1), x_5 * (1.0 - gamma_5));
        let free = 1.0 - 2.0 * x_4 - 2.0 * x_8;
        let next_1 = theta * (phi * x_4 + x_5) / free;
        let next_5 = theta * (phi * x_8 + x_1) / free;
        // A NaN is rejected here too, because it fails both comparisons.
        if !(0.0..=1.0).contains(&next_1) || !(0.0..=1.0).contains(&next_5) {
            return None;
        }
        let step = (next_1 - gamma_1).abs().max((next_5 - gamma_5).abs());
        (gamma_1, gamma_5) = (next_1, next_5);
        if step < 1e-15 {
            return Some(Collisions { gamma_1, gamma_5 });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::dcc::congestion_index;

    /// Times at 2 Mbit/s with 1000 bytes of payload, MAC ACK at 1 Mbit/s, and 192 us of preamble.
    const EXCHANGE: Exchange = Exchange {
        difs: Duration::from_micros(50),
        sifs: Duration::from_micros(10),
        data: Duration::from_micros(4464),
        tcp_ack: Duration::from_micros(464),
        mac_ack: Duration::from_micros(304),
    };

    fn close(value: f64, expected: f64, unit: f64) {
        assert!((value - expected).abs() <= 0.5 * unit * 1.0001, "{value}, expected {expected}");
    }

    #[test]
    fn data_fractions_systems_11_2() {
        close(EXCHANGE.theta_udp(), 0.92461, 1e-5);
        close(EXCHANGE.theta_tcp(), 0.78925, 1e-5);
    }

    #[test]
    fn fixed_points_systems_11_2() {
        let rows = [
            (0.15, 0.10, 0.0, 0.1558, 0.2337, 3.505e-3, 2.337e-3, -3.89e-3, 1e-5),
            (0.15, 0.10, 0.5, 0.2330, 0.2755, 5.243e-3, 2.755e-3, -2.12e-3, 1e-5),
            (0.20, 0.10, 0.0, 0.1720, 0.3440, 6.880e-3, 3.440e-3, -1.72e-2, 1e-4),
            (0.10, 0.10, 0.0, 0.1409, 0.1409, 1.409e-3, 1.409e-3, 0.0, 1e-9),
        ];
        for (x_1, x_5, phi, gamma_1, gamma_5, f_1, f_5, product, unit) in rows {
            let found = collisions(x_1, x_5, phi, 0.9246).expect("light load");
            close(found.gamma_1, gamma_1, 1e-4);
            close(found.gamma_5, gamma_5, 1e-4);
            close(congestion_index(found.gamma_1, x_1), f_1, 1e-6);
            close(congestion_index(found.gamma_5, x_5), f_5, 1e-6);
            close((x_1 - x_5) * (found.gamma_1 - found.gamma_5), product, unit);
        }
    }

    #[test]
    fn the_faster_flow_collides_less_theorem_1() {
        let steps = || (1..=15).map(|n| 0.01 * f64::from(n));
        let mut solved = 0;
        for (x_1, x_5) in steps().flat_map(|x_1| steps().map(move |x_5| (x_1, x_5))) {
            for phi in [0.0, 0.3, 1.0] {
                if let Some(found) = collisions(x_1, x_5, phi, 0.9246) {
                    assert!((x_1 - x_5) * (found.gamma_1 - found.gamma_5) <= 1e-12, "{x_1} {x_5} {phi}");
                    solved += 1;
                }
            }
        }
        assert!(solved > 400, "{solved}");
    }

    #[test]
    fn too_much_load_has_no_solution() {
        assert_eq!(collisions(0.9, 0.9, 1.0, 0.9246), None);
        assert_eq!(collisions(f64::NAN, 0.1, 0.0, 0.9246), None);
    }
}
