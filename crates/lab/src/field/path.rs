//! Goodput of a path from what is known about each of its hops. It needs no simulation and is a
//! bound to compare measurements and simulations with.
//!
//! A hop that alone carries the goodput g takes 1 / g of the channel's time for each bit.
//! Neighbouring hops share one channel: of any [`REUSE`] consecutive hops, only one sends at a
//! time. A path alone therefore carries 1 over the largest sum of 1 / g over that many hops (J. Li,
//! C. Blake, D. De Couto, H. Lee, R. Morris, "Capacity of Ad Hoc Wireless Networks", MobiCom 2001,
//! section 3: 1/4 on a long chain). A hop with the metric ETX, the expected number of
//! transmissions, carries the goodput of a loss-free hop divided by its ETX (D. De Couto, D.
//! Aguayo, J. Bicket, R. Morris, "A High-Throughput Path Metric for Multi-Hop Wireless Routing",
//! MobiCom 2003, section 3).
//!
//! All simultaneous flows are assumed to share one channel. Flows of a fixed rate take the time
//! that they need; the other flows share the remaining time equally. The assumption is wrong in
//! both directions: TCP over 802.11 is far from a fair share, and there is no spatial reuse between
//! flows.

use std::collections::BTreeMap;

/// Number of consecutive hops of which only one sends at a time.
pub const REUSE: usize = 4;

/// ETX of each link, by sender and receiver. Other functions store other metrics in the same type.
pub type Links = BTreeMap<(usize, usize), f64>;

/// Path with the smallest sum of ETX. `None` if there is no path. Of several paths with the same
/// sum, the first one found is returned; links are searched in ascending order of their nodes.
pub fn shortest(links: &Links, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut best: BTreeMap<usize, (f64, Vec<usize>)> = BTreeMap::from([(from, (0.0, vec![from]))]);
    // Algorithm of Bellman and Ford. It is fast enough, because real meshes are small graphs.
    loop {
        let mut changed = false;
        for (&(a, b), etx) in links {
            let Some((cost, path)) = best.get(&a) else { continue };
            let longer = (cost + etx, path.iter().copied().chain([b]).collect::<Vec<_>>());
            if best.get(&b).is_none_or(|known| longer.0 < known.0 - 1e-9) {
                best.insert(b, longer);
                changed = true;
            }
        }
        if !changed {
            return best.remove(&to).map(|(_, path)| path);
        }
    }
}

/// ETX of each hop of a path. Hops without a link are left out.
pub fn metrics(links: &Links, path: &[usize]) -> Vec<f64> {
    path.windows(2).filter_map(|hop| links.get(&(hop[0], hop[1])).copied()).collect()
}

/// Goodput of a path alone, computed from the goodputs of its hops and in their unit.
pub fn alone(hops: &[f64]) -> f64 {
    let time = |window: &[f64]| window.iter().map(|goodput| goodput.recip()).sum::<f64>();
    hops.windows(REUSE.min(hops.len())).map(time).fold(0.0, f64::max).recip()
}

/// Goodput of each of `flows` on one shared channel. A flow is given by the goodput that it has
/// alone. `offered` are flows of a fixed rate beside them, each given by its goodput alone and its
/// rate.
pub fn shared(flows: &[f64], offered: &[(f64, f64)]) -> Vec<f64> {
    let taken: f64 = offered.iter().map(|(alone, rate)| (rate / alone).min(1.0)).sum();
    let part = (1.0 - taken).max(0.0) / flows.len() as f64;
    flows.iter().map(|alone| alone * part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_metric_wins_over_the_fewest_hops() {
        let links = Links::from([((0, 3), 4.0), ((0, 1), 1.0), ((1, 2), 1.0), ((2, 3), 1.5), ((3, 4), 1.0)]);
        let path = shortest(&links, 0, 4).unwrap();
        assert_eq!(path, [0, 1, 2, 3, 4]);
        assert_eq!(metrics(&links, &path), [1.0, 1.0, 1.5, 1.0]);
        assert_eq!(shortest(&links, 4, 0), None, "links have a direction");
    }

    #[test]
    fn a_chain_carries_a_quarter_from_four_hops_on() {
        assert_eq!(alone(&[8.0]), 8.0);
        assert_eq!(alone(&[8.0, 8.0]), 4.0);
        assert_eq!(alone(&[8.0; 4]), 2.0);
        assert_eq!(alone(&[8.0; 9]), 2.0);
        // 1/8 + 1/8 + 1/4 + 1/8 = 5/8, and so in every window that holds the bad hop.
        assert!((alone(&[8.0, 8.0, 4.0, 8.0, 8.0]) - 1.6).abs() < 1e-12);
    }

    #[test]
    fn who_offers_a_fixed_rate_takes_its_time_first() {
        assert_eq!(shared(&[6.0, 4.0], &[]), [3.0, 2.0]);
        // A hop that carries 10 alone and offers 5 takes half.
        assert_eq!(shared(&[6.0, 4.0], &[(10.0, 5.0)]), [1.5, 1.0]);
        assert_eq!(shared(&[6.0], &[(10.0, 5.0), (10.0, 8.0)]), [0.0]);
    }
}
