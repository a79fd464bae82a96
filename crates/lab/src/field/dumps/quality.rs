//! Computes the share of the frames that arrive from the quality (TQ) of B.A.T.M.A.N. IV.
//!
//! batman-adv measures two shares with its own broadcasts and those of its neighbour: the share p
//! that arrives there, and the share q that arrives back. It lowers the quality of links that are
//! worse in the backward direction (`batadv_iv_ogm_calc_tq` in net/batman-adv/bat_iv_ogm.c of
//! Linux):
//!
//! ```text
//! TQ there = 255 p (1 - (1 - q)^3)        TQ back = 255 q (1 - (1 - p)^3)
//! ```
//!
//! Routes follow TQ as it is. Simulations use p and q, because these are the shares that arrive
//! over the air. If only one direction has a quality, the quality is used as its share. The real
//! share is not smaller.

use super::Dump;
use std::collections::BTreeMap;

/// Number of iterations of the solution. One iteration leaves less than a tenth of the error if p
/// and q are at least 0.7, and nine tenths of it if they are 0.05.
const STEPS: usize = 60;

/// Share p that arrives, computed from the qualities of both directions as shares.
fn share(there: f64, back: f64) -> f64 {
    let factor = |share: f64| 1.0 - (1.0 - share).powi(3);
    let (mut p, mut q) = (there, back);
    for _ in 0..STEPS {
        (p, q) = ((there / factor(q)).min(1.0), (back / factor(p)).min(1.0));
    }
    p
}

/// Computes the share of every direction that has a quality.
pub fn fill(dump: &mut Dump) {
    let mut told: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for link in &dump.links {
        if let Some(tq) = link.tq {
            told.entry((link.from, link.to)).or_insert(tq);
        }
    }
    for link in &mut dump.links {
        if let Some(tq) = link.tq {
            let back = told.get(&(link.to, link.from));
            link.delivery = Some(back.map_or(tq, |back| share(tq, *back)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TQ as the kernel computes it: in whole numbers, with its window of 64 broadcasts.
    fn kernel_tq(there: f64, back: f64) -> u32 {
        let received = (64.0 * back).round() as u32;
        let echoed = (64.0 * back * there).round() as u32;
        let own = 255 * echoed.min(received) / received;
        let penalty = 255 - 255 * (64 - received).pow(3) / 64_u32.pow(3);
        255 * own * penalty / (255 * 255)
    }

    #[test]
    fn the_shares_that_a_kernel_made_qualities_of_come_back() {
        for there in 6..=20 {
            for back in 6..=20 {
                let shares = (f64::from(there) / 20.0, f64::from(back) / 20.0);
                let tq = |there, back| f64::from(kernel_tq(there, back)) / 255.0;
                let (one, other) = (tq(shares.0, shares.1), tq(shares.1, shares.0));
                // A broadcast of 64, and what is rounded down twice.
                let is_near = |found: f64, share: f64| (found - share).abs() <= 0.06;
                assert!(is_near(share(one, other), shares.0), "{shares:?}: {}", share(one, other));
            }
        }
        // TQ as a share of half lost both ways is 0.5 x 0.875.
        assert!((share(0.4375, 0.4375) - 0.5).abs() < 1e-6);
        assert_eq!((share(1.0, 1.0), share(1.0, 0.5)), (1.0, 1.0));
    }
}
