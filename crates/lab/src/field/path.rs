//! Goodput of a path by what is known of each of its hops: no simulation, a bound to hold measurements and simulations against.
//!
//! A hop that alone carries g takes 1 / g of the channel's time for each bit. Hops next to each other share one channel: of any
//! [`REUSE`] consecutive hops one sends at a time, so that a path alone carries 1 over the largest sum of 1 / g over so many hops (J. Li, C. Blake,
//! D. De Couto, H. Lee, R. Morris, "Capacity of Ad Hoc Wireless Networks", MobiCom 2001, section 3: 1/4 on a long chain). A hop with the metric ETX carries a hop's
//! goodput over its ETX, the expected number of transmissions (D. De Couto, D. Aguayo, J. Bicket, R. Morris, "A High-Throughput Path Metric for Multi-Hop
//! Wireless Routing", MobiCom 2003, section 3).
//!
//! Flows at once are taken to share one channel all of them: those of a fixed rate take what they need, the others the rest in equal parts of
//! time. That is a fair share, which TCP over 802.11 is far from, and no reuse between flows: it errs to either side.

use std::collections::BTreeMap;

/// Consecutive hops of which one sends at a time.
pub const REUSE: usize = 4;

/// Links with their metric: from, to, ETX.
pub type Links = BTreeMap<(usize, usize), f64>;

/// The path of the least sum of ETX; none if there is none. Of several that are equal the one whose nodes have the lower numbers.
pub fn shortest(links: &Links, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut best: BTreeMap<usize, (f64, Vec<usize>)> = BTreeMap::from([(from, (0.0, vec![from]))]);
    // As Bellman and Ford did it: graphs of people's meshes are small.
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

/// The ETX of each hop of a path over links that exist.
pub fn metrics(links: &Links, path: &[usize]) -> Vec<f64> {
    path.windows(2).filter_map(|hop| links.get(&(hop[0], hop[1])).copied()).collect()
}

/// Goodput of the path alone by the goodputs of its hops, in their unit.
pub fn alone(hops: &[f64]) -> f64 {
    let time = |window: &[f64]| window.iter().map(|goodput| goodput.recip()).sum::<f64>();
    hops.windows(REUSE.min(hops.len())).map(time).fold(0.0, f64::max).recip()
}

/// Goodput of each of `flows`, given by what it carries alone, on one channel beside others that offer a fixed rate, given as pairs: what
/// such a one carries alone and what it offers.
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
