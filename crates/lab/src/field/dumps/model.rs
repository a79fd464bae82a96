//! Contents of a dump: routers with their addresses, links, next hops, and the entries that were
//! left out.

use super::{KIT, OWN, TABLE};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of nodes in a dump.
pub const MAX_NODES: usize = 5_000;
/// Largest number of links in a dump, where each direction counts.
pub const MAX_LINKS: usize = 100_000;

/// Medium of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// The radio channel that all nodes share.
    Radio,
    /// A cable between two routers, which takes no air time.
    Cable,
    /// A tunnel through another network, which takes no air time.
    Tunnel,
}

/// Beginnings of the names that daemons give to tunnel interfaces.
const TUNNELS: [&str; 13] =
    ["wg", "tun", "tap", "gre", "l2tp", "fastd", "tinc", "ipip", "sit", "ppp", "ovpn", "zt", "vx_vpn"];
/// Beginnings of the names of wired interfaces in Linux, OpenWrt and Gluon.
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
    /// Medium of an interface, derived from its name. `None` if the name does not tell it.
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

    /// Name of the medium for people.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Radio => "radio",
            Medium::Cable => "cable",
            Medium::Tunnel => "tunnel",
        }
    }
}

/// Bit rate of data frames.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataRate {
    /// Rate on the air, Mbit/s.
    pub mbps: f64,
    /// True for 802.11n and later, which can send aggregates.
    pub has_aggregates: bool,
}

/// One direction of a link. Fields that the dump does not contain are `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkReport {
    /// Sender, as an index into [`Dump::nodes`].
    pub from: usize,
    /// Receiver, as an index into [`Dump::nodes`].
    pub to: usize,
    /// Share of the data frames that arrive when each is sent once: above 0, at most 1.
    pub delivery: Option<f64>,
    /// Quality of the link in B.A.T.M.A.N. IV, TQ / 255: a share of 0 to 1. It is lower if the
    /// other direction has a high loss (`dumps::quality`).
    pub tq: Option<f64>,
    /// Cost that the mesh's routing adds up: above 0, in its own unit.
    pub cost: Option<f64>,
    /// Goodput of the link alone, Mbit/s, either measured or as the program expects it.
    pub mbps: Option<f64>,
    /// Bit rate of the sender's data frames.
    pub rate: Option<DataRate>,
    /// Signal-to-noise ratio, dB.
    pub snr_db: Option<f64>,
    /// Medium of the link.
    pub medium: Option<Medium>,
}

/// Metric by which the mesh chooses routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metric {
    /// Smallest sum of ETX.
    #[default]
    Etx,
    /// Largest product of TQ, with the hop penalty of batman-adv.
    Quality,
    /// Smallest sum of another cost.
    Cost,
    /// Largest throughput, as B.A.T.M.A.N. V computes it.
    Throughput,
    /// The metric is not known. Routes with the fewest hops are assumed.
    Hops,
}

/// An entry of a dump that was not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Line of the entry. The file name is put before it once it is known.
    pub place: String,
    /// Reason why it was not used.
    pub why: String,
}

/// A dump of the links of a mesh.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dump {
    /// Names of the routers, in the order in which they first occur.
    pub nodes: Vec<String>,
    /// Reports on directions of links. One direction has several reports if several programs or
    /// nodes report on it.
    pub links: Vec<LinkReport>,
    /// Metric by which the mesh chooses routes.
    pub metric: Metric,
    /// Next hops that nodes reported: the node, the destination, the next hop.
    pub routes: Vec<(usize, usize, usize)>,
    /// Nodes that reported their own links. Empty if the dump covers the whole mesh.
    pub witnesses: Vec<usize>,
    /// Name of the program that wrote the dump.
    pub program: &'static str,
    /// Other names and addresses of nodes, each with the node's index.
    pub also: Vec<(usize, String)>,
    /// Entries that could not be used.
    pub left_out: Vec<LeftOut>,
    /// Index of each node by its names and addresses.
    pub(in crate::field) index: BTreeMap<String, usize>,
    /// The entries of `routes`, for finding duplicates.
    pub(in crate::field) known_routes: BTreeSet<(usize, usize, usize)>,
}

impl Dump {
    /// Creates an empty dump of a program.
    pub(in crate::field) fn of(program: &'static str, metric: Metric) -> Dump {
        Dump { program, metric, ..Dump::default() }
    }

    /// Node with this name or address.
    pub fn find(&self, name: &str) -> Option<usize> {
        // A dump that was built by hand has no index.
        let by_hand = || self.nodes.iter().position(|known| known == name).filter(|_| self.index.is_empty());
        self.index.get(name).copied().or_else(by_hand)
    }

    /// Node with this name or address. It is added if there is none.
    pub(in crate::field) fn node(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.nodes.push(name.to_owned());
            self.index.insert(name.to_owned(), self.nodes.len() - 1);
            self.nodes.len() - 1
        })
    }

    /// Notes another name of a node. A name that already belongs to a node stays with that node.
    pub(in crate::field) fn also(&mut self, node: usize, name: &str) {
        if self.find(name).is_none() && !name.is_empty() {
            self.also.push((node, name.to_owned()));
            self.index.insert(name.to_owned(), node);
        }
    }

    /// Notes that the node called `name` reported its own links.
    pub(in crate::field) fn witness(&mut self, name: &str) -> usize {
        let node = self.node(name);
        if !self.witnesses.contains(&node) {
            self.witnesses.push(node);
        }
        node
    }

    /// Notes the next hop from a node towards a destination.
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

    /// Notes the entry as left out if `read` is an error.
    pub(super) fn take(&mut self, place: impl ToString, read: Result<(), String>) {
        if let Err(why) = read {
            self.leave_out(place, why);
        }
    }

    /// Adds a report on one direction of a link. A share, a rate or a cost of zero means that
    /// nothing arrives, so there is no link.
    pub(super) fn report(&mut self, from: &str, to: &str, report: LinkReport) -> Result<(), String> {
        if from.is_empty() || to.is_empty() {
            return Err("a link lacks the name of one end".to_owned());
        }
        let (from, to) = (self.node(from), self.node(to));
        if from == to {
            return Err(format!("a link connects \"{}\" with itself", self.nodes[from]));
        }
        let shares = [report.delivery, report.tq];
        if let Some(share) = shares.into_iter().flatten().find(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("{share} is not a delivery ratio (0 to 1)"));
        }
        let rate = report.rate.map(|rate| rate.mbps);
        let numbers = [report.mbps, report.cost, rate];
        if let Some(number) = numbers.into_iter().flatten().find(|number| !(0.0..f64::MAX).contains(number)) {
            return Err(format!("expected a number above 0, found {number}"));
        }
        if shares.contains(&Some(0.0)) || numbers.contains(&Some(0.0)) {
            return Err(format!(
                "nothing arrives from {} at {}, so this is not a link",
                self.nodes[from], self.nodes[to]
            ));
        }
        self.links.push(LinkReport { from, to, ..report });
        Ok(())
    }

    /// Puts the file's name before the places of entries that were left out.
    pub fn in_file(mut self, file: &str) -> Dump {
        self.left_out.iter_mut().for_each(|entry| entry.place = format!("{file}:{}", entry.place));
        self
    }

    /// True if the goodput of the links was measured. Otherwise it is what a program expects.
    pub fn is_measured(&self) -> bool {
        [TABLE, KIT].contains(&self.program)
    }

    /// Medium of the link between two nodes. Reports without a medium are ignored. If no report has
    /// one, the link is taken to be radio.
    pub fn medium(&self, one: usize, other: usize) -> Medium {
        let ends = [(one, other), (other, one)];
        let mut known =
            self.links.iter().filter(|link| ends.contains(&(link.from, link.to))).filter_map(|link| link.medium);
        known.next().unwrap_or(Medium::Radio)
    }

    /// Media of all links that are not radio, by the two nodes, the lower number first.
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

    /// The same mesh with only the links between `nodes`.
    pub fn among(&self, nodes: &BTreeSet<usize>) -> Dump {
        let links =
            self.links.iter().filter(|link| nodes.contains(&link.from) && nodes.contains(&link.to)).copied().collect();
        Dump { links, ..self.clone() }
    }

    /// Number of nodes that have a link.
    pub fn linked(&self) -> usize {
        self.links.iter().flat_map(|link| [link.from, link.to]).collect::<BTreeSet<usize>>().len()
    }

    /// Sentence on the nodes whose own dumps are missing. `None` if the dump covers the whole mesh,
    /// or all nodes reported.
    pub fn missing(&self) -> Option<String> {
        let silent = self.nodes.len() - self.witnesses.len();
        if self.witnesses.is_empty() || silent == 0 {
            return None;
        }
        let (program, told) = (self.program, self.witnesses.len());
        let whose = match &self.witnesses[..] {
            [one] => format!("this is a dump of {program} from one node ({})", self.nodes[*one]),
            _ => format!("these are dumps of {program} from {told} nodes"),
        };
        let links = self.linked();
        Some(format!(
            "{whose}; of the {} nodes in it, {links} have links; run it on the other {silent} too, and give all files{}",
            self.nodes.len(),
            self.unknown_addresses().map(|hint| format!("; {hint}")).unwrap_or_default()
        ))
    }

    /// Sentence for the case that several routers reported, but one of them has no link to any
    /// other of these. Its neighbours may be the same routers under other addresses.
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
            "none of the addresses in {} belongs to another dump: put the output of {command} before each dump, which shows the addresses of its router",
            self.nodes[*apart]
        ))
    }

    /// Adds a router's own addresses that stand in front of the dump of one node, in the output of
    /// `ip -o link`, `ip -o addr` and `iw dev`.
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

    /// True if a router that reported has neither a name nor an address.
    pub fn is_anonymous(&self) -> bool {
        let named = |node: &usize| self.nodes[*node] != OWN || self.also.iter().any(|(of, _)| of == node);
        !self.witnesses.iter().all(named)
    }
}
