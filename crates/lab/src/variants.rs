//! Variants of a comparison: values of keys (`--set key=a,b,c`), or the values of a key that a
//! scenario or its records sweep. Variants are named by what differs.

use crate::record::excerpt::{Excerpt, Points};
use crate::words::spoken_together;
use serde_json::{Map, Value};

/// Largest number of variants. Each is a column of tables.
pub const MOST: usize = 24;
/// Key that is compared by default if several are swept.
const USUAL: &str = "flow.transport";

/// A variant of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Name of the variant for people: its values.
    pub name: String,
    /// Arguments of `--set` that make it.
    pub sets: Vec<String>,
}

/// Variants and what they have in common.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Variants {
    /// The variants. Empty if the arguments do not name at least two.
    pub variants: Vec<Variant>,
    /// Arguments of `--set` that all variants have.
    pub common: Vec<String>,
}

/// Variants that arguments of `--set` make. A key with several values is compared: either
/// `key=a,b,c`, or the key is repeated among three or more arguments. Several such keys are
/// compared in all combinations, and the other arguments are common to all variants. If no key has
/// several values, each of two or more arguments is a variant.
///
/// # Errors
/// There are too many variants.
pub fn of_sets(sets: &[String]) -> Result<Variants, String> {
    let mut keys: Vec<(&str, Vec<String>)> = Vec::new();
    let mut malformed = Vec::new();
    for set in sets {
        match set.split_once('=') {
            None => malformed.push(set.clone()),
            Some((key, values)) => match keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => known.extend(split(values)),
                None => keys.push((key, split(values))),
            },
        }
    }
    let has_list = sets.iter().any(|set| set.split_once('=').is_some_and(|(_, values)| split(values).len() > 1));
    let repeats = keys.len() + malformed.len() < sets.len();
    let each_is_one = !has_list && (sets.len() == 2 || !repeats);
    if each_is_one {
        // An argument without key and value is reported when the scenario is read.
        let one_key = keys.len() == 1 && malformed.is_empty();
        let values: Vec<Value> =
            sets.iter().map(|set| value(set.split_once('=').map_or("", |(_, value)| value))).collect();
        let name = |(set, spoken): (&String, String)| match set.split_once('=') {
            Some((key, value)) if one_key => told(key, value, spoken),
            Some((key, _)) => format!("{} {spoken}", last(key)),
            None => set.clone(),
        };
        let names = sets.iter().zip(spoken_together(&values)).map(name);
        let variants: Vec<Variant> =
            names.zip(sets).map(|(name, set)| Variant { name, sets: vec![set.clone()] }).collect();
        return Ok(match variants.len() {
            0 | 1 => Variants { variants: Vec::new(), common: sets.to_vec() },
            _ => Variants { variants: distinct(variants), common: Vec::new() },
        });
    }
    let (compared, common): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(_, values)| values.len() > 1);
    let count = compared.iter().fold(1usize, |count, (_, values)| count.saturating_mul(values.len()));
    if count > MOST {
        return Err(format!(
            "there are {count} variants, but at most {MOST} can be compared side by side; sweep them with meshpace run --report"
        ));
    }
    let mut variants = vec![Variant { name: String::new(), sets: Vec::new() }];
    for (key, values) in &compared {
        let spoken = spoken_together(&values.iter().map(|text| value(text)).collect::<Vec<_>>());
        let with = |variant: &Variant, value: &String, spoken: &String| {
            let told = told(key, value, spoken.clone());
            let name = if variant.name.is_empty() { told } else { format!("{}, {told}", variant.name) };
            let sets = variant.sets.iter().cloned().chain([format!("{key}={value}")]).collect();
            Variant { name, sets }
        };
        let each = |variant: &Variant| -> Vec<Variant> {
            values.iter().zip(&spoken).map(|(value, spoken)| with(variant, value, spoken)).collect()
        };
        variants = variants.iter().flat_map(each).collect();
    }
    let common = common.into_iter().map(|(key, values)| format!("{key}={}", values.concat()));
    Ok(Variants { variants: distinct(variants), common: malformed.into_iter().chain(common).collect() })
}

/// Adds numbers to names that occur more than once.
fn distinct(mut variants: Vec<Variant>) -> Vec<Variant> {
    let names: Vec<String> = variants.iter().map(|variant| variant.name.clone()).collect();
    for (variant, name) in variants.iter_mut().zip(numbered(&names)) {
        variant.name = name;
    }
    variants
}

/// The names, with a number behind each name that occurs more than once.
pub fn numbered(names: &[String]) -> Vec<String> {
    let of = |(number, name): (usize, &String)| match names.iter().filter(|other| *other == name).count() {
        1 => name.clone(),
        _ => format!("{name} ({})", 1 + names[..number].iter().filter(|other| *other == name).count()),
    };
    names.iter().enumerate().map(of).collect()
}

/// Name of a value for people. Texts and tables are `spoken`; other values stand behind the last
/// part of their key.
fn told(key: &str, value: &str, spoken: String) -> String {
    let value = value.trim();
    let is_text = value.parse::<f64>().is_err() && !["true", "false"].contains(&value) && !value.starts_with('[');
    if is_text { spoken } else { format!("{} {value}", last(key)) }
}

/// Value of an argument: a table if it is one, otherwise its text.
fn value(text: &str) -> Value {
    toml_value(text).filter(Value::is_object).unwrap_or_else(|| Value::from(bare(text)))
}

/// Value of a text in TOML. `None` if the text is not TOML, such as words without quotes.
pub fn toml_value(text: &str) -> Option<Value> {
    let value = toml::from_str::<toml::Table>(&format!("value = {text}")).ok()?.remove("value")?;
    serde_json::to_value(value).ok()
}

fn last(key: &str) -> &str {
    key.trim().rsplit('.').next().unwrap_or(key)
}

/// Text without the quotes around it.
pub fn bare(value: &str) -> &str {
    let value = value.trim();
    let unquoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value)
}

/// Values between commas that are neither in brackets nor in quotes.
pub fn split(values: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quote) = (vec![String::new()], 0usize, None);
    for c in values.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    // If there is an empty part, the text is not a list and is kept as it is.
    if parts.iter().any(|part| part.trim().is_empty()) { vec![values.to_owned()] } else { parts }
}

/// Argument of `--set` that makes a scenario sweep a key, from `key=a,b,c`.
///
/// # Errors
/// The argument has no key or no value.
pub fn sweep(argument: &str) -> Result<String, String> {
    let way = "write --sweep key=a,b,c, such as --sweep topology.hops=2,4,6";
    let (key, values) = argument.split_once('=').ok_or_else(|| format!("{argument}: the = is missing; {way}"))?;
    if values.trim().is_empty() {
        return Err(format!("{argument}: the value is missing; {way}"));
    }
    let written = |value: &String| match value.trim() {
        value if is_toml(value) => value.to_owned(),
        text => Value::from(text).to_string(),
    };
    let values: Vec<String> = split(values).iter().map(written).collect();
    Ok(format!("sweep.{}=[{}]", Value::from(key.trim()), values.join(", ")))
}

/// True if a value is TOML as it stands: a number, a boolean, a list, a table, a text in quotes.
/// Any other value is a text.
fn is_toml(value: &str) -> bool {
    toml_value(value).is_some()
}

/// The one of the swept `keys` that is compared: `by`, the only key, or the key of the transports.
///
/// # Errors
/// `by` is not swept, or the key cannot be determined.
pub fn axis(keys: &[&str], by: Option<&str>) -> Result<String, String> {
    let listed = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
    match (by, keys) {
        (Some(by), _) if keys.contains(&by) => Ok(by.to_owned()),
        (Some(by), []) => Err(format!(
            "--by {by}: the scenario sweeps no key; give values with --set {by}=A,B, or in a [sweep] table"
        )),
        (Some(by), _) => Err(format!("--by {by}: this key is not swept; swept: {listed}")),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) if keys.contains(&USUAL) => Ok(USUAL.to_owned()),
        (None, []) => Err("no key is swept, so there are no values to compare".to_owned()),
        (None, _) => Err(format!("several keys are swept ({listed}); select the one to compare with --by")),
    }
}

/// Keys that differ between points: those with two or more values, and those that only some points
/// have.
pub fn swept<'a>(points: &[&'a Map<String, Value>]) -> Vec<&'a str> {
    let Some(first) = points.first() else { return Vec::new() };
    let is_swept = |key: &&str| points.iter().any(|point| point.get(*key) != first.get(*key));
    let mut keys: Vec<&str> = Vec::new();
    for key in points.iter().flat_map(|point| point.keys()).map(String::as_str) {
        // Points of several scenarios may have different keys.
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.retain(is_swept);
    keys
}

/// Groups records by the values of a swept key, which is removed from their points. Each value has
/// its name; values are in the order in which they occur.
pub fn by(runs: Vec<Excerpt>, key: &str) -> Vec<(String, Vec<Excerpt>)> {
    let mut groups: Vec<(Value, Vec<Excerpt>)> = Vec::new();
    let mut points = Points::default();
    for mut run in runs {
        // The order of the other keys does not change.
        let mut point = (*run.point).clone();
        let value = point.shift_remove(key).unwrap_or_default();
        run.point = points.shared(&point);
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, group)) => group.push(run),
            None => groups.push((value, vec![run])),
        }
    }
    let (values, groups): (Vec<Value>, Vec<Vec<Excerpt>>) = groups.into_iter().unzip();
    let named = |(value, spoken): (&Value, String)| match value {
        Value::String(_) | Value::Object(_) => spoken,
        _ => format!("{} {spoken}", last(key)),
    };
    let names: Vec<String> = values.iter().zip(spoken_together(&values)).map(named).collect();
    numbered(&names).into_iter().zip(groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::excerpt::Excerpts;
    use serde_json::json;

    fn of(sets: &[&str]) -> (Vec<(String, Vec<String>)>, Vec<String>) {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let found = of_sets(&sets).unwrap();
        (found.variants.into_iter().map(|variant| (variant.name, variant.sets)).collect(), found.common)
    }

    fn names(sets: &[&str]) -> Vec<String> {
        of(sets).0.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn two_arguments_are_two_variants_as_they_always_were() {
        let (variants, common) = of(&["flow.transport=newreno", "flow.transport=tcp-ap"]);
        let one = |name: &str| (name.to_owned(), vec![format!("flow.transport={name}")]);
        assert_eq!((variants, common), (vec![one("newreno"), one("tcp-ap")], vec![]));
        assert_eq!(names(&["flow.max_window=4", "flow.transport=cubic"]), ["max_window 4", "transport cubic"]);
        assert_eq!(names(&["flow.1.to=3", "flow.1.to=4"]), ["to 3", "to 4"]);
        assert_eq!(names(&["radio.rts_cts=true", "radio.rts_cts=true"]), ["rts_cts true (1)", "rts_cts true (2)"]);
        let table = "flow.transport={ name = \"tcp-ap\", pacing = { alpha = 0.5 } }";
        assert_eq!(of(&[table, "flow.transport=newreno"]).0[0].1, [table], "commas in brackets separate nothing");
        assert_eq!(names(&[table, "flow.transport=newreno"]), ["tcp-ap (alpha 0.5)", "newreno"]);
        assert_eq!(
            names(&["flow.transport=newreno,{ name = 'cwl', window = { segments = 4 } }"]),
            ["newreno", "cwl (segments 4)"]
        );
    }

    #[test]
    fn values_in_one_argument_are_variants_and_the_others_are_common() {
        let (variants, common) = of(&["flow.transport=newreno,cubic,tcp-ap", "duration=20 s"]);
        assert_eq!(variants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["newreno", "cubic", "tcp-ap"]);
        assert_eq!(
            (variants[2].1.as_slice(), common),
            (&["flow.transport=tcp-ap".to_owned()][..], vec!["duration=20 s".to_owned()])
        );
        assert_eq!(
            names(&["flow.transport=newreno,cubic", "flow.max_window=4,8"]),
            ["newreno, max_window 4", "newreno, max_window 8", "cubic, max_window 4", "cubic, max_window 8"]
        );
        assert_eq!(names(&["radio.noise='-90 dBm',\"-80 dBm\""]), ["-90 dBm", "-80 dBm"]);
        assert!(
            of_sets(&[format!("flow.max_window={}", vec!["1"; 25].join(","))]).unwrap_err().contains("25 variants")
        );
    }

    #[test]
    fn a_key_that_is_given_again_has_several_values() {
        let (variants, common) =
            of(&["flow.transport=newreno", "duration=9 s", "flow.transport=cubic", "flow.transport=cwl"]);
        assert_eq!(variants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["newreno", "cubic", "cwl"]);
        assert_eq!(common, ["duration=9 s"]);
        assert_eq!(names(&["a.b=1", "a.c=2", "a.d=x"]), ["b 1", "c 2", "d x"], "three keys are three variants");
        assert_eq!(of(&["duration=9 s"]), (vec![], vec!["duration=9 s".to_owned()]));
        assert_eq!(of(&["title=a, "]).1, ["title=a, "], "a comma too many is no list");
    }

    #[test]
    fn records_are_parted_by_a_key_that_leaves_their_points() {
        let record = |hops: u64, transport: &str| {
            crate::record::record(
                json!({"seed": 1, "point": {"topology.hops": hops, "flow.transport": transport, "x": 1}}),
            )
        };
        let records = vec![record(2, "cubic"), record(2, "cwl"), record(4, "cubic"), record(4, "cwl")];
        let records = Excerpts::of_all(&records);
        let points: Vec<&Map<String, Value>> = records.iter().map(|record| &*record.point).collect();
        assert_eq!(swept(&points), ["topology.hops", "flow.transport"], "one value is not swept");
        let parted = by(records.clone(), "flow.transport");
        assert_eq!((parted[0].0.as_str(), parted[1].0.as_str(), parted[1].1.len()), ("cubic", "cwl", 2));
        assert_eq!(Value::from((*parted[1].1[1].point).clone()), json!({"topology.hops": 4, "x": 1}));
        assert_eq!(by(records, "topology.hops")[1].0, "hops 4");
        let table = |alpha: f64| {
            let transport = json!({"name": "tcp-ap", "pacing": {"alpha": alpha}});
            crate::record::record(json!({"seed": 1, "point": {"flow.transport": transport}}))
        };
        assert_eq!(
            by(Excerpts::of_all(&[table(0.3), table(0.5)]), "flow.transport")[1].0,
            "tcp-ap (alpha 0.5)",
            "no JSON"
        );
    }

    #[test]
    fn a_sweep_is_a_list_of_values_in_toml() {
        assert_eq!(sweep("topology.hops=2,4").unwrap(), "sweep.\"topology.hops\"=[2, 4]");
        assert_eq!(
            sweep("flow.rate = 20 kbit/s,40 kbit/s").unwrap(),
            "sweep.\"flow.rate\"=[\"20 kbit/s\", \"40 kbit/s\"]"
        );
        assert_eq!(
            sweep("a.b={ name = 'x', y = [1, 2] },true").unwrap(),
            "sweep.\"a.b\"=[{ name = 'x', y = [1, 2] }, true]"
        );
        assert!(
            sweep("topology.hops").unwrap_err().contains("the = is missing")
                && sweep("a.b=").unwrap_err().contains("the value is missing")
        );
    }

    #[test]
    fn the_key_is_the_only_one_that_of_transports_or_the_one_that_is_said() {
        assert_eq!(axis(&["a.b"], None), Ok("a.b".to_owned()));
        assert_eq!(axis(&["a.b", "flow.transport"], None), Ok("flow.transport".to_owned()));
        assert_eq!(axis(&["a.b", "a.c"], Some("a.c")), Ok("a.c".to_owned()));
        assert!(axis(&["a.b", "a.c"], None).unwrap_err().contains("several keys are swept (a.b, a.c)"));
        assert!(axis(&[], None).unwrap_err().contains("no key is swept"));
        assert!(axis(&["a.b"], Some("x")).unwrap_err().contains("not swept"));
    }
}
