//! Computation of routes: least cost over the known links (RFC 3626, section 10).
//!
//! RFC 3626 builds routes hop by hop from the neighbours, the two-hop neighbours and the topology
//! set, in that order. With cost 1 per link, Dijkstra's search below gives the same distances; with
//! ETX, it gives the least sum. Among routes of equal cost, the one with fewer hops is chosen, then
//! the one whose next hop has the lowest number (the RFC leaves this open).

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use meshpace_core::NodeId;

/// Route to a destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Route {
    /// Sum of the costs of the links.
    pub cost: u32,
    /// Number of links.
    pub hops: u8,
    /// First neighbour on the route.
    pub next_hop: NodeId,
}

/// Link in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// Node at which the link begins.
    pub from: NodeId,
    /// Node at which the link ends.
    pub to: NodeId,
    /// Cost of the link.
    pub cost: u32,
}

/// Routes of a node, by destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    routes: Vec<Option<Route>>,
    /// Buffers that are kept between calls to reuse their memory.
    edges: Vec<Edge>,
    heap: BinaryHeap<Reverse<(Route, NodeId)>>,
}

impl Routes {
    /// Route to `destination`; `None` if there is none.
    #[inline]
    pub fn get(&self, destination: NodeId) -> Option<Route> {
        self.routes.get(destination.index()).copied().flatten()
    }

    /// Computes all routes of node `me` from the known links, in any order, including the links of
    /// `me` itself.
    pub fn compute(&mut self, me: NodeId, links: impl Iterator<Item = Edge>) {
        self.edges.clear();
        self.edges.extend(links);
        // The links arrive in a few sorted runs, which this sort only merges.
        self.edges.sort();
        let nodes = self.edges.iter().map(|edge| edge.from.index().max(edge.to.index()) + 1).max().unwrap_or(0);
        self.routes.clear();
        self.routes.resize(nodes, None);
        self.heap.clear();
        let mut at = me;
        let mut base = None;
        loop {
            let first = self.edges.partition_point(|edge| edge.from < at);
            for edge in self.edges[first..].iter().take_while(|edge| edge.from == at) {
                let (cost, hops, next_hop) = match base {
                    None => (0, 0, edge.to),
                    Some(Route { cost, hops, next_hop }) => (cost, hops, next_hop),
                };
                let route = Route { cost: edge.cost.saturating_add(cost), hops: hops.saturating_add(1), next_hop };
                let known = &mut self.routes[edge.to.index()];
                if edge.to != me && known.is_none_or(|known| route < known) {
                    *known = Some(route);
                    self.heap.push(Reverse((route, edge.to)));
                }
            }
            // The next node has a final route. Entries for which a better route was found later are
            // skipped.
            loop {
                let Some(Reverse((route, node))) = self.heap.pop() else { return };
                if self.routes[node.index()] == Some(route) {
                    (at, base) = (node, Some(route));
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computed(me: u16, links: &[(u16, u16, u32)]) -> Routes {
        let mut routes = Routes::default();
        routes.compute(NodeId(me), links.iter().map(|&(a, b, cost)| Edge { from: NodeId(a), to: NodeId(b), cost }));
        routes
    }

    fn route(cost: u32, hops: u8, next_hop: u16) -> Option<Route> {
        Some(Route { cost, hops, next_hop: NodeId(next_hop) })
    }

    #[test]
    fn the_cheaper_detour_wins_over_the_direct_link() {
        let routes = computed(0, &[(0, 1, 9), (0, 2, 2), (2, 3, 2), (3, 1, 2), (1, 4, 1)]);
        assert_eq!(routes.get(NodeId(1)), route(6, 3, 2));
        assert_eq!(routes.get(NodeId(4)), route(7, 4, 2));
        assert_eq!((routes.get(NodeId(0)), routes.get(NodeId(9))), (None, None));
    }

    #[test]
    fn ties_go_to_fewer_hops_then_to_the_lowest_next_hop() {
        let routes = computed(5, &[(5, 3, 1), (5, 2, 1), (3, 9, 1), (2, 9, 1), (5, 1, 1), (1, 4, 0), (4, 9, 1)]);
        assert_eq!(routes.get(NodeId(9)), route(2, 2, 2));
    }

    #[test]
    fn links_count_in_their_direction_only() {
        assert_eq!(computed(0, &[(1, 0, 1), (1, 2, 1)]).get(NodeId(1)), None);
    }
}
