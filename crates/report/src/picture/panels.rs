//! Panels of a page: points that are drawn together, against the same axis.
//!
//! The points of a campaign need not have the same keys: each part of a joined campaign sweeps keys
//! of its own. Points that lack the key of the axis are drawn apart from the others, against an axis
//! that they have, or as bars.

use super::data::{self, Group};
use meshpace_scenario::Plot as Settings;
use serde_json::Value;

/// Key of the point that names the part of a joined campaign.
const PART: &str = "part";

/// Largest number of parts that a name lists.
const NAMED: usize = 4;

/// Points that are drawn together.
pub struct Panel<'a> {
    /// Name of the panel: values that its points have in common, in words. Empty if there is only
    /// one panel.
    pub told: String,
    /// Key of the horizontal axis. `None` if the points have bars.
    pub axis: Option<String>,
    /// Values of the axis in the order of the points, if they are names. Empty if they are numbers.
    pub names: Vec<String>,
    pub groups: Vec<&'a Group<'a>>,
}

/// Sorts points into panels. Points of different panels have different axes, or different values of
/// the keys that are neither the axis nor told apart by lines.
pub fn panels<'a>(groups: &'a [Group<'a>], settings: &Settings) -> Vec<Panel<'a>> {
    let mut apart: Vec<(Option<String>, Vec<&Group>)> = Vec::new();
    let mut named: Vec<bool> = Vec::new();
    let mut rest: Vec<&Group> = groups.iter().collect();
    while !rest.is_empty() {
        let numbers = data::axis(&rest, settings);
        let is_named = numbers.is_none();
        let axis = numbers.or_else(|| data::named_axis(&rest, settings));
        let has_axis = |group: &&Group| axis.as_ref().is_none_or(|axis| group.point.contains_key(axis));
        let (same, others): (Vec<&Group>, Vec<&Group>) = rest.into_iter().partition(has_axis);
        apart.push((axis, same));
        named.push(is_named);
        rest = others;
    }
    let mut panels = Vec::new();
    for (number, (axis, same)) in apart.iter().enumerate() {
        let others = apart.iter().enumerate().filter(|(other, _)| *other != number);
        let others: Vec<&Group> = others.flat_map(|(_, (_, groups))| groups).copied().collect();
        let name = (!others.is_empty()).then(|| Name::of(same, &others, axis.as_deref()));
        let mut found = by_values(same, axis.as_deref(), name.as_ref(), settings);
        if let Some(axis) = axis.as_deref().filter(|_| named[number]) {
            found.iter_mut().for_each(|panel| panel.names = data::names(&panel.groups, axis));
        }
        panels.extend(found);
    }
    panels
}

/// Name of all points that have the same axis.
enum Name {
    /// Their parts, to which no other point belongs.
    Parts(String),
    /// The axis.
    Axis(String),
}

impl Name {
    fn of(same: &[&Group], others: &[&Group], axis: Option<&str>) -> Name {
        match &own_parts(same, others)[..] {
            [] => Name::Axis(axis.map_or_else(|| "other points".to_owned(), |axis| format!("points with {axis}"))),
            parts => Name::Parts(listed(parts)),
        }
    }
}

/// Panels of points that have the same axis. `name` is `None` if there are no other points.
fn by_values<'a>(
    groups: &[&'a Group<'a>],
    axis: Option<&str>,
    name: Option<&Name>,
    settings: &Settings,
) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel> = Vec::new();
    for group in groups {
        let lines = settings.lines.as_deref();
        let is_common =
            |key: &str| lines.is_some_and(|lines| Some(key) != axis && !lines.iter().any(|line| line == key));
        let name = match name {
            // The values name the part already.
            Some(Name::Parts(_)) if is_common(PART) => "",
            Some(Name::Parts(name) | Name::Axis(name)) => name,
            None => "",
        };
        let values = group.values(is_common);
        let told = [name, &values].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
        match panels.iter_mut().find(|panel| panel.told == told) {
            Some(panel) => panel.groups.push(group),
            None => panels.push(Panel { told, axis: axis.map(str::to_owned), names: Vec::new(), groups: vec![group] }),
        }
    }
    panels
}

/// Names of the parts of `same`. Empty if one of them belongs to no part, or to a part of `others`.
fn own_parts<'a>(same: &[&'a Group], others: &[&Group]) -> Vec<&'a str> {
    let (own, foreign) = (parts(same), parts(others));
    if own.iter().any(|part| foreign.contains(part)) { Vec::new() } else { own }
}

/// Names of the parts that the points belong to, in the order of the points. Empty if a point
/// belongs to no part.
fn parts<'a>(groups: &[&'a Group]) -> Vec<&'a str> {
    let names: Option<Vec<&str>> = groups.iter().map(|group| group.point.get(PART).and_then(Value::as_str)).collect();
    let mut parts: Vec<&str> = Vec::new();
    for name in names.unwrap_or_default() {
        if !parts.contains(&name) {
            parts.push(name);
        }
    }
    parts
}

/// The first names of a list, and the number of the others.
fn listed(names: &[&str]) -> String {
    let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED { format!("{first} and {} more", names.len() - NAMED) } else { first }
}

/// Sentences that say which points lack the key of an axis, in the order of the panels. Empty if all
/// points of the page have the same axis.
pub fn without_axis(panels: &[Panel]) -> Vec<String> {
    let mut axes: Vec<&str> = Vec::new();
    for axis in panels.iter().filter_map(|panel| panel.axis.as_deref()) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    let sentence = |axis: &str| {
        let groups = panels.iter().flat_map(|panel| &panel.groups).copied();
        let (having, lacking): (Vec<&Group>, Vec<&Group>) = groups.partition(|group| group.point.contains_key(axis));
        if lacking.is_empty() {
            return None;
        }
        Some(match &own_parts(&lacking, &having)[..] {
            [] if lacking.len() == 1 => format!("One point has no {axis}; it has plots of its own."),
            [] => format!("{} points have no {axis}; they have plots of their own.", lacking.len()),
            [part] => format!("Part {part} has no {axis}; it has plots of its own."),
            parts => format!("Parts {} have no {axis}; they have plots of their own.", listed(parts)),
        })
    };
    axes.into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::super::data::groups;
    use super::*;
    use meshpace_lab::record::Record;
    use serde_json::{Map, json};

    /// A record of one run at each point.
    fn records(points: &[Value]) -> Vec<Record> {
        let point = |value: &Value| -> Map<String, Value> { value.as_object().unwrap().clone() };
        points.iter().map(|value| Record { point: point(value), seed: 1, ..Record::default() }).collect()
    }

    /// Three parts: two sweep the hops, one the rate; and a part that sweeps nothing but names.
    fn campaign() -> Vec<Record> {
        records(&[
            json!({"part": "town", "flow.transport": "newreno"}),
            json!({"part": "town", "flow.transport": "tcp-ap"}),
            json!({"part": "chain", "topology.hops": 2}),
            json!({"part": "chain", "topology.hops": 4}),
            json!({"part": "cross", "flow.rate": "10 kbit/s"}),
            json!({"part": "cross", "flow.rate": "20 kbit/s"}),
            json!({"part": "long chain", "topology.hops": 8}),
        ])
    }

    fn told<'a>(panels: &'a [Panel]) -> Vec<(&'a str, Option<&'a str>, usize)> {
        panels.iter().map(|panel| (panel.told.as_str(), panel.axis.as_deref(), panel.groups.len())).collect()
    }

    #[test]
    fn each_part_has_an_axis_of_its_own_and_the_page_says_which_parts_lack_it() {
        let records = campaign();
        let groups = groups(&records);
        let panels = panels(&groups, &Settings::default());
        assert_eq!(
            told(&panels),
            [("chain, long chain", Some("topology.hops"), 3), ("cross", Some("flow.rate"), 2), ("town", None, 2),]
        );
        assert_eq!(
            without_axis(&panels),
            [
                "Parts cross, town have no topology.hops; they have plots of their own.",
                "Parts chain, long chain, town have no flow.rate; they have plots of their own.",
            ]
        );
    }

    #[test]
    fn panels_of_parts_are_named_once() {
        let records = campaign();
        let groups = groups(&records);
        let settings = Settings { lines: Some(vec!["flow.transport".to_owned()]), ..Settings::default() };
        let expected = [
            ("chain", Some("topology.hops"), 2),
            ("long chain", Some("topology.hops"), 1),
            ("cross", Some("flow.rate"), 2),
            ("town", None, 2),
        ];
        assert_eq!(told(&panels(&groups, &settings)), expected);
    }

    /// Parts and transports in an order that is not that of the alphabet.
    fn parts_and_transports() -> Vec<Record> {
        let points: Vec<Value> = ["town", "chain", "grid"]
            .iter()
            .flat_map(|part| ["tcp-ap", "newreno"].map(|name| json!({"part": part, "flow.transport": name})))
            .collect();
        records(&points)
    }

    #[test]
    fn names_of_parts_or_of_transports_are_one_axis_in_the_order_of_the_points() {
        let records = parts_and_transports();
        let groups = groups(&records);
        let (part, transport) = (PART, "flow.transport");
        for (x, line, names) in
            [(part, transport, &["town", "chain", "grid"][..]), (transport, part, &["tcp-ap", "newreno"][..])]
        {
            let settings =
                Settings { x: Some(x.to_owned()), lines: Some(vec![line.to_owned()]), ..Settings::default() };
            let panels = panels(&groups, &settings);
            assert_eq!(told(&panels), [("", Some(x), 6)]);
            assert_eq!(panels[0].names, names);
        }
    }

    #[test]
    fn points_without_parts_are_named_by_the_axis() {
        let records = records(&[json!({"a": 1}), json!({"a": 2}), json!({})]);
        let groups = groups(&records);
        let panels = panels(&groups, &Settings::default());
        assert_eq!(told(&panels), [("points with a", Some("a"), 2), ("other points", None, 1)]);
        assert_eq!(without_axis(&panels), ["One point has no a; it has plots of its own."]);
    }

    #[test]
    fn points_with_the_same_keys_have_one_panel_without_a_name() {
        let records = records(&[json!({"a": 1}), json!({"a": 2})]);
        let groups = groups(&records);
        let panels = panels(&groups, &Settings::default());
        assert_eq!(told(&panels), [("", Some("a"), 2)]);
        assert!(without_axis(&panels).is_empty());
    }
}
