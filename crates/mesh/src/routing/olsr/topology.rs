//! Topology set: the links that other nodes advertise (RFC 3626, section 9.5).
//!
//! Departure: the sequence number of an advertiser is remembered for as long as its last message is
//! valid, even if that message listed no neighbour. An older message that was delayed can therefore
//! not restore withdrawn links.

use super::message::{TOP_HOLD_TIME, Tc};
use super::routes::Edge;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// Links that all nodes have advertised.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    advertisers: BTreeMap<NodeId, Advertiser>,
}

#[derive(Clone, Debug)]
struct Advertiser {
    ansn: u16,
    until: Time,
    /// Advertised neighbours, in ascending order.
    neighbours: Vec<Advertised>,
}

#[derive(Clone, Debug)]
struct Advertised {
    node: NodeId,
    /// Cost of the link; `None` if the link cannot be used.
    cost: Option<u32>,
    until: Time,
}

/// True if sequence number `a` is newer than `b`, with wrap-around at 16 bits (section 19).
fn newer(a: u16, b: u16) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

impl Topology {
    /// Handles a message of `originator`; `cost` computes the cost of its links. Returns whether a
    /// route may have changed.
    pub fn update(
        &mut self,
        now: Time,
        originator: NodeId,
        tc: &Tc,
        cost: impl Fn(&super::message::Listed) -> Option<u32>,
    ) -> bool {
        let until = now + TOP_HOLD_TIME;
        let advertiser = self.advertisers.entry(originator).or_insert_with(|| Advertiser {
            ansn: tc.ansn,
            until,
            neighbours: Vec::new(),
        });
        if newer(advertiser.ansn, tc.ansn) {
            return false;
        }
        let mut changed = false;
        // The parts of one list carry the same sequence number, so the entries of the other parts
        // are kept.
        let renewed = newer(tc.ansn, advertiser.ansn);
        let old = if renewed { core::mem::take(&mut advertiser.neighbours) } else { Vec::new() };
        advertiser.ansn = tc.ansn;
        advertiser.until = until;
        for listed in tc.list() {
            let new = Advertised { node: listed.node, cost: cost(listed), until };
            match advertiser.neighbours.binary_search_by_key(&listed.node, |known| known.node) {
                Ok(at) => {
                    changed |= advertiser.neighbours[at].cost != new.cost;
                    advertiser.neighbours[at] = new;
                }
                Err(at) => {
                    changed |= !renewed;
                    advertiser.neighbours.insert(at, new);
                }
            }
        }
        let new = advertiser.neighbours.iter().map(|known| (known.node, known.cost));
        changed | (renewed && !new.eq(old.iter().map(|known| (known.node, known.cost))))
    }

    /// Removes entries whose validity has ended. Returns whether a route may have changed.
    pub fn expire(&mut self, now: Time) -> bool {
        let mut changed = false;
        self.advertisers.retain(|_, advertiser| {
            advertiser.neighbours.retain(|known| {
                changed |= known.until <= now;
                known.until > now
            });
            advertiser.until > now
        });
        changed
    }

    /// Earliest end of a validity.
    pub fn next_expiry(&self) -> Time {
        let neighbours = self.advertisers.values().flat_map(|advertiser| &advertiser.neighbours);
        let neighbours = neighbours.map(|known| known.until);
        self.advertisers.values().map(|advertiser| advertiser.until).chain(neighbours).min().unwrap_or(Time::NEVER)
    }

    /// Usable links, from the advertiser to the advertised neighbour.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.advertisers.iter().flat_map(|(&from, advertiser)| {
            let usable = advertiser.neighbours.iter();
            usable.filter_map(move |known| known.cost.map(|cost| Edge { from, to: known.node, cost }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Listed;
    use super::*;

    const S: u64 = 1_000_000_000;

    fn tc(ansn: u16, nodes: &[u16]) -> Tc {
        let list: Vec<_> = nodes.iter().map(|&n| Listed { node: NodeId(n), quality: 255, reverse: 255 }).collect();
        Tc::parts(ansn, &list).next().unwrap()
    }

    fn update_changes_routes(topology: &mut Topology, seconds: u64, ansn: u16, nodes: &[u16]) -> bool {
        topology.update(Time(seconds * S), NodeId(7), &tc(ansn, nodes), |_| Some(1))
    }

    fn known(topology: &Topology) -> Vec<u16> {
        topology.edges().map(|edge| edge.to.0).collect()
    }

    #[test]
    fn a_newer_list_replaces_and_a_part_of_the_same_adds() {
        let mut topology = Topology::default();
        assert!(update_changes_routes(&mut topology, 0, 4, &[3, 1]));
        assert!(!update_changes_routes(&mut topology, 1, 4, &[1, 3]), "nothing new");
        assert!(update_changes_routes(&mut topology, 1, 4, &[2]));
        assert_eq!(known(&topology), [1, 2, 3]);
        assert!(!update_changes_routes(&mut topology, 2, 5, &[1, 2, 3]), "a new number alone changes no route");
        assert!(update_changes_routes(&mut topology, 2, 6, &[2]));
        assert_eq!(known(&topology), [2]);
        assert!(!update_changes_routes(&mut topology, 3, 5, &[1]), "older");
        assert!(update_changes_routes(&mut topology, 3, 7, &[]));
        assert!(!update_changes_routes(&mut topology, 4, 6, &[2]), "an older one cannot undo a withdrawal");
        assert_eq!(known(&topology), []);
    }

    #[test]
    fn numbers_wrap() {
        assert!(newer(0, u16::MAX) && newer(5, u16::MAX - 5) && !newer(u16::MAX, 0) && !newer(3, 3));
    }

    #[test]
    fn what_is_not_repeated_is_valid_for_fifteen_seconds() {
        let mut topology = Topology::default();
        update_changes_routes(&mut topology, 0, 1, &[1, 2]);
        update_changes_routes(&mut topology, 5, 1, &[2]);
        assert_eq!(topology.next_expiry(), Time(15 * S));
        assert!(!topology.expire(Time(15 * S - 1)));
        assert!(topology.expire(Time(15 * S)));
        assert_eq!((known(&topology), topology.next_expiry()), (alloc::vec![2], Time(20 * S)));
        assert!(topology.expire(Time(20 * S)));
        assert_eq!(topology.next_expiry(), Time::NEVER);
    }
}
