//! Fixed shortest paths by hops, without messages and failures.
//!
//! The paths are computed once, over the links that the caller gives, and only for the destinations
//! that flows use: one breadth-first search and 4 bytes per node for each. Among next hops at equal
//! distance, the lowest node number is chosen, so that the result depends on the links alone.

use super::actions::{Actions, DropReason};
use crate::packet::Packet;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};

/// Stands for a destination without a tree, a node without a next hop, and an unknown distance.
const NONE: u16 = u16::MAX;

/// Shortest-path trees of a mesh towards the destinations in use.
#[derive(Clone, Debug)]
pub struct StaticRoutes {
    /// For each node as destination, the index of its tree.
    tree_of: Vec<u16>,
    /// One tree per destination, in the order in which the destinations were given.
    trees: Vec<Tree>,
}

/// Shortest paths of all nodes to one destination.
#[derive(Clone, Debug)]
struct Tree {
    /// For each node, the next hop towards the destination.
    next: Vec<u16>,
    /// For each node, the number of hops to the destination.
    hops: Vec<u16>,
}

impl StaticRoutes {
    /// Computes the paths to `destinations`. `neighbours[n]` lists the nodes with which node `n`
    /// can exchange frames (for the two-ray radio: within 250 m), in any order. Links are assumed
    /// to work in both directions.
    ///
    /// # Panics
    /// If a node number is not below `neighbours.len()`, which a checked scenario excludes.
    pub fn new(neighbours: &[Vec<NodeId>], destinations: impl IntoIterator<Item = NodeId>) -> Self {
        let mut routes = StaticRoutes { tree_of: vec![NONE; neighbours.len()], trees: Vec::new() };
        for destination in destinations {
            let slot = &mut routes.tree_of[destination.index()];
            if *slot == NONE {
                *slot = routes.trees.len() as u16;
                routes.trees.push(Tree::new(neighbours, destination));
            }
        }
        routes
    }

    /// Neighbour to which `from` sends packets for `to`. `None` if there is no path, if `to` was
    /// not among the given destinations, or if `from` is `to`.
    #[inline]
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        let next = self.tree(to)?.next[from.index()];
        (next != NONE).then_some(NodeId(next))
    }

    /// Number of hops from `from` to `to`; 0 if they are the same node. `None` if there is no path,
    /// or if `to` was not among the given destinations.
    #[inline]
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u16> {
        let hops = self.tree(to)?.hops[from.index()];
        (hops != NONE).then_some(hops)
    }

    /// Forwards or drops a packet that is not for this node. `previous_hop` is `None` if the packet
    /// comes from this node's own transport. Otherwise its time to live is decremented here.
    #[inline]
    pub fn on_packet<P: Packet, M>(
        &self,
        node: NodeId,
        mut packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, M>,
    ) {
        if previous_hop.is_some() && !packet.decrement_ttl() {
            return out.drop_packet(packet, DropReason::TtlExpired);
        }
        match self.next_hop(node, packet.destination()) {
            Some(next_hop) => out.forward(packet, next_hop, Duration::ZERO),
            None => out.drop_packet(packet, DropReason::NoRoute),
        }
    }

    /// Tree towards `to`; `None` if it was not among the given destinations.
    #[inline]
    fn tree(&self, to: NodeId) -> Option<&Tree> {
        self.trees.get(usize::from(*self.tree_of.get(to.index())?))
    }
}

impl Tree {
    fn new(neighbours: &[Vec<NodeId>], destination: NodeId) -> Self {
        let nodes = neighbours.len();
        let mut tree = Tree { next: vec![NONE; nodes], hops: vec![NONE; nodes] };
        let mut reached = VecDeque::from([destination]);
        tree.hops[destination.index()] = 0;
        while let Some(node) = reached.pop_front() {
            let hops = tree.hops[node.index()] + 1;
            for &neighbour in &neighbours[node.index()] {
                let at = neighbour.index();
                if tree.hops[at] == NONE {
                    tree.hops[at] = hops;
                    reached.push_back(neighbour);
                }
                // Nodes at one distance are not visited in the order of their numbers, so the
                // minimum is taken.
                if tree.hops[at] == hops {
                    tree.next[at] = tree.next[at].min(node.0);
                }
            }
        }
        tree
    }
}

/// Number of hops between single pairs of nodes: a breadth-first search that ends early, with
/// memory that is reused by further searches.
#[derive(Clone, Debug, Default)]
pub struct HopCount {
    /// Number of the search in which each node was reached last.
    seen: Vec<u32>,
    search: u32,
    /// Nodes at the current distance.
    frontier: Vec<NodeId>,
    /// Nodes at the next distance.
    next: Vec<NodeId>,
}

impl HopCount {
    /// Number of hops from `from` to `to` over the links of `neighbours`; 0 if they are the same
    /// node. `None` if there is no path with at most `max_hops` hops.
    pub fn between(&mut self, neighbours: &[Vec<NodeId>], from: NodeId, to: NodeId, max_hops: u64) -> Option<u64> {
        if self.seen.len() != neighbours.len() || self.search == u32::MAX {
            self.seen = vec![0; neighbours.len()];
            self.search = 0;
        }
        self.search += 1;
        self.seen[from.index()] = self.search;
        self.frontier.clear();
        self.frontier.push(from);
        let mut hops = 0;
        while !self.frontier.is_empty() {
            if self.seen[to.index()] == self.search {
                return Some(hops);
            }
            if hops == max_hops {
                return None;
            }
            hops += 1;
            self.next.clear();
            for node in &self.frontier {
                for &neighbour in &neighbours[node.index()] {
                    if self.seen[neighbour.index()] != self.search {
                        self.seen[neighbour.index()] = self.search;
                        self.next.push(neighbour);
                    }
                }
            }
            core::mem::swap(&mut self.frontier, &mut self.next);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds neighbour lists, the highest number first, so that their order cannot help.
    fn graph(nodes: usize, links: &[(u16, u16)]) -> Vec<Vec<NodeId>> {
        let mut lists = vec![Vec::new(); nodes];
        for &(a, b) in links {
            lists[usize::from(a)].push(NodeId(b));
            lists[usize::from(b)].push(NodeId(a));
        }
        for list in &mut lists {
            list.sort_by(|a, b| b.cmp(a));
        }
        lists
    }

    #[test]
    fn a_chain_leads_along_itself() {
        let links: Vec<_> = (0..9).map(|n| (n, n + 1)).collect();
        let routes = StaticRoutes::new(&graph(10, &links), [NodeId(9), NodeId(0), NodeId(9)]);
        for n in 0..9 {
            assert_eq!(routes.next_hop(NodeId(n), NodeId(9)), Some(NodeId(n + 1)));
            assert_eq!(routes.hops(NodeId(n), NodeId(9)), Some(9 - n));
            assert_eq!(routes.next_hop(NodeId(n + 1), NodeId(0)), Some(NodeId(n)));
        }
        assert_eq!(routes.next_hop(NodeId(9), NodeId(9)), None);
        assert_eq!(routes.hops(NodeId(9), NodeId(9)), Some(0));
        assert_eq!(routes.next_hop(NodeId(0), NodeId(5)), None, "not asked for");
    }

    #[test]
    fn equal_distances_go_to_the_lowest_number() {
        // Node 5 reaches 0 over 4-1 or 3-2, both with three hops; the search meets 2 and 4 before 1
        // and 3.
        let routes = StaticRoutes::new(&graph(6, &[(0, 2), (0, 1), (1, 4), (2, 3), (4, 5), (3, 5)]), [NodeId(0)]);
        assert_eq!(routes.hops(NodeId(5), NodeId(0)), Some(3));
        assert_eq!(routes.next_hop(NodeId(5), NodeId(0)), Some(NodeId(3)));
        // In the opposite direction, the tie is at the common neighbour of nodes 3 and 4.
        let routes = StaticRoutes::new(&graph(4, &[(0, 2), (0, 1), (1, 3), (2, 3)]), [NodeId(0)]);
        assert_eq!(routes.next_hop(NodeId(3), NodeId(0)), Some(NodeId(1)));
    }

    #[test]
    fn hops_between_pairs_are_those_of_the_trees() {
        // The graph is a ring of ten nodes with a chord, and two separate nodes.
        let mut links: Vec<_> = (0..10).map(|n| (n, (n + 1) % 10)).collect();
        links.extend([(0, 5), (10, 11)]);
        let graph = graph(12, &links);
        let routes = StaticRoutes::new(&graph, (0..12).map(NodeId));
        let mut count = HopCount::default();
        for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (NodeId(from), NodeId(to)))) {
            let expected = routes.hops(from, to).map(u64::from);
            assert_eq!(count.between(&graph, from, to, u64::MAX), expected, "{from:?} {to:?}");
            assert_eq!(count.between(&graph, from, to, 2), expected.filter(|&hops| hops <= 2), "{from:?} {to:?}");
        }
        assert_eq!(count.between(&graph, NodeId(0), NodeId(7), 9), Some(3), "worked by hand: 0, 9, 8, 7");
    }

    #[test]
    fn what_is_not_connected_has_no_way() {
        let routes = StaticRoutes::new(&graph(4, &[(0, 1), (2, 3)]), [NodeId(3)]);
        assert_eq!(routes.next_hop(NodeId(0), NodeId(3)), None);
        assert_eq!(routes.hops(NodeId(0), NodeId(3)), None);
        assert_eq!(routes.hops(NodeId(2), NodeId(3)), Some(1));
    }
}
