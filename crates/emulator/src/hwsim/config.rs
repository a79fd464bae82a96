//! Configuration files of wmediumd: radios, and the quality of the links between them.
//!
//! The settings that are read are those in common use: `ifaces.ids`, signal-to-noise ratios in
//! `ifaces.links` or in a `model` of type `snr`, and the links of a `model` of type `prob` if each
//! probability is 0.0 or 1.0. Any other setting is an error and is not skipped. The format is that
//! of libconfig: settings `name = value;`, groups in braces, lists in parentheses or brackets,
//! comments from `#` or `//` to the end of the line or between `/*` and `*/`.

use crate::address::Mac;

/// Signal-to-noise ratio that wmediumd uses for a link that the file does not mention, dB.
const SNR_DEFAULT: f64 = 30.0;

/// Signal-to-noise ratio of a link that does not exist, dB. At this ratio nothing is received and
/// nothing disturbed.
const NO_LINK: f64 = -100.0;

/// Deepest nesting of groups and lists. A file of wmediumd has three levels.
const DEEPEST: usize = 32;

/// The radios and their links.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Addresses of the radios' interfaces. The indices are the numbers of the nodes.
    pub radios: Vec<Mac>,
    /// Signal-to-noise ratio of each link in dB, by sender and then by receiver.
    pub snr: Vec<Vec<f64>>,
}

#[derive(Clone, PartialEq, Debug)]
enum Value {
    Number(f64),
    Bool(bool),
    Text(String),
    List(Vec<Value>),
    Group(Vec<(String, Value)>),
}

impl Config {
    /// Parses the text of a file.
    ///
    /// # Errors The fault, with the line number if the format is wrong.
    pub fn parse(text: &str) -> Result<Config, String> {
        let mut reader = Reader { rest: text, line: 1, depth: 0 };
        let settings = reader.settings(None)?;
        Config::of(&Value::Group(settings))
    }

    fn of(file: &Value) -> Result<Config, String> {
        let Value::Group(settings) = file else { return Err("expected settings".into()) };
        only(settings, "", &["ifaces", "model"])?;
        let Some(Value::Group(ifaces)) = get(file, "ifaces") else {
            return Err("`ifaces` is missing: ifaces : { ids = [\"02:00:00:00:00:00\", ...]; };".into());
        };
        only(ifaces, "ifaces.", &["ids", "links", "count", "enable_interference"])?;
        let ifaces = Value::Group(ifaces.clone());
        let Some(Value::List(ids)) = get(&ifaces, "ids") else { return Err("`ifaces.ids` is missing".into()) };
        let radios = ids.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        if radios.is_empty() {
            return Err("`ifaces.ids` has no radio".into());
        }
        let mut default = SNR_DEFAULT;
        let (mut links, mut are_probabilities) = (get(&ifaces, "links"), false);
        if let (None, Some(model)) = (links, get(file, "model")) {
            let Value::Group(settings) = model else { return Err("`model` is not a group".into()) };
            match get(model, "type") {
                Some(Value::Text(kind)) if kind == "snr" => only(settings, "model.", &["type", "links"])?,
                Some(Value::Text(kind)) if kind == "prob" => {
                    only(settings, "model.", &["type", "links", "default_prob"])?;
                    are_probabilities = true;
                    let probability = get(model, "default_prob").map_or(Ok(0.0), figure)?;
                    default = snr_of_loss(probability)?;
                }
                other => return Err(format!("`model.type` is {other:?}: this medium reads \"snr\" and \"prob\"")),
            }
            links = get(model, "links");
        }
        let mut given: Vec<Vec<Option<f64>>> = vec![vec![None; radios.len()]; radios.len()];
        for link in links.map_or(&[][..], |links| if let Value::List(links) = links { links } else { &[] }) {
            let Value::List(parts) = link else { return Err(format!("{link:?}: expected a link (from, to, number)")) };
            let [from, to, value] = &parts[..] else { return Err(format!("{link:?}: expected (from, to, number)")) };
            let node = |value: &Value| {
                let number = figure(value)?;
                let place = number as usize;
                let is_one = number >= 0.0 && number.fract() == 0.0 && place < radios.len();
                is_one.then_some(place).ok_or_else(|| format!("{number}: there are radios 0 to {}", radios.len() - 1))
            };
            let snr = if are_probabilities { snr_of_loss(figure(value)?)? } else { figure(value)? };
            given[node(from)?][node(to)?] = Some(snr);
        }
        // A link that is given in one direction only is the same in the other.
        let all = 0..radios.len();
        let snr = all
            .clone()
            .map(|from| all.clone().map(|to| given[from][to].or(given[to][from]).unwrap_or(default)).collect());
        Ok(Config { snr: snr.collect(), radios })
    }
}

/// Checks that all settings of a group are known ones.
fn only(settings: &[(String, Value)], path: &str, known: &[&str]) -> Result<(), String> {
    match settings.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("`{path}{name}` is not read by this medium, which knows {}", known.join(", "))),
        None => Ok(()),
    }
}

fn get<'a>(group: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Group(settings) = group else { return None };
    settings.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn figure(value: &Value) -> Result<f64, String> {
    if let Value::Number(number) = value { Ok(*number) } else { Err(format!("{value:?}: expected a number")) }
}

fn snr_of_loss(probability: f64) -> Result<f64, String> {
    match probability {
        0.0 => Ok(SNR_DEFAULT),
        1.0 => Ok(NO_LINK),
        _ => Err(format!(
            "{probability}: a share of lost frames other than 0.0 and 1.0 is not read by this medium: give a ratio of signal to noise (type = \"snr\")"
        )),
    }
}

fn address(value: &Value) -> Result<Mac, String> {
    let wrong = || format!("{value:?}: expected an address such as \"02:00:00:00:00:00\"");
    let Value::Text(text) = value else { return Err(wrong()) };
    let parts: Vec<u8> =
        text.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>().map_err(|_| wrong())?;
    parts.try_into().map_err(|_| wrong())
}

/// Parser for the format of libconfig.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
    /// Number of groups and lists around the current position.
    depth: usize,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, expected: &str) -> Result<T, String> {
        let found: String = self.rest.chars().take(12).collect();
        Err(format!("line {}: expected {expected}, found {found:?}", self.line))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Skips white space and comments. Returns the next character.
    fn next(&mut self) -> Option<char> {
        loop {
            let spaces = self.rest.len() - self.rest.trim_start().len();
            self.take(spaces);
            let comment = if self.rest.starts_with('#') || self.rest.starts_with("//") {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map_or(self.rest.len(), |end| end + 2)
            } else {
                return self.rest.chars().next();
            };
            self.take(comment);
        }
    }

    fn skip(&mut self, what: char) -> bool {
        let is_there = self.next() == Some(what);
        if is_there {
            self.take(what.len_utf8());
        }
        is_there
    }

    /// Parses settings until `end`, or until the end of the text.
    fn settings(&mut self, end: Option<char>) -> Result<Vec<(String, Value)>, String> {
        let mut settings = Vec::new();
        loop {
            if self.next() == end {
                self.take(end.map_or(0, char::len_utf8));
                return Ok(settings);
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-*".contains(c);
            let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
            if length == 0 {
                return self.wrong("the name of a setting");
            }
            let name = self.take(length).to_string();
            if !self.skip('=') && !self.skip(':') {
                return self.wrong("`=` or `:`");
            }
            settings.push((name, self.value()?));
            let _ = self.skip(';') || self.skip(',');
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.depth == DEEPEST {
            return self.wrong(&format!("at most {DEEPEST} groups and lists within each other"));
        }
        self.depth += 1;
        let value = self.one();
        self.depth -= 1;
        value
    }

    fn one(&mut self) -> Result<Value, String> {
        match self.next() {
            Some('{') => {
                self.take(1);
                Ok(Value::Group(self.settings(Some('}'))?))
            }
            Some(open @ ('(' | '[')) => {
                self.take(1);
                let close = if open == '(' { ')' } else { ']' };
                let mut values = Vec::new();
                while !self.skip(close) {
                    values.push(self.value()?);
                    if !self.skip(',') && self.next() != Some(close) {
                        return self.wrong("`,` or the end of the list");
                    }
                }
                Ok(Value::List(values))
            }
            Some('"') => {
                self.take(1);
                let Some(end) = self.rest.find('"') else { return self.wrong("the end of a text") };
                let text = self.take(end).to_string();
                self.take(1);
                Ok(Value::Text(text))
            }
            _ => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
                let word = &self.rest[..length];
                let value = match word.to_ascii_lowercase().as_str() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    lower => match lower.trim_end_matches('l').parse::<f64>() {
                        Ok(number) if number.is_finite() => Value::Number(number),
                        _ => return self.wrong("a value"),
                    },
                };
                self.take(length);
                Ok(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "ids = [\"02:00:00:00:00:00\", \"02:00:00:00:01:00\", \"02:00:00:00:02:00\"];";

    #[test]
    fn links_of_a_file() {
        // wmediumd's README: a link given in one direction is symmetric, and a link that is not
        // given has 30 dB.
        let text = format!(
            "# three\nifaces :\n{{\n{IDS}\n links = (\n (0, 1, 12), (1, 0, 7), /* weak */ (2, 0, -3.5)\n); }};\n"
        );
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.radios[1], [2, 0, 0, 0, 1, 0]);
        assert_eq!([config.snr[0][1], config.snr[1][0]], [12.0, 7.0]);
        assert_eq!([config.snr[0][2], config.snr[2][0], config.snr[1][2]], [-3.5, -3.5, 30.0]);
    }

    #[test]
    fn models_of_a_file() {
        let snr = format!("ifaces : {{ {IDS} }}; model : {{ type = \"snr\"; links = ((0, 2, 5)); }};");
        assert_eq!(Config::parse(&snr).unwrap().snr[2][0], 5.0);
        let links = "links = ((0, 1, 0.0), (1, 2, 0.0));";
        let prob = format!("ifaces : {{ {IDS} }} model = {{ type = \"prob\"; default_prob = 1.0; {links} }} // end");
        let config = Config::parse(&prob).unwrap();
        assert_eq!([config.snr[1][0], config.snr[0][2]], [30.0, NO_LINK]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let half = format!("ifaces : {{ {IDS} }} model = {{ type = \"prob\"; links = ((0, 1, 0.3)); }}");
        let positions = format!("ifaces : {{ {IDS} }} model : {{ type = \"path_loss\"; }}");
        let far = format!("ifaces : {{ {IDS} links = ((0, 3, 1)); }}");
        for (text, why) in [
            (half.as_str(), "0.3"),
            (positions.as_str(), "model.type"),
            (far.as_str(), "radios 0 to 2"),
            ("ifaces : {\n ids [ }", "line 2"),
            ("ifaces = { ids = [\"02:00\"]; }", "an address"),
            ("model = {}", "`ifaces` is missing"),
            ("ifaces = { ids = (", "line 1"),
            ("ifaces = { fading = 3; }", "ifaces.fading"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_deep_is_refused_and_not_followed() {
        for open in ["(", "[", "{a="] {
            let deep = format!("ifaces = {}", open.repeat(100_000));
            assert!(Config::parse(&deep).unwrap_err().contains("within each other"), "{open}");
        }
    }
}
