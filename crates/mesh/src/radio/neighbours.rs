//! Neighbour tables: the stations within sensing range of each node, sorted by distance. The cost
//! of a transmission therefore depends only on the size of its neighbourhood.
//!
//! If nodes move, a table is made for every transmission when it begins ([`Neighbours::around`]),
//! from the positions at that instant. Within the few milliseconds of a frame no node moves farther
//! than a few centimetres, so the table is valid until the end of the frame. [`Vicinity`] keeps the
//! work proportional to the neighbourhood.

use super::channel::{Channel, Neighbour};
use crate::position::Position;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};

/// Neighbour tables of all nodes.
#[derive(Clone, Debug)]
pub struct Neighbours {
    channel: Channel,
    /// Index in `entries` at which the table of each node begins, followed by the end of the last
    /// table.
    starts: Vec<u32>,
    entries: Vec<Neighbour>,
}

impl Neighbours {
    /// Builds the tables of nodes at `positions`. Work and memory grow with the number of pairs in
    /// range, not with the number of all pairs.
    pub fn new(channel: &Channel, positions: &[Position]) -> Neighbours {
        // The cells of the grid are as wide as the radio reaches, so that every node in range is in
        // one of nine cells.
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

    /// Radio of the mesh.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Mutable access to the radio. A change affects only tables that are made later.
    pub fn channel_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Stations that sense `node`, the nearest first. Equal distances are ordered by node number.
    #[inline]
    pub fn of(&self, node: NodeId) -> &[Neighbour] {
        &self.entries[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }

    /// Cursor to the first neighbour of `node` for [`Neighbours::entry`], and the end of the table.
    #[inline]
    pub fn range(&self, node: NodeId) -> (u32, u32) {
        (self.starts[node.index()], self.starts[node.index() + 1])
    }

    /// Entry at a cursor.
    #[inline]
    pub fn entry(&self, cursor: u32) -> &Neighbour {
        &self.entries[cursor as usize]
    }

    /// Entries from a cursor up to, but not including, an end.
    #[inline]
    pub fn slice(&self, first: u32, end: u32) -> &[Neighbour] {
        &self.entries[first as usize..end as usize]
    }

    /// Creates empty tables for `nodes` moving nodes. [`Neighbours::around`] fills one for each
    /// transmission.
    pub fn moving(channel: &Channel, nodes: usize) -> Neighbours {
        Neighbours { channel: channel.clone(), starts: alloc::vec![0; nodes + 1], entries: Vec::new() }
    }

    /// Makes the table of a transmission that `sender` begins now at `place`, given the positions
    /// of the possible receivers. The table stays in slot number `slot` until that number is used
    /// again. Returns a cursor to its first entry and its end.
    pub fn around(
        &mut self,
        slot: u32,
        sender: NodeId,
        place: Position,
        others: impl Iterator<Item = (NodeId, Position)>,
    ) -> (u32, u32) {
        let stride = self.nodes();
        let first = slot as usize * stride;
        let unused = Neighbour { node: NodeId::BROADCAST, decodable: false, delay: Duration::ZERO, power: 0.0 };
        // The vector grows to the largest number of simultaneous transmissions, and does not grow
        // afterwards.
        if self.entries.len() < first + stride {
            self.entries.resize(first + stride, unused);
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

    /// Adjacency lists for routing: for each node, the nodes that can decode its frames, by
    /// ascending number.
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

/// Width of the cells of a grid in metres, for nodes that have moved by up to `slack` metres. The
/// width is above 0 even for a radio without any reach.
fn cell_width(channel: &Channel, slack: f64) -> f64 {
    channel.reach() * 1.002 + slack + 1e-3
}

/// Grid of cells that finds the nodes that may be in sensing range of a position.
///
/// The grid stores the positions at the time of the last [`Vicinity::fill`]. As long as no node has
/// moved farther than `slack` since, no node in range is missed. The caller has to compare the
/// actual distances.
#[derive(Clone, Debug)]
pub struct Vicinity {
    width: f64,
    /// Column, row, node and position at the time of filling; sorted by column, then row, then
    /// node. Three neighbouring cells of a column are therefore one consecutive range.
    cells: Vec<(i64, i64, NodeId, Position)>,
}

impl Vicinity {
    /// Creates an empty grid that tolerates movements of `slack` metres.
    pub fn new(channel: &Channel, slack: f64) -> Vicinity {
        Vicinity { width: cell_width(channel, slack), cells: Vec::new() }
    }

    /// Fills the grid again with nodes at `positions`, ordered by node number.
    pub fn fill(&mut self, positions: impl Iterator<Item = Position>) {
        self.cells.clear();
        let width = self.width;
        self.cells.extend(positions.enumerate().map(|(node, place)| {
            let (column, row) = cell(place, width);
            (column, row, NodeId(node as u16), place)
        }));
        self.cells.sort_unstable_by_key(|&(column, row, node, _)| (column, row, node));
    }

    /// Nodes that may be in sensing range of `place`, including nodes at `place` itself.
    pub fn near(&self, place: Position) -> impl Iterator<Item = NodeId> {
        let (column, row) = cell(place, self.width);
        // A cell is as wide as reach and slack together, so a node that was farther away when the
        // grid was filled is out of reach now.
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
        // Every node has moved by less than the 50 m of slack since the grid was filled.
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
            // Two slots are used in turn, because a table must not change the table of another
            // slot.
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
        // The test would prove nothing if all nodes received each other.
        assert!((1000..10_000).contains(&entries), "{entries}");
    }
}
