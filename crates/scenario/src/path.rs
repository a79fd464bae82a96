//! Dotted paths such as `topology.hops`, `flow.transport` (of every flow) and `flow.0.transport`
//! (of the first flow).

use meshpace_settings::value::{Kind, Origin, Table, Value};

/// A dotted path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path(Vec<String>);

impl Path {
    /// Splits `text` at its dots; a part in double quotes may contain dots.
    pub fn parse(text: &str) -> Result<Path, String> {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        for c in text.trim().chars() {
            match c {
                '"' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                c => parts.last_mut().expect("starts with one part").push(c),
            }
        }
        if quoted || parts.iter().any(|part| part.is_empty() || part.chars().any(char::is_whitespace)) {
            return Err(format!("\"{text}\" is not a key: expected one such as topology.hops or flow.0.transport"));
        }
        Ok(Path(parts))
    }

    /// True if the path is exactly these parts.
    pub fn is(&self, parts: &[&str]) -> bool {
        self.0.iter().eq(parts)
    }

    /// True if the path is `part` or a key inside `part`.
    pub fn starts_with(&self, part: &str) -> bool {
        self.0.first().is_some_and(|first| first == part)
    }

    /// True if the path is `key` of one flow or of every flow.
    pub fn is_of_flow(&self, key: &str) -> bool {
        match self.0.as_slice() {
            [flow, last] => flow == "flow" && last == key,
            [flow, number, last] => flow == "flow" && number.parse::<usize>().is_ok() && last == key,
            _ => false,
        }
    }

    /// True if the path is one whole flow, or the list of all flows.
    pub fn is_whole_flow(&self) -> bool {
        match self.0.as_slice() {
            [flow] => flow == "flow",
            [flow, number] => flow == "flow" && number.parse::<usize>().is_ok(),
            _ => false,
        }
    }

    /// True if setting one path can change what the other has set. This is so if the paths are
    /// equal or if one is inside the other; `flow.x` also overlaps with `flow.0.x`.
    pub fn overlaps(&self, other: &Path) -> bool {
        let (a, b) = (self.every_flow(), other.every_flow());
        let flows_differ = match (self.flow_number(), other.flow_number()) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        };
        !flows_differ && a.iter().zip(&b).all(|(a, b)| a == b)
    }

    fn flow_number(&self) -> Option<usize> {
        match self.0.as_slice() {
            [flow, number, ..] if flow == "flow" => number.parse().ok(),
            _ => None,
        }
    }

    /// Parts of the path without the flow number.
    fn every_flow(&self) -> Vec<&str> {
        let mut parts: Vec<&str> = self.0.iter().map(String::as_str).collect();
        if self.flow_number().is_some() {
            parts.remove(1);
        }
        parts
    }

    /// Sets the value at the path, and creates missing tables.
    pub fn set(&self, root: &mut Table, origin: &Origin, value: &Value) -> Result<(), String> {
        let [first, rest @ ..] = self.0.as_slice() else { return Ok(()) };
        if first != "flow" || rest.is_empty() {
            return set_in(root, &self.0, origin, value);
        }
        let flows = match root.get_mut("flow").map(|value| &mut value.kind) {
            Some(Kind::Array(flows)) if !flows.is_empty() => flows,
            _ => return Err("the scenario has no [[flow]]".to_owned()),
        };
        let count = flows.len();
        let (chosen, rest) = match rest[0].parse::<usize>() {
            Ok(number) if number >= count => {
                let there = if count == 1 { "flow 0 alone".to_owned() } else { format!("flows 0 to {}", count - 1) };
                let every: Vec<&str> = ["flow"].into_iter().chain(rest[1..].iter().map(String::as_str)).collect();
                let every = every.join(".");
                return Err(format!("there is no flow {number}: the scenario has {there}; {every} means every flow"));
            }
            Ok(number) => (number..number + 1, &rest[1..]),
            Err(_) => (0..count, rest),
        };
        for flow in &mut flows[chosen] {
            let Kind::Table(table) = &mut flow.kind else { return Err("flow is not a list of tables".to_owned()) };
            if rest.is_empty() {
                *flow = value.clone();
            } else {
                set_in(table, rest, origin, value)?;
            }
        }
        Ok(())
    }
}

fn set_in(table: &mut Table, parts: &[String], origin: &Origin, value: &Value) -> Result<(), String> {
    let [key, rest @ ..] = parts else { return Ok(()) };
    if rest.is_empty() {
        table.set(key, origin.clone(), value.clone());
        return Ok(());
    }
    if table.get(key).is_none() {
        let empty = Value { kind: Kind::Table(Table::default()), origin: origin.clone() };
        table.set(key, origin.clone(), empty);
    }
    let inner = table.get_mut(key).expect("set above");
    spell_out(key, inner);
    match &mut inner.kind {
        Kind::Table(inner) => set_in(inner, rest, origin, value),
        _ => Err(format!("{key} is not a table, so it has no key {}", rest[0])),
    }
}

/// Turns the short form of a component, such as `transport = "tcp-ap"`, into its long form, such as
/// `{ name = "tcp-ap" }`.
fn spell_out(key: &str, value: &mut Value) {
    let inner = match key {
        "transport" => "name",
        "window" | "pacing" | "queue" | "marker" => "kind",
        _ => return,
    };
    if matches!(value.kind, Kind::String(_)) {
        let mut table = Table::default();
        table.set(inner, value.origin.clone(), value.clone());
        value.kind = Kind::Table(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    #[test]
    fn quotes_protect_dots() {
        assert!(path("sweep.\"topology.hops\"").is(&["sweep", "topology.hops"]));
        assert!(Path::parse("a..b").is_err());
        assert!(Path::parse("").is_err());
        assert!(Path::parse("\"a").is_err());
    }

    #[test]
    fn every_flow_overlaps_each_flow_but_flows_do_not_overlap_each_other() {
        assert!(path("flow.transport").overlaps(&path("flow.0.transport")));
        assert!(path("flow.transport").overlaps(&path("flow.1.transport.pacing.alpha")));
        assert!(!path("flow.0.transport").overlaps(&path("flow.1.transport")));
        assert!(!path("flow.transport").overlaps(&path("flow.segment")));
        assert!(path("topology").overlaps(&path("topology.hops")));
    }
}
