//! Several dumps of single nodes as one mesh.
//!
//! Each dump names some routers, each by several names and addresses. Two of these are the same router if they share an address, or a name that only one router
//! has. Routers that reported their own links are told apart by what their dumps say of themselves: two that share a MAC address are one; a name or an IP address
//! that two of them have (the host name of an image, 192.168.1.1) says nothing.

use super::{Dump, LinkReport, OWN};
use std::collections::{BTreeMap, BTreeSet};

/// A router as one dump names it.
struct Named<'a> {
    /// Names and addresses, that of the file first if there is one.
    names: Vec<&'a str>,
    /// True if the first name is that of a file, which people gave.
    has_title: bool,
    is_witness: bool,
}

/// Routers that are found to be the same: a forest of sets.
struct Sets {
    parent: Vec<usize>,
    is_witness: Vec<bool>,
}

impl Sets {
    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// Makes one of two; two that both reported stay apart unless `surely`.
    fn join(&mut self, one: usize, other: usize, surely: bool) {
        let (one, other) = (self.root(one), self.root(other));
        let (first, second) = (one.min(other), one.max(other));
        if first != second && (surely || !(self.is_witness[first] && self.is_witness[second])) {
            self.parent[second] = first;
            self.is_witness[first] |= self.is_witness[second];
        }
    }
}

fn is_mac(name: &str) -> bool {
    name.len() == 17 && name.split(':').count() == 6
}

/// One mesh of several dumps, each with a name for the node that made it, such as its file's. The name is empty if there is none.
pub fn merge(dumps: &[(String, Dump)]) -> Dump {
    if let [(_, only)] = dumps {
        return only.clone();
    }
    let routers = routers(dumps);
    let mut sets =
        Sets { parent: (0..routers.len()).collect(), is_witness: routers.iter().map(|one| one.is_witness).collect() };
    join_witnesses(&routers, &mut sets);
    join_others(&routers, &mut sets);
    let roots: Vec<usize> = (0..routers.len()).map(|one| sets.root(one)).collect();
    whole(dumps, &routers, &roots)
}

/// The routers of all dumps, in their order.
fn routers(dumps: &[(String, Dump)]) -> Vec<Named<'_>> {
    let mut routers = Vec::new();
    for (file, dump) in dumps {
        // The name of a file is that of one node.
        let has_title = dump.witnesses.len() == 1 && !file.is_empty();
        let mut others: Vec<Vec<&str>> = vec![Vec::new(); dump.nodes.len()];
        dump.also.iter().for_each(|(of, name)| others[*of].push(name));
        for (node, aliases) in others.into_iter().enumerate() {
            let is_witness = dump.witnesses.contains(&node);
            let title = (has_title && is_witness).then_some(file.as_str());
            let own = Some(dump.nodes[node].as_str()).filter(|name| *name != OWN);
            let names = title.into_iter().chain(own).chain(aliases).collect();
            routers.push(Named { names, has_title: title.is_some(), is_witness });
        }
    }
    routers
}

/// Joins witnesses with one file's name, or with a MAC address in common.
fn join_witnesses(routers: &[Named<'_>], sets: &mut Sets) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, router) in routers.iter().enumerate().filter(|(_, router)| router.is_witness) {
        let titles = router.names.iter().take(usize::from(router.has_title));
        for name in titles.chain(router.names.iter().filter(|name| is_mac(name))) {
            match seen.get(name) {
                Some(&other) => sets.join(place, other, true),
                None => {
                    seen.insert(name, place);
                }
            }
        }
    }
}

/// Joins the others by every name that is not two witnesses'.
fn join_others(routers: &[Named<'_>], sets: &mut Sets) {
    let mut owners: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (place, router) in routers.iter().enumerate().filter(|(_, router)| router.is_witness) {
        for name in &router.names {
            owners.entry(name).or_default().insert(sets.root(place));
        }
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let is_of_two = |name: &str| owners.get(name).is_some_and(|owners| owners.len() > 1);
    // Those that reported know their own addresses: they come first.
    let order = [true, false]
        .into_iter()
        .flat_map(|witness| routers.iter().enumerate().filter(move |(_, router)| router.is_witness == witness));
    for (place, router) in order {
        for name in router.names.iter().filter(|name| !is_of_two(name)) {
            match seen.get(name) {
                Some(&other) => sets.join(place, other, false),
                None => {
                    seen.insert(name, place);
                }
            }
        }
    }
}

/// The mesh of the routers that are left.
fn whole(dumps: &[(String, Dump)], routers: &[Named<'_>], roots: &[usize]) -> Dump {
    let mut whole = Dump::default();
    if let Some((_, first)) = dumps.first() {
        (whole.program, whole.metric) = (first.program, first.metric);
    }
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    for witness in [true, false] {
        for (place, router) in routers.iter().enumerate().filter(|(_, router)| router.is_witness == witness) {
            let known = places.get(&roots[place]).copied();
            let node = known.unwrap_or_else(|| {
                // A name that another router has already is passed over.
                let free = router.names.iter().find(|name| whole.find(name).is_none());
                let name = free.map_or_else(|| format!("router {}", whole.nodes.len()), |name| (*name).to_owned());
                whole.node(&name)
            });
            places.insert(roots[place], node);
            if witness && !whole.witnesses.contains(&node) {
                whole.witnesses.push(node);
            }
            router.names.iter().for_each(|name| whole.also(node, name));
        }
    }
    let mut first = 0;
    for (_, dump) in dumps {
        let of = |node: usize| places[&roots[first + node]];
        let links = dump.links.iter().map(|link| LinkReport { from: of(link.from), to: of(link.to), ..*link });
        // One file's two nodes may be one node by what another file calls it: that is no link.
        whole.links.extend(links.filter(|link| link.from != link.to));
        for &(at, destination, next) in &dump.routes {
            whole.route_of((of(at), of(destination), of(next)));
        }
        whole.left_out.extend(dump.left_out.iter().cloned());
        first += dump.nodes.len();
    }
    // Both directions of a link may be known only now.
    super::quality::fill(&mut whole);
    whole
}
