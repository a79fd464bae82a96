//! Line numbers of the entries of a JSON document. A parsed value does not contain them, and an
//! error in a map or in a dump names the line.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Key of an entry of an object, and the entry's line. The key is empty in a list.
type Entry = (String, usize);

/// Line numbers of the entries of a document. Those of a list or an object are determined when they
/// are requested for the first time.
pub struct Lines<'a> {
    text: &'a str,
    known: RefCell<BTreeMap<String, Vec<Entry>>>,
}

impl<'a> Lines<'a> {
    /// Creates the index of a document, which must be correct JSON.
    pub fn new(text: &'a str) -> Lines<'a> {
        Lines { text, known: RefCell::default() }
    }

    /// Line of entry `number` of the list at this path; 1 if there is no such entry. Each step of
    /// the path is the key of an object, or the number of an entry of a list.
    pub fn of(&self, path: &[&str], number: usize) -> String {
        self.line(path, |entries| entries.get(number))
    }

    /// Line of entry `key` of the object at this path; 1 if there is no such entry. If several
    /// entries have the key, the last one counts, as it does for the parser of the document.
    pub fn of_key(&self, path: &[&str], key: &str) -> String {
        self.line(path, |entries| entries.iter().rfind(|(known, _)| known == key))
    }

    fn line(&self, path: &[&str], pick: impl Fn(&[Entry]) -> Option<&Entry>) -> String {
        let mut known = self.known.borrow_mut();
        let entries = known.entry(path.join("\n")).or_insert_with(|| self.entries(path));
        pick(entries).map_or(1, |(_, line)| *line).to_string()
    }

    fn entries(&self, path: &[&str]) -> Vec<Entry> {
        let mut scan = Scan { bytes: self.text.as_bytes(), at: 0 };
        if !path.iter().all(|key| scan.enter(key)) {
            return Vec::new();
        }
        let (mut counted, mut line, mut found) = (0, 1, Vec::new());
        scan.entries(|scan, at, key| {
            line += scan.bytes[counted..at].iter().filter(|byte| **byte == b'\n').count();
            counted = at;
            found.push((key, line));
        });
        found
    }
}

/// Scanner of a document, with its current position.
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

    /// Skips a string and returns the bytes between its quotes.
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

    /// Skips a value.
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

    /// Moves to the value of `key` in the object or list at the current position. Returns false if
    /// there is no such value.
    fn enter(&mut self, key: &str) -> bool {
        self.space();
        match self.peek() {
            Some(b'{') => self.enter_object(key.as_bytes()),
            Some(b'[') => key.parse().is_ok_and(|number| self.enter_list(number)),
            _ => false,
        }
    }

    fn enter_object(&mut self, key: &[u8]) -> bool {
        self.at += 1;
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return false;
            }
            let is_it = self.text() == key;
            self.space();
            if is_it {
                return true;
            }
            self.value();
        }
    }

    fn enter_list(&mut self, number: usize) -> bool {
        self.at += 1;
        for _ in 0..number {
            self.value();
        }
        self.space();
        self.peek().is_some_and(|byte| byte != b']')
    }

    /// Calls `seen` with the position and the key of each entry of the object or list at the
    /// current position.
    fn entries(&mut self, mut seen: impl FnMut(&Self, usize, String)) {
        self.space();
        let is_object = match self.peek() {
            Some(b'[') => false,
            Some(b'{') => true,
            _ => return,
        };
        self.at += 1;
        self.space();
        while self.peek().is_some_and(|byte| byte != b']' && byte != b'}') {
            let before = self.at;
            let key = if is_object { String::from_utf8_lossy(self.text()).into_owned() } else { String::new() };
            seen(self, before, key);
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
        assert_eq!(Lines::new("[\n1,\n[2,\n3], 4]").of(&["1"], 1), "4");
        assert_eq!(Lines::new("[\n1,\n[2,\n3], 4]").of(&["7"], 1), "1");
        let keyed = Lines::new("{\"n\":\n {\"a\": {\"b\": 1},\n\n  \"b\":\n 2,\n \"a\": 3}}");
        assert_eq!(["a", "b", "c"].map(|key| keyed.of_key(&["n"], key)), ["6", "4", "1"]);
        assert_eq!(Lines::new("").of(&["a"], 2), "1");
    }
}
