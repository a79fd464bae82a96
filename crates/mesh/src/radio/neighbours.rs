//! Who can sense whom: one table per node, sorted by distance, so that a transmission costs what its neighbourhood is.

use super::two_ray;
use crate::config::Position;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};

/// A node within sensing range of another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Neighbour {
    /// Who it is.
    pub node: NodeId,
    /// Whether a frame of this strength can be decoded.
    pub decodable: bool,
    /// Propagation delay.
    pub delay: Duration,
    /// Received power, W.
    pub power: f64,
}

/// The neighbour tables of all nodes.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// Where each node's part of `entries` begins, and one more for the end.
    starts: Vec<u32>,
    entries: Vec<Neighbour>,
}

impl Neighbours {
    /// The tables of nodes at `positions` under two-ray propagation. Work and memory grow with the number of pairs in
    /// range, not with all pairs.
    pub fn two_ray(positions: &[Position]) -> Neighbours {
        // A grid with cells as wide as the sensing range: whoever is in range is in one of nine cells.
        let width = two_ray::range(two_ray::SENSE_THRESHOLD_W) + 1.0;
        let cell_of = |p: Position| (libm::floor(p.x / width) as i64, libm::floor(p.y / width) as i64);
        let mut cells: BTreeMap<(i64, i64), Vec<u16>> = BTreeMap::new();
        for (i, &p) in positions.iter().enumerate() {
            cells.entry(cell_of(p)).or_default().push(i as u16);
        }
        let mut starts = Vec::with_capacity(positions.len() + 1);
        let mut entries = Vec::new();
        for (i, &p) in positions.iter().enumerate() {
            starts.push(entries.len() as u32);
            let from = entries.len();
            let (cx, cy) = cell_of(p);
            for dx in -1..=1 {
                for dy in -1..=1 {
                    for &j in cells.get(&(cx + dx, cy + dy)).into_iter().flatten() {
                        if usize::from(j) == i {
                            continue;
                        }
                        let distance = p.distance(positions[usize::from(j)]);
                        let power = two_ray::received_power(distance);
                        if power >= two_ray::SENSE_THRESHOLD_W {
                            entries.push(Neighbour {
                                node: NodeId(j),
                                decodable: power >= two_ray::DECODE_THRESHOLD_W,
                                delay: Duration::from_secs_f64(distance / two_ray::SPEED_OF_LIGHT),
                                power,
                            });
                        }
                    }
                }
            }
            entries[from..].sort_by_key(|n| (n.delay, n.node));
        }
        starts.push(entries.len() as u32);
        Neighbours { starts, entries }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Who senses `node`, nearest first; equal distances by node number.
    #[inline]
    pub fn of(&self, node: NodeId) -> &[Neighbour] {
        &self.entries[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }

    /// The place of neighbour number `n` of `node` in [`Neighbours::entry`], with the end of the table: a cursor.
    #[inline]
    pub fn range(&self, node: NodeId) -> (u32, u32) {
        (self.starts[node.index()], self.starts[node.index() + 1])
    }

    /// The entry under a cursor.
    #[inline]
    pub fn entry(&self, cursor: u32) -> &Neighbour {
        &self.entries[cursor as usize]
    }

    /// For routing: who can decode whom, by ascending node number.
    pub fn adjacency(&self) -> Vec<Vec<NodeId>> {
        (0..self.nodes())
            .map(|i| {
                let mut out: Vec<NodeId> =
                    self.of(NodeId(i as u16)).iter().filter(|n| n.decodable).map(|n| n.node).collect();
                out.sort();
                out
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_senses_two_hops_and_decodes_one() {
        let positions: Vec<Position> = (0..5).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect();
        let tables = Neighbours::two_ray(&positions);
        let of_2: Vec<(u16, bool)> = tables.of(NodeId(2)).iter().map(|n| (n.node.0, n.decodable)).collect();
        assert_eq!(of_2, [(1, true), (3, true), (0, false), (4, false)]);
        assert_eq!(tables.of(NodeId(2))[0].delay, Duration(667));
        assert_eq!(tables.adjacency()[0], [NodeId(1)]);
    }

    #[test]
    fn the_grid_finds_what_comparing_all_pairs_finds() {
        let mut rng = meshpace_core::Rng::stream(7, meshpace_core::rng::Purpose::Test, 0);
        let positions: Vec<Position> = (0..150)
            .map(|_| Position { x: rng.uniform_in(-2000.0, 2000.0), y: rng.uniform_in(-900.0, 900.0) })
            .collect();
        let tables = Neighbours::two_ray(&positions);
        for (i, &p) in positions.iter().enumerate() {
            let expected = positions
                .iter()
                .enumerate()
                .filter(|&(j, &q)| j != i && two_ray::received_power(p.distance(q)) >= two_ray::SENSE_THRESHOLD_W)
                .count();
            assert_eq!(tables.of(NodeId(i as u16)).len(), expected, "node {i}");
        }
    }
}
