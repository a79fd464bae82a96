//! Fields of JSON with messages for people.

use super::Wrong;
use serde_json::{Map as Object, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The list at a key.
pub fn list<'a>(object: &'a Object<String, Value>, key: &str) -> Result<&'a [Value], Wrong> {
    let found = object.get(key).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| ("1".to_owned(), format!("expected a list \"{key}\"")))
}

/// The text at a key.
pub fn name<'a>(entry: &'a Value, key: &str) -> Result<&'a str, String> {
    entry.get(key).and_then(Value::as_str).ok_or_else(|| format!("expected a text \"{key}\""))
}

/// A number, also one written as a text.
pub fn number(entry: &Value, key: &str) -> Result<f64, String> {
    let value = entry.get(key).ok_or_else(|| format!("expected a number \"{key}\""))?;
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| format!("expected a number \"{key}\", found {value}"))
}

/// Lines of the entries of a document. Those of a list are found at the first question.
pub struct Lines<'a> {
    text: &'a str,
    known: RefCell<BTreeMap<String, Vec<usize>>>,
}

impl<'a> Lines<'a> {
    /// Those of a document, which must be correct JSON.
    pub fn new(text: &'a str) -> Lines<'a> {
        Lines { text, known: RefCell::default() }
    }

    /// The line of entry `number` of the list at this path of keys; 1 if there is none.
    pub fn of(&self, path: &[&str], number: usize) -> String {
        let mut known = self.known.borrow_mut();
        let lines = known.entry(path.join("\n")).or_insert_with(|| self.lines(path));
        lines.get(number).copied().unwrap_or(1).to_string()
    }

    /// The lines of all entries of a list.
    fn lines(&self, path: &[&str]) -> Vec<usize> {
        let mut scan = Scan { bytes: self.text.as_bytes(), at: 0 };
        if !path.iter().all(|key| scan.enter(key)) {
            return Vec::new();
        }
        let (mut counted, mut line, mut lines) = (0, 1, Vec::new());
        scan.entries(|scan| {
            line += scan.bytes[counted..scan.at].iter().filter(|byte| **byte == b'\n').count();
            counted = scan.at;
            lines.push(line);
        });
        lines
    }
}

/// A place in a document.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',' || byte == b':') {
            self.at += 1;
        }
    }

    /// Goes behind a text and returns what stands in its quotes.
    fn text(&mut self) -> &[u8] {
        let from = self.at + 1;
        self.at = from;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        let end = self.at.min(self.bytes.len());
        self.at += 1;
        &self.bytes[from.min(end)..end]
    }

    /// Goes behind a value.
    fn value(&mut self) {
        self.space();
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.text();
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ if depth > 0 => self.at += 1,
                _ => {
                    while self.peek().is_some_and(|byte| !b",]}".contains(&byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Enters the object here, to the value of `key`.
    fn enter(&mut self, key: &str) -> bool {
        self.space();
        if self.peek() != Some(b'{') {
            return false;
        }
        self.at += 1;
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return false;
            }
            let is_it = self.text() == key.as_bytes();
            self.space();
            if is_it {
                return true;
            }
            self.value();
        }
    }

    /// Calls `seen` at the beginning of each entry of the list here.
    fn entries(&mut self, mut seen: impl FnMut(&Self)) {
        self.space();
        if self.peek() != Some(b'[') {
            return;
        }
        self.at += 1;
        self.space();
        while self.peek().is_some_and(|byte| byte != b']') {
            seen(self);
            let before = self.at;
            self.value();
            self.space();
            if self.at == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_line_where_they_begin() {
        let text =
            "{\"a\": [1, {\"links\": []}],\n \"links\":\n [ {\"x\": \"}]\\\"\"},\n\n  {\"x\": 2}, 7,\n \"t\"\n]}";
        let lines = Lines::new(text);
        let found: Vec<String> = (0..4).map(|number| lines.of(&["links"], number)).collect();
        assert_eq!(found, ["3", "5", "5", "6"]);
        assert_eq!(lines.of(&["none"], 3), "1");
        assert_eq!(Lines::new("[\n1,\n[2,\n3], 4]").of(&[], 2), "4");
        assert_eq!(Lines::new("").of(&["a"], 2), "1");
    }
}
