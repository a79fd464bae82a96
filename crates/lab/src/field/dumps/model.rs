//! What a dump says: routers with their addresses, links, next hops, and the entries that were left out.

use super::{KIT, OWN, TABLE};
use std::collections::{BTreeMap, BTreeSet};

/// The most nodes of a dump.
pub const MAX_NODES: usize = 5_000;
/// The most links of a dump, each direction counted.
pub const MAX_LINKS: usize = 100_000;

/// What a link goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// The channel that all nodes share.
    Radio,
    /// A cable between two routers, which takes no air time.
    Cable,
    /// A tunnel through another network, which takes no air time.
    Tunnel,
}

/// Names of interfaces of tunnels: the beginnings of those that daemons choose.
const TUNNELS: [&str; 13] =
    ["wg", "tun", "tap", "gre", "l2tp", "fastd", "tinc", "ipip", "sit", "ppp", "ovpn", "zt", "vx_vpn"];
/// Names of wired interfaces: the beginnings of those of Linux, OpenWrt and Gluon.
const CABLES: [&str; 14] = [
    "eth",
    "eno",
    "enp",
    "ens",
    "enx",
    "lan",
    "wan",
    "br-",
    "bond",
    "vlan",
    "vx_mesh",
    "mesh_lan",
    "mesh_wan",
    "mesh_uplink",
];

impl Medium {
    /// The medium of an interface by its name; `None` if the name says nothing.
    pub fn of_interface(name: &str) -> Option<Medium> {
        const RADIOS: [&str; 9] = ["wl", "ath", "mesh", "ibss", "adhoc", "phy", "ra", "wifi", "mon"];
        let name = name.trim().to_ascii_lowercase();
        let begins = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
        match () {
            () if name.contains("vpn") || begins(&TUNNELS) => Some(Medium::Tunnel),
            () if begins(&CABLES) || name == "mesh_other" => Some(Medium::Cable),
            () if begins(&RADIOS) => Some(Medium::Radio),
            () => None,
        }
    }

    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Radio => "radio",
            Medium::Cable => "cable",
            Medium::Tunnel => "tunnel",
        }
    }
}

/// The bit rate of data frames.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataRate {
    /// Mbit/s on the air.
    pub mbps: f64,
    /// True for 802.11n and later, whose frames may be aggregates.
    pub has_aggregates: bool,
}

/// One direction of a link. Fields that the dump does not contain are `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkReport {
    /// The sender, a place in [`Dump::nodes`].
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Share of the data frames that arrive when they are sent once, above 0, at most 1.
    pub delivery: Option<f64>,
    /// Quality of a link by B.A.T.M.A.N. IV, TQ / 255: a share of 0 to 1, less where the other
    /// direction loses much (`dumps::quality`).
    pub tq: Option<f64>,
    /// Cost that the mesh's routing adds up, above 0, in its own unit.
    pub cost: Option<f64>,
    /// Goodput of the link alone, Mbit/s, as measured or as the program expects.
    pub mbps: Option<f64>,
    /// Bit rate of the sender's data frames.
    pub rate: Option<DataRate>,
    /// Ratio of signal to noise, dB.
    pub snr_db: Option<f64>,
    /// What the link goes over.
    pub medium: Option<Medium>,
}

/// The metric by which the mesh chooses routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metric {
    /// Least sum of ETX.
    #[default]
    Etx,
    /// Largest product of TQ, with the hop penalty of batman-adv.
    Quality,
    /// Least sum of a cost of its own.
    Cost,
    /// Largest throughput, as B.A.T.M.A.N. V reckons it.
    Throughput,
    /// Nothing is told: fewest hops.
    Hops,
}

/// An entry that was not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The line, with the file before it once that is known.
    pub place: String,
    /// The reason.
    pub why: String,
}

/// A dump.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dump {
    /// Names of the routers, in the order in which they are named.
    pub nodes: Vec<String>,
    /// Reports on directions of links; several for one direction if several programs or nodes report on it.
    pub links: Vec<LinkReport>,
    /// Metric by which the mesh chooses routes.
    pub metric: Metric,
    /// Next hops that nodes told: the node, the destination, the next hop.
    pub routes: Vec<(usize, usize, usize)>,
    /// Nodes that reported their own links; empty if the dump is of the whole mesh.
    pub witnesses: Vec<usize>,
    /// Name of the program.
    pub program: &'static str,
    /// Other names and addresses of nodes.
    pub also: Vec<(usize, String)>,
    /// Entries that could not be used.
    pub left_out: Vec<LeftOut>,
    /// Nodes by their names and addresses.
    pub(in crate::field) index: BTreeMap<String, usize>,
    /// The next hops of `routes`.
    pub(in crate::field) known_routes: BTreeSet<(usize, usize, usize)>,
}

impl Dump {
    /// An empty dump of a program.
    pub(in crate::field) fn of(program: &'static str, metric: Metric) -> Dump {
        Dump { program, metric, ..Dump::default() }
    }

    /// The node of that name or address.
    pub fn find(&self, name: &str) -> Option<usize> {
        // A dump that was put together by hand has no index.
        let by_hand = || self.nodes.iter().position(|known| known == name).filter(|_| self.index.is_empty());
        self.index.get(name).copied().or_else(by_hand)
    }

    /// The node of that name or address, a new one if there is none.
    pub(in crate::field) fn node(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.index.insert(name.to_owned(), self.nodes.len() - 1);
            self.nodes.len() - 1
        })
    }

    /// Notes another name of a node. A name that another node has stays with that node.
    pub(in crate::field) fn also(&mut self, node: usize, name: &str) {
        if self.find(name).is_none() && !name.is_empty() {
            self.also.push((node, name.to_owned()));
            self.index.insert(name.to_owned(), node);
        }
    }

    /// Notes that this node reported its own links.
    pub(in crate::field) fn witness(&mut self, name: &str) -> usize {
        let node = self.node(name);
        if !self.witnesses.contains(&node) {
            self.witnesses.push(node);
        }
        node
    }

    /// Notes a next hop.
    pub(in crate::field) fn route(&mut self, at: &str, destination: &str, next: &str) {
        let hop = (self.node(at), self.node(destination), self.node(next));
        self.route_of(hop);
    }

    pub(super) fn route_of(&mut self, hop: (usize, usize, usize)) {
        if hop.0 != hop.1 && hop.0 != hop.2 && self.known_routes.insert(hop) {
            self.routes.push(hop);
        }
    }

    /// Notes an entry that cannot be used.
    pub(super) fn leave_out(&mut self, place: impl ToString, why: impl Into<String>) {
        self.left_out.push(LeftOut { place: place.to_string(), why: why.into() });
    }

    /// Notes the entry as left out if `read` failed.
    pub(super) fn take(&mut self, place: impl ToString, read: Result<(), String>) {
        if let Err(why) = read {
            self.leave_out(place, why);
        }
    }

    /// Adds a direction. A share, a rate or a cost of zero means that nothing arrives: that is no link.
    pub(super) fn report(&mut self, from: &str, to: &str, report: LinkReport) -> Result<(), String> {
        if from.is_empty() || to.is_empty() {
            return Err("a link without the name of an end".to_owned());
        }
        let (from, to) = (self.node(from), self.node(to));
        if from == to {
            return Err(format!("a link of \"{}\" with itself", self.nodes[from]));
        }
        let shares = [report.delivery, report.tq];
        if let Some(share) = shares.into_iter().flatten().find(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("{share} is no share of packets that arrive (0 to 1)"));
        }
        let rate = report.rate.map(|rate| rate.mbps);
        let numbers = [report.mbps, report.cost, rate];
        if let Some(number) = numbers.into_iter().flatten().find(|number| !(0.0..f64::MAX).contains(number)) {
            return Err(format!("expected a number above 0, found {number}"));
        }
        if shares.contains(&Some(0.0)) || numbers.contains(&Some(0.0)) {
            return Err(format!("nothing arrives from {} at {}: no link", self.nodes[from], self.nodes[to]));
        }
        self.links.push(LinkReport { from, to, ..report });
        Ok(())
    }

    /// Writes the file's name before the places of entries that were left out.
    pub fn in_file(mut self, file: &str) -> Dump {
        self.left_out.iter_mut().for_each(|entry| entry.place = format!("{file}:{}", entry.place));
        self
    }

    /// True if the goodput of its links was measured; otherwise a program expects it.
    pub fn is_measured(&self) -> bool {
        [TABLE, KIT].contains(&self.program)
    }

    /// Medium of the link between two nodes. Reports on interfaces count before those that do not know the interface; a link of which nobody knows it is radio.
    pub fn medium(&self, one: usize, other: usize) -> Medium {
        let ends = [(one, other), (other, one)];
        let mut known =
            self.links.iter().filter(|link| ends.contains(&(link.from, link.to))).filter_map(|link| link.medium);
        known.next().unwrap_or(Medium::Radio)
    }

    /// Media of all links that are not radio, by their ends, the lower number first.
    pub fn wires(&self) -> BTreeMap<(usize, usize), Medium> {
        let mut known: BTreeMap<(usize, usize), Medium> = BTreeMap::new();
        for link in &self.links {
            if let Some(medium) = link.medium {
                known.entry((link.from.min(link.to), link.from.max(link.to))).or_insert(medium);
            }
        }
        known.retain(|_, medium| *medium != Medium::Radio);
        known
    }

    /// The same mesh with the links between these nodes alone.
    pub fn among(&self, nodes: &BTreeSet<usize>) -> Dump {
        let links =
            self.links.iter().filter(|link| nodes.contains(&link.from) && nodes.contains(&link.to)).copied().collect();
        Dump { links, ..self.clone() }
    }

    /// Nodes with a link.
    pub fn linked(&self) -> usize {
        self.links.iter().flat_map(|link| [link.from, link.to]).collect::<BTreeSet<usize>>().len()
    }

    /// A sentence on the nodes whose own dumps are missing; `None` if the dump is of the whole mesh, or all nodes reported.
    pub fn missing(&self) -> Option<String> {
        let silent = self.nodes.len() - self.witnesses.len();
        if self.witnesses.is_empty() || silent == 0 {
            return None;
        }
        let (program, told) = (self.program, self.witnesses.len());
        let whose = match &self.witnesses[..] {
            [one] => format!("this dump is {program}'s of one node ({})", self.nodes[*one]),
            _ => format!("these dumps are {program}'s of {told} nodes"),
        };
        let links = self.linked();
        Some(format!(
            "{whose}: it names {} nodes, and tells of links between {links} of them; run it on the other {silent}, too, and give all files{}",
            self.nodes.len(),
            self.unknown_addresses().map(|hint| format!("; {hint}")).unwrap_or_default()
        ))
    }

    /// A sentence if some router that reported has links with nobody that reported, although several did: its neighbours may be these under other addresses.
    fn unknown_addresses(&self) -> Option<String> {
        let is_witness = |node: &usize| self.witnesses.contains(node);
        let is_apart = |&&witness: &&usize| {
            let others = self.links.iter().filter_map(|link| match (link.from, link.to) {
                (from, to) if from == witness => Some(to),
                (from, to) if to == witness => Some(from),
                _ => None,
            });
            !others.into_iter().any(|other| is_witness(&other))
        };
        let apart = self.witnesses.iter().find(is_apart).filter(|_| self.witnesses.len() > 1)?;
        let command = match self.program {
            "iw" => "`iw dev`",
            "babeld" => "`ip -o addr`",
            _ => "`ip -o link`",
        };
        Some(format!(
            "no address that {} names is one of the others: put the output of {command} before each dump, which shows the addresses of one router",
            self.nodes[*apart]
        ))
    }

    /// Addresses that the dump names besides a router's own: those of `ip -o link`, `ip -o addr` and `iw dev` in front of a dump of one node.
    pub(super) fn note_own_addresses(&mut self, text: &str) {
        let [own] = self.witnesses[..] else { return };
        for row in text.lines() {
            let words: Vec<&str> = row.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| ["link/ether", "inet", "inet6"].contains(&pair[0])) {
                let address = pair[1].split('/').next().unwrap_or_default();
                if !address.starts_with("127.") && address != "::1" {
                    self.also(own, address);
                }
            }
        }
    }

    /// True if a router that reported is known by no name or address.
    pub fn is_anonymous(&self) -> bool {
        let named = |node: &usize| self.nodes[*node] != OWN || self.also.iter().any(|(of, _)| of == node);
        !self.witnesses.iter().all(named)
    }
}
