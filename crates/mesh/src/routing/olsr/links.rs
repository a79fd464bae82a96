//! Link sensing and the neighbourhood: which neighbours are heard, which of them hear this node, which nodes are two hops away, and which
//! neighbours have chosen this node as a relay (RFC 3626, sections 7.1, 8.1, 8.2, 8.4, 8.5; link-layer notification: 13).
//!
//! A link is symmetric while a HELLO of the last 6 s names this node. Hysteresis (14) is off, as in the testbed.

use super::config::OlsrMetric;
use super::message::{Hello, LinkCode, Listed, NEIGHB_HOLD_TIME};
use super::mpr;
use super::quality::{Quality, etx};
use super::routes::Edge;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// The link to a neighbour. Times are those of the link tuple in section 4.2.1.
#[derive(Clone, Debug)]
struct Link {
    /// L_SYM_time: until when it counts as symmetric.
    symmetric_until: Time,
    /// L_ASYM_time: until when the neighbour counts as heard.
    heard_until: Time,
    /// L_time: when the link is forgotten.
    until: Time,
    /// L_LOST_LINK_TIME: until when the MAC's word holds that the link is lost.
    lost_until: Time,
    /// State by these times when they were last looked at.
    symmetric: bool,
    /// The neighbour's HELLOs that arrive here.
    quality: Quality,
    /// The share of this node's HELLOs that the neighbour says it hears, in 1/255.
    reverse: u8,
}

impl Link {
    fn is_symmetric(&self, now: Time) -> bool {
        now < self.symmetric_until && now >= self.lost_until
    }

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

/// Changes by a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Change {
    /// Neighbours, two-hop neighbours or costs: relays and routes are to be computed again.
    pub neighbourhood: bool,
    /// The set of selectors.
    pub selectors: bool,
    /// A selector was lost with its link.
    pub selector_lost: bool,
}

/// Links of a node and its neighbourhood.
#[derive(Clone, Debug)]
pub(super) struct Links {
    me: NodeId,
    metric: OlsrMetric,
    links: BTreeMap<NodeId, Link>,
    /// (neighbour, node behind it) with the end of validity and the cost of that link, None if it cannot be used.
    behind: BTreeMap<(NodeId, NodeId), (Time, Option<u32>)>,
    /// Chosen relays, ascending.
    relays: Vec<NodeId>,
    /// MPR selectors with the end of validity.
    selectors: BTreeMap<NodeId, Time>,
}

impl Links {
    pub fn new(me: NodeId, metric: OlsrMetric) -> Self {
        Links {
            me,
            metric,
            links: BTreeMap::new(),
            behind: BTreeMap::new(),
            relays: Vec::new(),
            selectors: BTreeMap::new(),
        }
    }

    /// Cost of a listed link.
    pub fn cost_of(metric: OlsrMetric, listed: &Listed) -> Option<u32> {
        match metric {
            OlsrMetric::Hops => Some(1),
            OlsrMetric::Etx => etx(listed.quality, listed.reverse),
        }
    }

    fn cost(&self, link: &Link) -> Option<u32> {
        Self::cost_of(self.metric, &Listed { node: self.me, quality: link.quality.ratio(), reverse: link.reverse })
    }

    /// True if `neighbour` and this node hear each other.
    pub fn is_symmetric(&self, neighbour: NodeId) -> bool {
        self.links.get(&neighbour).is_some_and(|link| link.symmetric)
    }

    /// True if `neighbour` has chosen this node as a relay.
    pub fn is_selector(&self, neighbour: NodeId) -> bool {
        self.selectors.contains_key(&neighbour)
    }

    /// The chosen relays, ascending.
    pub fn relays(&self) -> &[NodeId] {
        &self.relays
    }

    /// A HELLO of `from` came.
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
        let said = hello.iter().find(|(_, listed)| listed.node == self.me);
        match said {
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
                let old = self.behind.insert(key, (now + NEIGHB_HOLD_TIME, cost));
                change.neighbourhood |= old.is_none_or(|(_, old)| old != cost);
            } else {
                change.neighbourhood |= self.behind.remove(&key).is_some();
            }
        }
        if said.is_some_and(|(code, _)| code == LinkCode::Relay) {
            change.selectors |= self.selectors.insert(from, now + NEIGHB_HOLD_TIME).is_none();
        }
        change
    }

    /// The MAC could not reach `neighbour`.
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

    /// Draws the conclusions from the times of one link.
    fn settle(&mut self, now: Time, neighbour: NodeId, change: &mut Change) {
        let Some(link) = self.links.get_mut(&neighbour) else { return };
        let symmetric = link.is_symmetric(now);
        change.neighbourhood |= symmetric != link.symmetric;
        link.symmetric = symmetric;
        if link.until <= now {
            self.links.remove(&neighbour);
        }
        if !symmetric {
            let before = self.behind.len();
            self.behind.retain(|&(via, _), _| via != neighbour);
            change.neighbourhood |= self.behind.len() != before;
            if self.selectors.remove(&neighbour).is_some() {
                change.selectors = true;
                change.selector_lost = true;
            }
        }
    }

    /// Forgets what is no longer valid.
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
        let before = (self.behind.len(), self.selectors.len());
        self.behind.retain(|_, (until, _)| *until > now);
        self.selectors.retain(|_, until| *until > now);
        change.neighbourhood |= self.behind.len() != before.0;
        change.selectors |= self.selectors.len() != before.1;
        change
    }

    /// The first moment after `now` at which [`Self::expire`] may find something.
    pub fn next_expiry(&self, now: Time) -> Time {
        let etx = self.metric == OlsrMetric::Etx;
        let links = self.links.values().flat_map(|link| {
            let missed = if etx { link.quality.next_miss() } else { Time::NEVER };
            [link.symmetric_until, link.until, link.lost_until, missed]
        });
        let behind = self.behind.values().map(|&(until, _)| until);
        links.chain(behind).chain(self.selectors.values().copied()).filter(|&at| at > now).min().unwrap_or(Time::NEVER)
    }

    /// Chooses the relays anew.
    pub fn choose_relays(&mut self) {
        let symmetric = self.links.iter().filter(|(_, link)| link.symmetric);
        self.relays = match self.metric {
            OlsrMetric::Hops => {
                let neighbours: BTreeSet<_> = symmetric.map(|(&node, _)| node).collect();
                mpr::by_hops(&neighbours, &self.behind.keys().copied().collect())
            }
            OlsrMetric::Etx => {
                let neighbours = symmetric.filter_map(|(&node, link)| Some((node, self.cost(link)?))).collect();
                let behind = self.behind.iter().filter_map(|(&link, &(_, cost))| Some((link, cost?))).collect();
                mpr::by_cost(&neighbours, &behind)
            }
        };
    }

    /// The links of this node and of its neighbours, as far as they can be used.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let own = self.links.iter().filter(|(_, link)| link.symmetric);
        let own = own.filter_map(|(&to, link)| Some(Edge { from: self.me, to, cost: self.cost(link)? }));
        let behind = self.behind.iter();
        own.chain(behind.filter_map(|(&(from, to), &(_, cost))| Some(Edge { from, to, cost: cost? })))
    }

    /// The entry of this node for a neighbour.
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
