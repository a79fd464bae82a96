//! Pacing rules written in another language that were used in a campaign, as a manifest describes
//! them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Largest number of differences that a message names.
const NAMED: usize = 3;

/// Pacing rule: its source, and everything that determines its behaviour.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Name of the transport in records.
    pub name: String,
    /// Identity that the author of the rule chose, for a rule with a part that cannot be compared.
    /// `None` if all parts can be compared.
    pub id: Option<String>,
    /// Source code, as far as it is known.
    pub source: String,
    /// Text of every part that can be compared, by the part's name. Parts are sources, captured
    /// variables, globals and attributes.
    pub parts: BTreeMap<String, String>,
    /// Numbers of the flows that use the rule; `None` if all flows use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<usize>>,
}

/// Returns everything about these rules that determines the results of runs: all fields except
/// `source`. As far as the source matters, `parts` contains it.
pub fn meaning(rules: &[Rule]) -> String {
    let of = |rule: &Rule| json!([rule.name, rule.id, rule.parts, rule.flows]);
    Value::Array(rules.iter().map(of).collect()).to_string()
}

/// Describes the first rule that differs between two campaigns, and the difference, for a message.
/// `None` if all are the same.
pub fn difference(old: &[Rule], new: &[Rule]) -> Option<String> {
    let changed = old.iter().zip(new).find(|(old, new)| old != new && old.name == new.name)?;
    let (Rule { name, id, parts, .. }, new) = changed;
    let mut told = Vec::new();
    for part in parts.keys().chain(new.parts.keys().filter(|part| !parts.contains_key(*part))) {
        match (parts.get(part), new.parts.get(part)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if is_digest(old) || is_digest(new) => told.push(format!("{part} has changed")),
            (Some(old), Some(new)) => told.push(format!("{part}: {old} → {new}")),
            (Some(_), None) => told.push(format!("{part} is gone")),
            (None, _) => told.push(format!("{part} is new")),
        }
    }
    if told.len() > NAMED {
        let more = told.len() - NAMED;
        told.truncate(NAMED);
        told.push(format!("{more} more"));
    }
    let shown = |id: &Option<String>| id.as_ref().map_or("none".to_owned(), |id| format!("\"{id}\""));
    match (id, &new.id) {
        (old, new) if old != new => told.insert(0, format!("id: {} → {}", shown(old), shown(new))),
        (Some(id), _) => told.push(format!("its id is still \"{id}\"")),
        (None, _) => {}
    }
    (!told.is_empty()).then(|| format!("the pacing rule \"{name}\" before it changed ({})", told.join(", ")))
}

/// True if the text of a part is a digest of a longer text.
fn is_digest(text: &str) -> bool {
    text.starts_with("source ") || text.starts_with("sha256 ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: Option<&str>, parts: &[(&str, &str)]) -> Rule {
        let parts = parts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Rule { name: "mine".to_owned(), id: id.map(str::to_owned), source: String::new(), parts, flows: None }
    }

    #[test]
    fn a_difference_names_what_changed() {
        let of = |old: Rule, new: Rule| difference(&[old], &[new]);
        let before = [("K", "0.1"), ("f", "source 12"), ("gone", "1")];
        assert_eq!(of(rule(None, &before), rule(None, &before)), None);
        let told = of(rule(None, &before), rule(None, &[("K", "3"), ("f", "source 34"), ("more", "2")])).unwrap();
        assert_eq!(
            told,
            "the pacing rule \"mine\" before it changed (K: 0.1 → 3, f has changed, gone is gone, 1 more)"
        );
        let kept = of(rule(Some("a"), &[("K", "1")]), rule(Some("a"), &[("K", "2")])).unwrap();
        assert!(kept.ends_with("(K: 1 → 2, its id is still \"a\")"), "{kept}");
        let renamed = of(rule(Some("a"), &[]), rule(Some("b"), &[])).unwrap();
        assert!(renamed.ends_with("(id: \"a\" → \"b\")"), "{renamed}");
    }
}
