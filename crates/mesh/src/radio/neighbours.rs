//! Stations within sensing range of each other: one table per node, sorted by distance, so that the cost of a transmission is that of its neighbourhood.
//!
//! Where nodes move, a table is made for every transmission as it begins ([`Neighbours::around`]), from where the nodes
//! are at that instant. Within the few milliseconds of a frame nobody moves further than a few centimetres, so the table
//! holds until the frame's end. [`Vicinity`] keeps the work proportional to the neighbourhood.

use super::channel::{Channel, Neighbour};
use crate::position::Position;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};

/// The neighbour tables of all nodes.
#[derive(Clone, Debug)]
pub struct Neighbours {
    channel: Channel,
    /// Where each node's part of `entries` begins, and one more for the end.
    starts: Vec<u32>,
    entries: Vec<Neighbour>,
}

impl Neighbours {
    /// The tables of nodes at `positions`. Work and memory grow with the number of pairs in range, not with all pairs.
    pub fn new(channel: &Channel, positions: &[Position]) -> Neighbours {
        // A grid with cells as wide as the radio reaches: whoever is in range is in one of nine cells.
        let width = cell_width(channel, 0.0);
        let cell_of = |p: Position| cell(p, width);
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
                        entries.extend(channel.neighbour(NodeId(i as u16), NodeId(j), distance));
                    }
                }
            }
            entries[from..].sort_by_key(|n| (n.delay, n.node));
        }
        starts.push(entries.len() as u32);
        Neighbours { channel: channel.clone(), starts, entries }
    }

    /// The radio.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The radio, to be changed: for tables made from now on.
    pub fn channel_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Stations that sense `node`, nearest first; equal distances by node number.
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

    /// The entries from a cursor to an end.
    #[inline]
    pub fn slice(&self, first: u32, end: u32) -> &[Neighbour] {
        &self.entries[first as usize..end as usize]
    }

    /// Begins tables for `nodes` nodes that move: nobody senses anybody until [`Neighbours::around`] says so.
    pub fn moving(channel: &Channel, nodes: usize) -> Neighbours {
        Neighbours { channel: channel.clone(), starts: alloc::vec![0; nodes + 1], entries: Vec::new() }
    }

    /// The table of a transmission of `sender` at `place` that begins now, given where its possible receivers are. It
    /// stays in place number `slot` until that number is used again; returns its cursor and its end.
    pub fn around(
        &mut self,
        slot: u32,
        sender: NodeId,
        place: Position,
        others: impl Iterator<Item = (NodeId, Position)>,
    ) -> (u32, u32) {
        let stride = self.nodes();
        let first = slot as usize * stride;
        let nobody = Neighbour { node: NodeId::BROADCAST, decodable: false, delay: Duration::ZERO, power: 0.0 };
        // Grows with the most transmissions that are ever on the air together, and never after.
        if self.entries.len() < first + stride {
            self.entries.resize(first + stride, nobody);
        }
        let mut end = first;
        let channel = &self.channel;
        for entry in others.filter_map(|(node, at)| channel.neighbour(sender, node, place.distance(at))) {
            self.entries[end] = entry;
            end += 1;
        }
        self.entries[first..end].sort_unstable_by_key(|n| (n.delay, n.node));
        (first as u32, end as u32)
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

/// The width of a grid's cells in metres, for a tolerance of `slack` metres. A radio that reaches nowhere has cells all the
/// same.
fn cell_width(channel: &Channel, slack: f64) -> f64 {
    channel.reach() * 1.002 + slack + 1e-3
}

/// Nodes by the cell of a grid they were in when it was last filled: who may be in sensing range of a place.
///
/// The grid may be out of date: as long as nobody has moved further than `slack` since it was filled, nobody in range is
/// missed. Whoever asks compares the true distances.
#[derive(Clone, Debug)]
pub struct Vicinity {
    width: f64,
    /// Sorted by column, then row, then node: a column's three neighbouring cells are one run. With the places at that time.
    cells: Vec<(i64, i64, NodeId, Position)>,
}

impl Vicinity {
    /// An empty grid that tolerates movements of `slack` metres.
    pub fn new(channel: &Channel, slack: f64) -> Vicinity {
        Vicinity { width: cell_width(channel, slack), cells: Vec::new() }
    }

    /// Fills the grid anew with nodes at `positions`, by node number.
    pub fn fill(&mut self, positions: impl Iterator<Item = Position>) {
        self.cells.clear();
        let width = self.width;
        self.cells.extend(positions.enumerate().map(|(node, place)| {
            let (column, row) = cell(place, width);
            (column, row, NodeId(node as u16), place)
        }));
        self.cells.sort_unstable_by_key(|&(column, row, node, _)| (column, row, node));
    }

    /// Everybody who may be in sensing range of `place`, whoever is there included.
    pub fn near(&self, place: Position) -> impl Iterator<Item = NodeId> {
        let (column, row) = cell(place, self.width);
        // A cell is as wide as the reach and the slack together, so nobody who was farther away is in reach now.
        let farthest = self.width * self.width;
        (column - 1..=column + 1).flat_map(move |column| {
            let from = self.cells.partition_point(|&(c, r, ..)| (c, r) < (column, row - 1));
            let to = self.cells.partition_point(|&(c, r, ..)| (c, r) <= (column, row + 1));
            let near = self.cells[from..to].iter().filter(move |cell| {
                let (dx, dy) = (cell.3.x - place.x, cell.3.y - place.y);
                dx * dx + dy * dy <= farthest
            });
            near.map(|cell| cell.2)
        })
    }
}

fn cell(place: Position, width: f64) -> (i64, i64) {
    (libm::floor(place.x / width) as i64, libm::floor(place.y / width) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::config::{Propagation, RadioConfig, Reception};
    use crate::radio::{LogDistance, two_ray};

    fn two_ray_channel() -> Channel {
        Channel::new(&RadioConfig::default())
    }

    #[test]
    fn a_chain_senses_two_hops_and_decodes_one() {
        let positions: Vec<Position> = (0..5).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect();
        let tables = Neighbours::new(&two_ray_channel(), &positions);
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
        let tables = Neighbours::new(&two_ray_channel(), &positions);
        for (i, &p) in positions.iter().enumerate() {
            let expected = positions
                .iter()
                .enumerate()
                .filter(|&(j, &q)| j != i && two_ray::received_power(p.distance(q)) >= two_ray::SENSE_THRESHOLD_W)
                .count();
            assert_eq!(tables.of(NodeId(i as u16)).len(), expected, "node {i}");
        }
    }

    #[test]
    fn a_table_made_on_the_spot_is_the_one_made_in_advance() {
        let mut rng = meshpace_core::Rng::stream(8, meshpace_core::rng::Purpose::Test, 0);
        let old: Vec<Position> = (0..150)
            .map(|_| Position { x: rng.uniform_in(-2000.0, 2000.0), y: rng.uniform_in(-900.0, 900.0) })
            .collect();
        // Everybody has moved by less than the 50 m of slack since the grid was filled.
        let positions: Vec<Position> = old
            .iter()
            .map(|p| Position { x: p.x + rng.uniform_in(-35.0, 35.0), y: p.y + rng.uniform_in(-35.0, 35.0) })
            .collect();
        let mut vicinity = Vicinity::new(&two_ray_channel(), 50.0);
        vicinity.fill(old.iter().copied());
        let expected = Neighbours::new(&two_ray_channel(), &positions);
        let mut moving = Neighbours::moving(&two_ray_channel(), positions.len());
        for (i, &place) in positions.iter().enumerate() {
            let node = NodeId(i as u16);
            let others = vicinity.near(place).filter(|&other| other != node).map(|o| (o, positions[o.index()]));
            // Two slots in turn: a table must not disturb its neighbour.
            let (first, end) = moving.around(i as u32 % 2, node, place, others);
            let table: Vec<Neighbour> = (first..end).map(|cursor| *moving.entry(cursor)).collect();
            assert_eq!(table, expected.of(node), "node {i}");
        }
    }

    #[test]
    fn with_attenuators_and_shadows_the_grid_finds_what_comparing_all_pairs_finds() {
        let mut rng = meshpace_core::Rng::stream(9, meshpace_core::rng::Purpose::Test, 0);
        let place = |_| Position { x: rng.uniform_in(0.0, 900.0), y: rng.uniform_in(0.0, 600.0) };
        let positions: Vec<Position> = (0..120).map(place).collect();
        let attenuators_db = (0..100).map(|node| f64::from(node % 7)).collect();
        let model = LogDistance { attenuators_db, attenuator_db: 5.0, shadowing_db: 4.0, ..LogDistance::default() };
        let config = RadioConfig {
            propagation: Propagation::LogDistance(model.clone()),
            reception: Reception::Sinr,
            ..RadioConfig::default()
        };
        let tables = Neighbours::new(&Channel::new(&config), &positions);
        let mut entries = 0;
        for (i, p) in positions.iter().enumerate() {
            let heard = |&(j, q): &(usize, &Position)| {
                let power = model.received_power_dbm(NodeId(i as u16), NodeId(j as u16), p.distance(*q));
                j != i && power >= config.noise_dbm - 10.0
            };
            let expected = positions.iter().enumerate().filter(heard).count();
            assert_eq!(tables.of(NodeId(i as u16)).len(), expected, "node {i}");
            entries += expected;
        }
        // The test would prove nothing if everybody heard everybody.
        assert!((1000..10_000).contains(&entries), "{entries}");
    }
}
