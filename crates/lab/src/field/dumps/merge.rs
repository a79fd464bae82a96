//! Several dumps of single nodes as one mesh.

use super::{Dump, OWN};

/// One mesh of several dumps, each with a name for the node that made it, such as its file's. A node is the same in two dumps if they share a name or an
/// address of it.
pub fn merge(dumps: &[(String, Dump)]) -> Dump {
    if let [(_, only)] = dumps {
        return only.clone();
    }
    let mut whole = Dump::default();
    if let Some((_, first)) = dumps.first() {
        (whole.program, whole.metric) = (first.program, first.metric);
    }
    // Those that told first: they know their own addresses.
    for (file, dump) in dumps {
        for &own in &dump.witnesses {
            // The name that people gave, and what the program calls it.
            let place = whole.witness(file);
            if dump.nodes[own] != OWN {
                whole.also(place, &dump.nodes[own]);
            }
            let addresses = dump.also.iter().filter(|(node, _)| *node == own);
            addresses.for_each(|(_, address)| whole.also(place, address));
        }
    }
    for (file, dump) in dumps {
        let places: Vec<usize> = (0..dump.nodes.len())
            .map(|node| {
                let name = if dump.nodes[node] == OWN { file } else { &dump.nodes[node] };
                let names = || dump.also.iter().filter(|(of, _)| *of == node).map(|(_, name)| name);
                // Programs on one host share its name: that is no address of another node.
                let known = std::iter::once(name).chain(names()).find_map(|name| whole.find(name));
                let place = known.unwrap_or_else(|| whole.node(name));
                names().for_each(|name| whole.also(place, name));
                place
            })
            .collect();
        let links =
            dump.links.iter().map(|link| super::Heard { from: places[link.from], to: places[link.to], ..*link });
        // One file's two nodes may be one node by what another file calls it: that is no link.
        whole.links.extend(links.filter(|link| link.from != link.to));
        let routes = dump.routes.iter().map(|&(at, destination, next)| (places[at], places[destination], places[next]));
        whole.routes.extend(routes);
    }
    whole
}
