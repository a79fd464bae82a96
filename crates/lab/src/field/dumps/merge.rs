//! Merging of several dumps of single nodes to one mesh.
//!
//! Each dump names some routers, each with several names and addresses. Two of these are the same
//! router if they share an address, or a name that not more than one reporting router has. Routers
//! that reported their own links are compared only by what their dumps say about themselves. Two of
//! them are the same if they share a MAC address or the name of the file. A host name or an IP
//! address that two of them have is ignored, since it may be that of an image, such as 192.168.1.1.

use super::{Dump, LinkReport, OWN};
use std::collections::{BTreeMap, BTreeSet};

/// A router as one dump names it.
struct Named<'a> {
    /// Names and addresses. The name of the file comes first if there is one.
    names: Vec<&'a str>,
    /// True if the first name is the name of a file, which was given by people.
    has_title: bool,
    is_witness: bool,
}

/// Sets of routers that are found to be the same, as a forest (union-find).
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

    /// Joins the sets of two routers. Two routers that both reported stay apart unless `surely`.
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

/// Merges several dumps to one mesh. Each dump comes with a name for the node that made it, such as
/// the file name. The name is empty if there is none.
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

/// Routers of all dumps, in the order of the dumps.
fn routers(dumps: &[(String, Dump)]) -> Vec<Named<'_>> {
    let mut routers = Vec::new();
    for (file, dump) in dumps {
        // The name of a file stands for a node only if the dump is that of one node.
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

/// Joins routers that reported and have the same file name or a MAC address in common.
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

/// Joins the other routers by every name that does not belong to two reporting routers.
fn join_others(routers: &[Named<'_>], sets: &mut Sets) {
    let mut owners: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (place, router) in routers.iter().enumerate().filter(|(_, router)| router.is_witness) {
        for name in &router.names {
            owners.entry(name).or_default().insert(sets.root(place));
        }
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let is_of_two = |name: &str| owners.get(name).is_some_and(|owners| owners.len() > 1);
    // Routers that reported come first, because they know their own addresses.
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

/// Builds the mesh of the routers that remain.
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
                // A name that another router already has is skipped.
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
        // Two nodes of one file may be a single router according to another file. The link between
        // them is then dropped.
        whole.links.extend(links.filter(|link| link.from != link.to));
        for &(at, destination, next) in &dump.routes {
            whole.route_of((of(at), of(destination), of(next)));
        }
        whole.left_out.extend(dump.left_out.iter().cloned());
        first += dump.nodes.len();
    }
    // The two directions of a link may come from different dumps, so the shares are computed again.
    super::quality::fill(&mut whole);
    whole
}
