//! Line of a record. It ends with a checksum of the text before it, so that damage to a file is
//! detected and attributed to a line.

use memchr::memmem;
use serde_json::Value;

/// Format of records and manifests. Format 1 had neither this number nor checksums.
pub const FORMAT: u32 = 2;
/// Separator between a record and its checksum.
const CHECK: &str = ",\"check\":\"";

/// Key of a run in its campaign: the values of its point as JSON, and its seed.
pub type Key = (String, u64);

/// Returns the line of `object`, a JSON object. The line has `check` as an additional last member,
/// which is the CRC-32 of `object` in hexadecimal, and ends with a newline.
pub fn seal(object: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!("{open}{CHECK}{:08x}\"}}\n", crc32fast::hash(object.as_bytes()))
}

/// Parses a line, given without its newline, after checking its checksum.
///
/// # Errors
/// The fault of the line, in words.
pub fn open(line: &str) -> Result<Value, &'static str> {
    check(line)?;
    serde_json::from_str(line).map_err(|_| DAMAGED)
}

const DAMAGED: &str = "is damaged: its checksum does not match";

/// Checks the checksum of a line, and returns the text before the member `check`.
///
/// # Errors
/// The fault of the line, in words.
pub fn check(line: &str) -> Result<&str, &'static str> {
    let Some((before, rest)) = line.rsplit_once(CHECK) else {
        let is_record = serde_json::from_str(line).is_ok_and(|value: Value| value.get("seed").is_some());
        return Err(if is_record { "has no checksum" } else { "is not a complete record" });
    };
    let sum = rest.strip_suffix("\"}").filter(|sum| sum.len() == 8).and_then(|sum| u32::from_str_radix(sum, 16).ok());
    let mut hash = crc32fast::Hasher::new();
    hash.update(before.as_bytes());
    hash.update(b"}");
    if sum != Some(hash.finalize()) {
        return Err(DAMAGED);
    }
    Ok(before)
}

/// Members of a record that identify its run, and the additional data that it has.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    /// Name of the scenario.
    pub scenario: String,
    /// Key of the run.
    pub key: Key,
    /// Additional data in the record, such as a time series.
    pub observed: Observed,
}

/// Reads the head of the record in a line, given without its newline.
///
/// # Errors
/// The fault of the line, in words.
pub fn head(line: &str) -> Result<Head, &'static str> {
    const NAMELESS: &str = "has no point and seed";
    if let Some(head) = first_members(check(line)?) {
        return Ok(head);
    }
    let record = open(line)?;
    let key = key_of(&record).ok_or(NAMELESS)?;
    let scenario = record.get("scenario").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Head { scenario, key, observed: Observed::of(&record) })
}

/// Reads the head from the beginning of a record, without parsing the rest. Works if the record
/// begins with scenario, seed and point, as this program writes it. Returns `None` if it begins
/// otherwise, or if it may contain a time series or data of nodes.
fn first_members(record: &str) -> Option<Head> {
    let is_more = |member: &str| memmem::find(record.as_bytes(), member.as_bytes()).is_some();
    if is_more("\"nodes\":") || is_more("\"series\":") {
        return None;
    }
    let (scenario, rest) = first_value::<String>(record.strip_prefix("{\"scenario\":")?)?;
    let (seed, rest) = first_value::<u64>(rest.strip_prefix(",\"seed\":")?)?;
    let (point, rest) = first_value::<Value>(rest.strip_prefix(",\"point\":")?)?;
    let is_end = rest.is_empty() || rest.starts_with(',');
    is_end.then(|| Head { scenario, key: (point_key(&point), seed), observed: Observed::default() })
}

/// Parses the JSON value at the beginning of a text. Returns the value and the rest of the text.
fn first_value<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Option<(T, &'a str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// Returns the line with another scenario name and another point, and with a new checksum. Both
/// lines are without newlines.
///
/// # Errors
/// The fault of the line or the point, in words.
pub fn renamed(line: &str, scenario: &str, point: &str) -> Result<String, &'static str> {
    let mut record = open(line)?;
    let point = serde_json::from_str(point).map_err(|_| "has a point that is not JSON")?;
    let Value::Object(fields) = &mut record else { return Err("is not a JSON object") };
    fields.shift_remove("check");
    fields.insert("scenario".to_owned(), scenario.into());
    fields.insert("point".to_owned(), point);
    Ok(seal(&record.to_string()).trim_end().to_owned())
}

/// Additional data of a record, besides the results of its run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Observed {
    /// True if the record says what each node lost and sent.
    pub nodes: bool,
    /// True if the record has a time series.
    pub series: bool,
    /// True if the time series includes watched links.
    pub links: bool,
}

impl Observed {
    /// Determines which additional data a record has.
    pub fn of(record: &Value) -> Observed {
        let has = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
        let series = record.get("series");
        Observed {
            nodes: has(record.get("nodes")),
            series: has(series),
            links: has(series.and_then(|series| series.get("links"))),
        }
    }

    /// True if the record has at least the data that `wanted` has.
    pub fn covers(self, wanted: Observed) -> bool {
        self.nodes >= wanted.nodes && self.series >= wanted.series && self.links >= wanted.links
    }
}

/// Returns the key of a record; `None` if the record has no point or no seed.
pub fn key_of(record: &Value) -> Option<Key> {
    Some((point_key(record.get("point")?), record.get("seed")?.as_u64()?))
}

/// Text of a point as it stands in a key.
pub fn point_key(point: &Value) -> String {
    point.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"seed":3,"point":{"a":0.1},"x":null}"#;

    #[test]
    fn a_line_ends_with_the_crc_of_what_stands_before() {
        // The check value of CRC-32 (ISO-HDLC) for "123456789".
        assert!(seal("123456789").contains("cbf43926"));
        let line = seal(OBJECT);
        let record = open(line.trim_end()).unwrap();
        assert_eq!(key_of(&record), Some((r#"{"a":0.1}"#.to_owned(), 3)));
        assert!(line.starts_with(OBJECT.trim_end_matches('}')) && line.ends_with("\"}\n"));
    }

    #[test]
    fn a_record_gets_another_name_and_point_and_keeps_the_rest() {
        let line = seal(
            r#"{"scenario":"a","seed":3,"point":{},"x":0.30000000000000004,"y":-0.0,"z":[null,18446744073709551615]}"#,
        );
        let other = renamed(line.trim_end(), "b \"c\"", r#"{"k":1}"#).unwrap();
        let expected = seal(
            r#"{"scenario":"b \"c\"","seed":3,"point":{"k":1},"x":0.30000000000000004,"y":-0.0,"z":[null,18446744073709551615]}"#,
        );
        assert_eq!(other, expected.trim_end());
        assert!(renamed(&line.replace("\"seed\":3", "\"seed\":4"), "b", "{}").is_err());
    }

    #[test]
    fn the_head_is_that_of_the_whole_record() {
        let own = r#"{"scenario":"a \"b\",","seed":3,"point":{"a.nodes":0.1,"b":[{"c":"},"}]},"x":null}"#;
        let whole = Head {
            scenario: "a \"b\",".to_owned(),
            key: key_of(&serde_json::from_str(own).unwrap()).unwrap(),
            observed: Observed::default(),
        };
        assert_eq!(first_members(own), Some(whole.clone()), "a record as it is written");
        assert_eq!(head(seal(own).trim_end()), Ok(whole.clone()));
        // Another order of members, and more than results: read as a whole.
        let turned = r#"{"seed":3,"scenario":"a \"b\",","point":{"a.nodes":0.1,"b":[{"c":"},"}]}}"#;
        assert_eq!((first_members(turned), head(seal(turned).trim_end())), (None, Ok(whole.clone())));
        let more = own.replace("\"x\":null", "\"series\":{\"links\":null},\"nodes\":[]");
        let observed = Observed { nodes: true, series: true, links: false };
        assert_eq!(head(seal(&more).trim_end()), Ok(Head { observed, ..whole }));
        assert_eq!(head(seal(r#"{"scenario":"a","point":{}}"#).trim_end()), Err("has no point and seed"));
        assert_eq!(head(&seal(own).trim_end().replace("null", "true")), Err(DAMAGED));
        assert_eq!(head(own), Err("has no checksum"));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let line = seal(OBJECT);
        let line = line.trim_end().as_bytes();
        for bit in 0..line.len() * 8 {
            let mut flipped = line.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Letters of the sum itself in capitals say the same.
            let same = flipped.eq_ignore_ascii_case(line) && bit / 8 > line.len() - 11;
            let found = String::from_utf8(flipped).map_or(true, |text| open(&text).is_err());
            assert!(found || same, "bit {bit}");
        }
        assert_eq!(open(OBJECT), Err("has no checksum"));
        assert_eq!(open(r#"{"seed":3"#), Err("is not a complete record"));
    }
}
