//! Possible defaults of keys, from the list of keys. A default may depend on other keys, so a value
//! in this table is not always the default. The table only selects the points that have to be
//! built.

use super::{meaning, transport_meaning};
use crate::keys;
use meshpace_settings::recording::without_numbers;
use meshpace_settings::value::{Kind, Origin, Table, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Meanings of possible defaults by key. Keys have no flow numbers.
static DEFAULTS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let mut defaults: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for key in keys::all() {
        let Some(text) = key.default else { continue };
        let is_transport = key.name == "flow.transport";
        let of = |value| if is_transport { transport_meaning(&value) } else { meaning(&value, &BTreeMap::new()) };
        defaults.entry(key.name).or_default().extend(values(&text).into_iter().map(of));
    }
    defaults
});

/// Name under which a key is compared. A component is written as a keyword, or as a table whose
/// `kind` is that keyword. For that reason `link.queue.kind` is compared as `link.queue`.
pub fn name(key: &str) -> &str {
    key.strip_suffix(".kind").unwrap_or(key)
}

/// True if a value with this meaning may be the default of `key`. An empty table contains only
/// defaults.
pub fn may_be(key: &str, meaning: &str) -> bool {
    let listed = |key: &str| DEFAULTS.get(key).is_some_and(|values| values.contains(meaning));
    let path = without_numbers(key);
    meaning == "{}" || listed(&path) || listed(name(&path))
}

/// Values in the column of defaults. The column contains a value in TOML, or words in parentheses
/// such as "(chain: 7; parallel: 4)" and "(2 Mbit/s; MCS 7 with "ht")".
fn values(text: &str) -> Vec<Value> {
    let Some(words) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return vec![value(text)] };
    let one = |part: &str| {
        let part = part.rsplit_once(": ").map_or(part, |(_, value)| value);
        let ends = [" with ", " for ", " under ", " at ", " otherwise"];
        let end = ends.iter().filter_map(|end| part.find(end)).min().unwrap_or(part.len());
        value(part[..end].trim())
    };
    words.split([';', ',']).map(one).collect()
}

/// Parses a value in TOML. A text that is not TOML becomes a string.
fn value(text: &str) -> Value {
    let document = format!("value = {text}");
    let parsed = toml::de::DeTable::parse(&document).ok();
    let table = parsed.map(|document| Table::from_toml(document.get_ref(), &Origin::File));
    let value = table.and_then(|table| table.get("value").cloned());
    value.unwrap_or_else(|| Value { kind: Kind::String(text.to_owned()), origin: Origin::File(0..0) })
}
