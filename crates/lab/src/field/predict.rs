//! Prediction of the goodput of TCP over a path alone, from the goodput that each hop carries
//! alone, with an error interval.
//!
//! The bound of [`path::alone`] is the goodput that the air time of the hops allows. TCP stays
//! below it for three reasons. Data and acknowledgements of all hops contend, stations that do not
//! hear each other collide, and aggregates are smaller when a window is spread over several queues
//! (J. Bicket, D. Aguayo, S. Biswas, R. Morris, "Architecture and Evaluation of an Unplanned
//! 802.11b Mesh Network", MobiCom 2005, sections 2.4 and 3; its routing uses the same sum and
//! leaves out such collisions). One number stands for all of these effects: each relay among
//! [`path::REUSE`] consecutive hops leaves the share s of the goodput,
//!
//! goodput = bound x s^(n - 1), n = min(hops, REUSE),
//!
//! where s is the median over measured paths of (measured / bound)^(1 / (n - 1)). The error
//! interval is a split conformal interval of the ratio measured / predicted (V. Vovk, A. Gammerman,
//! G. Shafer, "Algorithmic Learning in a Random World", 2005, section 4.1). Its ends are the k-th
//! smallest and the k-th largest ratio of m paths, with k = floor((m + 1) / 20). It holds for nine
//! of ten further paths that arise in the same way as the measured ones. Paths that share hops are
//! not independent, and the interval need not hold in another mesh.
//!
//! [`FITTED`] is the fit to the paths that were measured with BMX7 in the testbed of Battlemesh
//! v11. docs/field.md says how well it predicts other paths.

use super::path;
use crate::statistics::spearman;
use crate::summary::median;

/// One in this many paths may lie outside of the error interval, at each end.
const TAIL: usize = 20;

/// A measured path of two or more hops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Number of hops.
    pub hops: usize,
    /// Bound computed from the goodputs that the hops carried alone, in the unit of `goodput`.
    pub bound: f64,
    /// Measured goodput.
    pub goodput: f64,
}

/// Parameters of the predictor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// Share of the goodput that each relay leaves.
    pub per_relay: f64,
    /// Ends of the error interval, as the ratio measured / predicted.
    pub bar: (f64, f64),
}

/// Fit to 67 paths measured with BMX7: `validation/reference/field/battlemesh-v11.csv`.
pub const FITTED: Fit = Fit { per_relay: 0.9526, bar: (0.524, 2.751) };

/// A prediction, in the unit of the goodputs of the hops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// Bound by air time.
    pub bound: f64,
    /// Predicted goodput.
    pub goodput: f64,
    /// Error interval of the prediction. `None` for a single hop, whose goodput is the measured
    /// one.
    pub bar: Option<(f64, f64)>,
}

/// Number of relays that lower the prediction.
fn relays(hops: usize) -> i32 {
    hops.clamp(1, path::REUSE) as i32 - 1
}

impl Fit {
    /// Fits the predictor to `paths`. `None` with fewer than 19 paths, because the ends of the
    /// interval have no rank then.
    pub fn of(paths: &[Measured]) -> Option<Fit> {
        let end = ((paths.len() + 1) / TAIL).checked_sub(1)?;
        let per_relay = |one: &Measured| (one.goodput / one.bound).powf(f64::from(relays(one.hops)).recip());
        let per_relay = median(paths.iter().map(per_relay).collect())?;
        let mut ratios: Vec<f64> =
            paths.iter().map(|one| one.goodput / one.bound / per_relay.powi(relays(one.hops))).collect();
        ratios.sort_by(f64::total_cmp);
        Some(Fit { per_relay, bar: (ratios[end], ratios[ratios.len() - 1 - end]) })
    }

    /// Prediction for a path of `hops` hops with the given bound.
    pub fn by_bound(&self, hops: usize, bound: f64) -> Prediction {
        let goodput = bound * self.per_relay.powi(relays(hops));
        Prediction { bound, goodput, bar: (hops > 1).then_some((goodput * self.bar.0, goodput * self.bar.1)) }
    }
}

/// Prediction for a path from the goodputs of its hops.
pub fn predict(hops: &[f64]) -> Prediction {
    FITTED.by_bound(hops.len(), path::alone(hops))
}

/// Predicted and measured paths with the same number of hops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Median {
    /// Number of hops.
    pub hops: usize,
    /// Number of paths.
    pub paths: usize,
    /// Median of the predictions.
    pub predicted: f64,
    /// Median of the measured goodputs.
    pub measured: f64,
    /// Number of paths whose measured goodput lies in the error interval of the prediction.
    pub held: usize,
}

/// Quality of predictions.
#[derive(Clone, PartialEq, Debug)]
pub struct Worth {
    /// Medians by number of hops, the fewest hops first.
    pub medians: Vec<Median>,
    /// Rank correlation of predicted and measured goodputs of single paths. `None` without at least
    /// two different values.
    pub rank: Option<f64>,
    /// Smallest and largest ratio predicted / measured of a single path.
    pub worst: (f64, f64),
}

impl Worth {
    /// Quality of the predictions that a fit makes for `paths`.
    pub fn of(fit: &Fit, paths: &[Measured]) -> Worth {
        let predicted = |one: &Measured| fit.by_bound(one.hops, one.bound);
        let is_held =
            |one: &&Measured| predicted(one).bar.is_none_or(|(low, high)| (low..=high).contains(&one.goodput));
        let most = paths.iter().map(|one| one.hops).max().unwrap_or(0);
        let of_hops = |hops: usize| {
            let these: Vec<&Measured> = paths.iter().filter(|one| one.hops == hops).collect();
            Some(Median {
                hops,
                paths: these.len(),
                predicted: median(these.iter().map(|one| predicted(one).goodput).collect())?,
                measured: median(these.iter().map(|one| one.goodput).collect())?,
                held: these.iter().copied().filter(is_held).count(),
            })
        };
        let pairs: Vec<(f64, f64)> = paths.iter().map(|one| (predicted(one).goodput, one.goodput)).collect();
        let ratios = || pairs.iter().map(|(predicted, measured)| predicted / measured);
        Worth {
            medians: (1..=most).filter_map(of_hops).collect(),
            rank: spearman(&pairs),
            worst: (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max)),
        }
    }

    /// Number of paths inside their error interval, and number of all paths.
    pub fn held(&self) -> (usize, usize) {
        self.medians.iter().fold((0, 0), |sum, one| (sum.0 + one.held, sum.1 + one.paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relay_takes_its_share_up_to_the_reuse_of_the_channel() {
        let fit = Fit { per_relay: 0.9, bar: (0.5, 2.0) };
        assert_eq!(fit.by_bound(1, 8.0), Prediction { bound: 8.0, goodput: 8.0, bar: None });
        let three = fit.by_bound(3, 10.0);
        assert!((three.goodput - 8.1).abs() < 1e-12, "10 x 0.9 x 0.9");
        let (low, high) = three.bar.unwrap();
        assert!((low - 4.05).abs() < 1e-12 && (high - 16.2).abs() < 1e-12);
        assert_eq!(fit.by_bound(4, 10.0).goodput, fit.by_bound(9, 10.0).goodput, "one of four hops sends at a time");
    }

    #[test]
    fn a_fit_finds_what_made_the_paths_and_leaves_one_of_twenty_at_each_end() {
        // 39 paths: 40 / 20 = 2, the second smallest and the second largest.
        let scatter = |place: usize| 1.0 + (place as f64 - 19.0) / 100.0;
        let path = |place: usize| {
            let hops = 2 + place % 3;
            Measured { hops, bound: 10.0, goodput: 10.0 * 0.8f64.powi(hops as i32 - 1) * scatter(place) }
        };
        let paths: Vec<Measured> = (0..39).map(path).collect();
        let fit = Fit::of(&paths).unwrap();
        assert!((fit.per_relay - 0.8).abs() < 1e-9, "{fit:?}");
        assert!((fit.bar.0 - 0.82).abs() < 1e-9 && (fit.bar.1 - 1.18).abs() < 1e-9, "{fit:?}");
        assert_eq!(Fit::of(&paths[..18]), None, "19 / 20 paths have no end");
    }

    #[test]
    fn medians_are_told_by_hops_and_ranks_over_all() {
        let path = |hops, goodput| Measured { hops, bound: 10.0, goodput };
        let fit = Fit { per_relay: 0.5, bar: (0.5, 2.0) };
        let worth = Worth::of(&fit, &[path(2, 4.0), path(2, 6.0), path(3, 2.0), path(3, 9.0), path(3, 1.0)]);
        let told: Vec<_> = worth.medians.iter().map(|one| (one.hops, one.predicted, one.measured, one.held)).collect();
        // 9 is outside of 1.25 to 5, and 1 as well.
        assert_eq!(told, [(2, 5.0, 5.0, 2), (3, 2.5, 2.0, 1)]);
        assert_eq!(worth.held(), (3, 5));
        assert_eq!(worth.worst, (2.5 / 9.0, 2.5));
        // Ranks of the predictions 4.5 4.5 2 2 2, of the measurements 3 4 2 5 1: sums of products 2.5, 7.5 and 10.
        assert!((worth.rank.unwrap() - 2.5 / 75f64.sqrt()).abs() < 1e-12, "{worth:?}");
    }
}
