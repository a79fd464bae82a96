//! Link sensing and neighbourhood: the neighbours whose HELLOs are received, the symmetric
//! neighbours, the nodes two hops away, and the neighbours that have chosen this node as a relay
//! (RFC 3626, sections 7.1, 8.1, 8.2, 8.4, 8.5; link-layer notification: 13).
//!
//! A link is symmetric while a HELLO of the last 6 s contains this node. Hysteresis (14) is off, as
//! in the testbed.

use super::config::OlsrMetric;
use super::message::{Hello, LinkCode, Listed, NEIGHB_HOLD_TIME};
use super::mpr;
use super::quality::{Quality, etx};
use super::routes::Edge;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// Link to a neighbour. The times are those of the link tuple in section 4.2.1.
#[derive(Clone, Debug)]
struct Link {
    /// L_SYM_time: time until which the link counts as symmetric.
    symmetric_until: Time,
    /// L_ASYM_time: time until which the link counts as asymmetric, because HELLOs of the neighbour
    /// were received.
    heard_until: Time,
    /// L_time: time at which the link is removed.
    until: Time,
    /// L_LOST_LINK_TIME: time until which the link counts as lost after a failure reported by the
    /// MAC.
    lost_until: Time,
    /// True if the link was symmetric according to these times at the last update.
    symmetric: bool,
    /// Delivery ratio of the neighbour's HELLOs at this node.
    quality: Quality,
    /// Delivery ratio of this node's HELLOs at the neighbour, as the neighbour reports it, in
    /// 1/255.
    reverse: u8,
}

impl Link {
    /// True if the times of the link make it symmetric at `now`.
    fn is_symmetric(&self, now: Time) -> bool {
        now < self.symmetric_until && now >= self.lost_until
    }

    /// Link code with which a HELLO lists the link.
    fn code(&self, now: Time, is_relay: bool) -> LinkCode {
        if now < self.lost_until {
            LinkCode::Lost
        } else if now < self.symmetric_until {
            if is_relay { LinkCode::Relay } else { LinkCode::Symmetric }
        } else if now < self.heard_until {
            LinkCode::Asymmetric
        } else {
            LinkCode::Lost
        }
    }
}

/// Changes caused by a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Change {
    /// True if neighbours, two-hop neighbours or costs changed, so that relays and routes must be
    /// computed again.
    pub neighbourhood: bool,
    /// True if the set of selectors changed.
    pub selectors: bool,
    /// True if a selector was lost together with its link.
    pub selector_lost: bool,
}

/// Links and neighbourhood of a node.
#[derive(Clone, Debug)]
pub(super) struct Links {
    me: NodeId,
    metric: OlsrMetric,
    links: BTreeMap<NodeId, Link>,
    /// Links (neighbour, node) of neighbours to nodes two hops away, with the end of their validity
    /// and their cost. The cost is `None` if the link cannot be used.
    two_hop: BTreeMap<(NodeId, NodeId), (Time, Option<u32>)>,
    /// Chosen relays, ascending.
    relays: Vec<NodeId>,
    /// MPR selectors with the end of their validity.
    selectors: BTreeMap<NodeId, Time>,
}

impl Links {
    pub fn new(me: NodeId, metric: OlsrMetric) -> Self {
        Links {
            me,
            metric,
            links: BTreeMap::new(),
            two_hop: BTreeMap::new(),
            relays: Vec::new(),
            selectors: BTreeMap::new(),
        }
    }

    /// Cost of a link of a message; `None` if the link cannot be used.
    pub fn cost_of(metric: OlsrMetric, listed: &Listed) -> Option<u32> {
        match metric {
            OlsrMetric::Hops => Some(1),
            OlsrMetric::Etx => etx(listed.quality, listed.reverse),
        }
    }

    fn cost(&self, link: &Link) -> Option<u32> {
        Self::cost_of(self.metric, &Listed { node: self.me, quality: link.quality.ratio(), reverse: link.reverse })
    }

    /// True if the link to `neighbour` is symmetric.
    pub fn is_symmetric(&self, neighbour: NodeId) -> bool {
        self.links.get(&neighbour).is_some_and(|link| link.symmetric)
    }

    /// True if `neighbour` has chosen this node as a relay.
    pub fn is_selector(&self, neighbour: NodeId) -> bool {
        self.selectors.contains_key(&neighbour)
    }

    /// Chosen relays, ascending.
    pub fn relays(&self) -> &[NodeId] {
        &self.relays
    }

    /// Handles a HELLO of `from`.
    pub fn on_hello(&mut self, now: Time, from: NodeId, hello: &Hello) -> Change {
        let mut change = Change::default();
        let link = self.links.entry(from).or_insert_with(|| Link {
            symmetric_until: Time::ZERO,
            heard_until: Time::ZERO,
            until: Time::ZERO,
            lost_until: Time::ZERO,
            symmetric: false,
            quality: Quality::new(),
            reverse: 0,
        });
        let before = (link.quality.ratio(), link.reverse);
        link.heard_until = now + NEIGHB_HOLD_TIME;
        link.quality.received(now);
        let own_entry = hello.iter().find(|(_, listed)| listed.node == self.me);
        match own_entry {
            Some((LinkCode::Lost, _)) => link.symmetric_until = Time::ZERO,
            Some((_, listed)) => {
                link.symmetric_until = now + NEIGHB_HOLD_TIME;
                link.until = link.symmetric_until + NEIGHB_HOLD_TIME;
                link.reverse = listed.quality;
            }
            None => {}
        }
        link.until = link.until.max(link.heard_until);
        if self.metric == OlsrMetric::Etx {
            change.neighbourhood = before != (link.quality.ratio(), link.reverse);
        }
        self.settle(now, from, &mut change);
        if !self.is_symmetric(from) {
            return change;
        }
        for (code, listed) in hello.iter().filter(|(_, listed)| listed.node != self.me) {
            let key = (from, listed.node);
            if code.is_symmetric() {
                let cost = Self::cost_of(self.metric, &listed);
                let old = self.two_hop.insert(key, (now + NEIGHB_HOLD_TIME, cost));
                change.neighbourhood |= old.is_none_or(|(_, old)| old != cost);
            } else {
                change.neighbourhood |= self.two_hop.remove(&key).is_some();
            }
        }
        if own_entry.is_some_and(|(code, _)| code == LinkCode::Relay) {
            change.selectors |= self.selectors.insert(from, now + NEIGHB_HOLD_TIME).is_none();
        }
        change
    }

    /// Handles a failure to reach `neighbour` that the MAC reported.
    pub fn on_failure(&mut self, now: Time, neighbour: NodeId) -> Change {
        let mut change = Change::default();
        if let Some(link) = self.links.get_mut(&neighbour) {
            link.lost_until = now + NEIGHB_HOLD_TIME;
            link.symmetric_until = Time::ZERO;
            link.until = link.until.max(link.lost_until);
            self.settle(now, neighbour, &mut change);
        }
        change
    }

    /// Updates one link and the sets that depend on it, according to the times of the link.
    fn settle(&mut self, now: Time, neighbour: NodeId, change: &mut Change) {
        let Some(link) = self.links.get_mut(&neighbour) else { return };
        let symmetric = link.is_symmetric(now);
        change.neighbourhood |= symmetric != link.symmetric;
        link.symmetric = symmetric;
        if link.until <= now {
            self.links.remove(&neighbour);
        }
        if !symmetric {
            let before = self.two_hop.len();
            self.two_hop.retain(|&(via, _), _| via != neighbour);
            change.neighbourhood |= self.two_hop.len() != before;
            if self.selectors.remove(&neighbour).is_some() {
                change.selectors = true;
                change.selector_lost = true;
            }
        }
    }

    /// Removes entries whose validity has ended.
    pub fn expire(&mut self, now: Time) -> Change {
        let mut change = Change::default();
        let mut due = Vec::new();
        for (&neighbour, link) in &mut self.links {
            if link.quality.settle(now) && self.metric == OlsrMetric::Etx {
                change.neighbourhood = true;
            }
            if link.is_symmetric(now) != link.symmetric || link.until <= now {
                due.push(neighbour);
            }
        }
        for neighbour in due {
            self.settle(now, neighbour, &mut change);
        }
        let before = (self.two_hop.len(), self.selectors.len());
        self.two_hop.retain(|_, (until, _)| *until > now);
        self.selectors.retain(|_, until| *until > now);
        change.neighbourhood |= self.two_hop.len() != before.0;
        change.selectors |= self.selectors.len() != before.1;
        change
    }

    /// Earliest time after `now` at which [`Self::expire`] may find a change.
    pub fn next_expiry(&self, now: Time) -> Time {
        let etx = self.metric == OlsrMetric::Etx;
        let links = self.links.values().flat_map(|link| {
            let missed = if etx { link.quality.next_miss() } else { Time::NEVER };
            [link.symmetric_until, link.until, link.lost_until, missed]
        });
        let two_hop = self.two_hop.values().map(|&(until, _)| until);
        links.chain(two_hop).chain(self.selectors.values().copied()).filter(|&at| at > now).min().unwrap_or(Time::NEVER)
    }

    /// Chooses the relays again.
    pub fn choose_relays(&mut self) {
        let symmetric = self.links.iter().filter(|(_, link)| link.symmetric);
        self.relays = match self.metric {
            OlsrMetric::Hops => {
                let neighbours: BTreeSet<_> = symmetric.map(|(&node, _)| node).collect();
                mpr::by_hops(&neighbours, &self.two_hop.keys().copied().collect())
            }
            OlsrMetric::Etx => {
                let neighbours = symmetric.filter_map(|(&node, link)| Some((node, self.cost(link)?))).collect();
                let two_hop = self.two_hop.iter().filter_map(|(&link, &(_, cost))| Some((link, cost?))).collect();
                mpr::by_cost(&neighbours, &two_hop)
            }
        };
    }

    /// Usable links of this node and of its neighbours.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let own = self.links.iter().filter(|(_, link)| link.symmetric);
        let own = own.filter_map(|(&to, link)| Some(Edge { from: self.me, to, cost: self.cost(link)? }));
        let two_hop = self.two_hop.iter();
        own.chain(two_hop.filter_map(|(&(from, to), &(_, cost))| Some(Edge { from, to, cost: cost? })))
    }

    /// Entry of a message of this node for a neighbour.
    fn listed(&self, node: NodeId) -> Listed {
        match (self.metric, self.links.get(&node)) {
            (OlsrMetric::Etx, Some(link)) => Listed { node, quality: link.quality.ratio(), reverse: link.reverse },
            (OlsrMetric::Etx, None) => Listed { node, quality: 0, reverse: 0 },
            (OlsrMetric::Hops, _) => Listed { node, quality: 255, reverse: 255 },
        }
    }

    /// Content of the next HELLO.
    pub fn hello(&self, now: Time) -> Vec<(LinkCode, Listed)> {
        let code = |node, link: &Link| link.code(now, self.relays.binary_search(&node).is_ok());
        self.links.iter().map(|(&node, link)| (code(node, link), self.listed(node))).collect()
    }

    /// Content of the next TC: the selectors, ascending.
    pub fn advertised(&self) -> Vec<Listed> {
        self.selectors.keys().map(|&node| self.listed(node)).collect()
    }
}
