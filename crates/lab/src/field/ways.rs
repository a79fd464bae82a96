//! Path that a mesh's own routing takes, as far as a dump tells. It follows the next hops that the
//! nodes reported, or else the metric of the routing:
//!
//! - ETX or another cost: the path with the smallest sum.
//! - TQ (B.A.T.M.A.N. IV): the path with the largest product of the shares to the next hop. Each
//!   share is reduced by a hop penalty of 30 / 255, the default of batman-adv since 2014
//!   (`hop_penalty` in batctl(8)).
//! - Throughput (B.A.T.M.A.N. V): the path with the largest throughput. It is the throughput of the
//!   worst hop, halved at each node that forwards, as batman-adv does on one radio
//!   (`batadv_v_forward_penalty`).

use super::dumps::{Dump, LinkReport, Metric};
use super::path::{self, Links};
use std::collections::BTreeMap;

/// Hop penalty of batman-adv, as a share.
const HOP_PENALTY: f64 = 30.0 / 255.0;

/// Nodes of the path from `from` to `to`. `None` if the dump has no path.
pub fn way(dump: &Dump, from: usize, to: usize) -> Option<Vec<usize>> {
    told(dump, from, to).or_else(|| match dump.metric {
        Metric::Throughput => widest(&links(dump, |link| link.mbps), from, to),
        Metric::Etx => path::shortest(&etx(dump), from, to),
        Metric::Quality => {
            let quality = |link: &LinkReport| link.tq.or(link.delivery);
            let cost = |link: &LinkReport| quality(link).map(|share| -(share * (1.0 - HOP_PENALTY)).ln());
            path::shortest(&links(dump, cost), from, to)
        }
        Metric::Cost => path::shortest(&links(dump, |link| link.cost), from, to),
        Metric::Hops => path::shortest(&links(dump, |_| Some(1.0)), from, to),
    })
}

/// Path along the next hops that the nodes reported. `None` if a node on it reported no next hop.
fn told(dump: &Dump, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut way = vec![from];
    while let Some(&at) = way.last().filter(|at| **at != to) {
        let next = dump.routes.iter().find(|(node, destination, _)| (*node, *destination) == (at, to))?.2;
        // Routing tables that were not read at the same time may form a loop.
        if way.contains(&next) {
            return None;
        }
        way.push(next);
    }
    Some(way)
}

/// Value of each link. A direction without a report takes the value of the other direction. Of
/// several reports on one direction the first one counts.
fn links(dump: &Dump, value: impl Fn(&LinkReport) -> Option<f64>) -> Links {
    let mut found = Links::new();
    for reversed in [false, true] {
        for link in &dump.links {
            let ends = if reversed { (link.to, link.from) } else { (link.from, link.to) };
            if let Some(value) = value(link) {
                found.entry(ends).or_insert(value);
            }
        }
    }
    found
}

/// ETX of each link of a dump, in both directions. It is 1 if no share is known.
pub fn etx(dump: &Dump) -> Links {
    let mut shares: BTreeMap<(usize, usize), Option<f64>> = BTreeMap::new();
    for link in &dump.links {
        let known = shares.entry((link.from, link.to)).or_default();
        *known = match (*known, link.delivery) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
    let told = |ends: (usize, usize)| shares.get(&ends).copied().flatten();
    let both = |&(from, to): &(usize, usize)| {
        let (there, back) = (told((from, to)), told((to, from)));
        let there_or = there.or(back).unwrap_or(1.0);
        let etx = 1.0 / (there_or * back.unwrap_or(there_or));
        [((from, to), etx), ((to, from), etx)]
    };
    shares.keys().flat_map(both).collect()
}

/// Share of the frames from `from` that arrive at `to`. It is taken from the first report on that
/// direction, or else from the first report on the other direction. `None` if there is no report.
pub fn delivery(dump: &Dump, from: usize, to: usize) -> Option<f64> {
    let told = |ends: (usize, usize)| {
        dump.links.iter().filter(|link| (link.from, link.to) == ends).find_map(|link| link.delivery)
    };
    told((from, to)).or_else(|| told((to, from)))
}

/// Goodput of each link alone, Mbit/s, for links that report it.
pub fn mbps(dump: &Dump) -> Links {
    links(dump, |link| link.mbps)
}

/// Path with the largest throughput at its source.
fn widest(links: &Links, from: usize, to: usize) -> Option<Vec<usize>> {
    // The search starts at the destination, because the originator messages spread from there.
    let mut best: BTreeMap<usize, (f64, Vec<usize>)> = BTreeMap::from([(to, (f64::INFINITY, vec![to]))]);
    loop {
        let mut changed = false;
        for (&(at, next), mbps) in links {
            let Some((carried, way)) = best.get(&next) else { continue };
            let passed = if next == to { *carried } else { carried / 2.0 };
            let found = (passed.min(*mbps), [&[at], way.as_slice()].concat());
            if !way.contains(&at) && best.get(&at).is_none_or(|known| found.0 > known.0 + 1e-9) {
                best.insert(at, found);
                changed = true;
            }
        }
        if !changed {
            return best.remove(&from).map(|(_, way)| way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dumps;
    use super::*;

    fn dump(metric: Metric, links: &[(usize, usize, f64)]) -> Dump {
        let heard = |&(from, to, value): &(usize, usize, f64)| match metric {
            Metric::Throughput => LinkReport { from, to, mbps: Some(value), ..LinkReport::default() },
            Metric::Cost => LinkReport { from, to, cost: Some(value), ..LinkReport::default() },
            _ => LinkReport { from, to, delivery: Some(value), ..LinkReport::default() },
        };
        let nodes = (0..6).map(|node| node.to_string()).collect();
        Dump { nodes, links: links.iter().map(heard).collect(), metric, ..Dump::default() }
    }

    #[test]
    fn dumps_of_babeld_tell_the_way_over_the_node_between() {
        let of = |name: &str, text: &str| (name.to_owned(), dumps::read(text.as_bytes()).unwrap());
        let whole = dumps::merge(&[
            of("a", include_str!("dumps/samples/babeld-a.txt")),
            of("b", include_str!("dumps/samples/babeld-b.txt")),
            of("c", include_str!("dumps/samples/babeld-c.txt")),
        ]);
        assert_eq!(way(&whole, 0, 2), Some(vec![0, 1, 2]));
    }

    #[test]
    fn dumps_of_batctl_tell_the_next_hop() {
        let of = |name: &str, text: &str| (name.to_owned(), dumps::read(text.as_bytes()).unwrap());
        let whole = dumps::merge(&[
            of("roof", include_str!("dumps/samples/batctl-o-0.txt")),
            of("mill", include_str!("dumps/samples/batctl-o-1.txt")),
            of("barn", include_str!("dumps/samples/batctl-o-2.txt")),
        ]);
        let place = |name: &str| whole.find(name).unwrap();
        let over = vec![place("roof"), place("mill"), place("barn")];
        assert_eq!(way(&whole, place("roof"), place("02:00:00:00:02:00")), Some(over));
    }

    #[test]
    fn each_metric_has_its_own_way() {
        // A bad hop, or two good ones: 1/(0.4 0.4) = 6.25 tries against 2 x 1.23, and 0.4 against 0.81 less a penalty.
        let links = [(0, 2, 0.4), (0, 1, 0.9), (1, 2, 0.9)];
        assert_eq!(way(&dump(Metric::Etx, &links), 0, 2).unwrap(), [0, 1, 2]);
        assert_eq!(way(&dump(Metric::Quality, &links), 0, 2).unwrap(), [0, 1, 2]);
        assert_eq!(way(&dump(Metric::Hops, &links), 0, 2).unwrap(), [0, 2]);
        // 0.75 is more than 0.9 x 0.9 x (1 - 30/255) = 0.715, while 1/0.75^2 = 1.78 tries are fewer than 2.47.
        let links = [(0, 2, 0.75), (0, 1, 0.9), (1, 2, 0.9)];
        assert_eq!(way(&dump(Metric::Quality, &links), 0, 2).unwrap(), [0, 2]);
        // 0.70 is less than that.
        let links = [(0, 2, 0.70), (0, 1, 0.9), (1, 2, 0.9)];
        assert_eq!(way(&dump(Metric::Quality, &links), 0, 2).unwrap(), [0, 1, 2]);
        // 20 Mbit/s over one hop against 50 / 2 over two, and against 30 / 2.
        assert_eq!(
            way(&dump(Metric::Throughput, &[(0, 2, 20.0), (0, 1, 50.0), (1, 2, 50.0)]), 0, 2).unwrap(),
            [0, 1, 2]
        );
        assert_eq!(way(&dump(Metric::Throughput, &[(0, 2, 20.0), (0, 1, 50.0), (1, 2, 30.0)]), 0, 2).unwrap(), [0, 2]);
        assert_eq!(way(&dump(Metric::Cost, &[(0, 2, 5.0), (0, 1, 2.0), (1, 2, 2.5)]), 0, 2).unwrap(), [0, 1, 2]);
        assert_eq!(way(&dump(Metric::Etx, &[(0, 1, 1.0)]), 0, 3), None);
    }

    #[test]
    fn what_the_nodes_told_comes_before_the_metric() {
        let mut dump = dump(Metric::Etx, &[(0, 2, 1.0), (0, 1, 0.5), (1, 2, 0.5)]);
        dump.routes = vec![(0, 2, 1)];
        assert_eq!(way(&dump, 0, 2).unwrap(), [0, 2], "nobody told how it goes on from 1");
        dump.routes.push((1, 2, 2));
        assert_eq!(way(&dump, 0, 2).unwrap(), [0, 1, 2]);
        dump.routes[1] = (1, 2, 0);
        assert_eq!(way(&dump, 0, 2).unwrap(), [0, 2], "a loop is no way");
    }
}
