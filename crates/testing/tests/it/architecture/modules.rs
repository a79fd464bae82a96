//! The modules of a crate and the uses between them, read from its source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of a module from the root of its crate.
type Name = Vec<String>;

/// Uses between the modules of a folder, with one example of a use between their contents.
type Steps = BTreeMap<(String, String), (Name, Name)>;

/// The modules of a crate.
#[derive(Default)]
pub struct Crate {
    /// Code of each module, without comments and tests.
    code: BTreeMap<Name, String>,
    /// Re-exports of each module, by their name there: the path as it is written.
    exports: BTreeMap<Name, BTreeMap<String, Vec<String>>>,
}

impl Crate {
    /// Reads the sources in `directory`.
    pub fn read(directory: &Path) -> Crate {
        let mut all = Crate::default();
        all.enter(directory, &mut Vec::new());
        all.find_exports();
        all
    }

    /// A crate of the given modules. A module is named by its path with `::`; the empty path is the
    /// root.
    #[cfg(test)]
    fn of(modules: &[(&str, &str)]) -> Crate {
        let mut all = Crate::default();
        for (name, text) in modules {
            let name = name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            all.code.insert(name, plain(text));
        }
        all.find_exports();
        all
    }

    fn enter(&mut self, directory: &Path, at: &mut Name) {
        for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                at.push(stem);
                self.enter(&path, at);
                at.pop();
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let mut name = at.clone();
                if !(stem == "mod" || at.is_empty() && stem == "lib") {
                    name.push(stem);
                }
                self.code.insert(name, plain(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    fn find_exports(&mut self) {
        for (name, code) in &self.code {
            let mut exports = BTreeMap::new();
            for statement in statements(code).0.into_iter().filter(|statement| statement.is_public) {
                for (path, alias) in statement.paths {
                    exports.insert(alias, path);
                }
            }
            self.exports.insert(name.clone(), exports);
        }
    }

    /// Module that defines the item `path`, as written in the module `from`. `None` if the item is
    /// in another crate.
    fn resolve(&self, from: &Name, path: &[String], depth: usize) -> Option<Name> {
        let mut at = from.clone();
        let mut rest = path.iter();
        let first = rest.next()?;
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            child => {
                at.push(child.to_owned());
                if !self.code.contains_key(&at) {
                    return None;
                }
            }
        }
        while let Some(segment) = rest.next() {
            if segment == "super" {
                at.pop();
                continue;
            }
            at.push(segment.clone());
            if self.code.contains_key(&at) {
                continue;
            }
            at.pop();
            // The name is re-exported, perhaps several times.
            let exported = self.exports.get(&at).and_then(|exports| exports.get(segment));
            return match exported.filter(|_| depth < 8) {
                Some(target) => {
                    let target: Vec<String> = target.iter().chain(rest).cloned().collect();
                    Some(self.resolve(&at, &target, depth + 1).unwrap_or(at))
                }
                None => Some(at),
            };
        }
        Some(at)
    }

    /// Uses between modules.
    pub fn uses(&self) -> BTreeSet<(Name, Name)> {
        let mut uses = BTreeSet::new();
        for (name, code) in &self.code {
            let (statements, body) = statements(code);
            let private = statements.into_iter().filter(|statement| !statement.is_public);
            let paths = private.flat_map(|statement| statement.paths).map(|(path, _)| path).chain(inline(&body));
            uses.extend(paths.filter_map(|path| Some((name.clone(), self.resolve(name, &path, 0)?))));
        }
        uses
    }

    /// The cycles, each as a line with its modules and one use for each step.
    pub fn cycles(&self) -> Vec<String> {
        // Within each folder, a use counts as one between the two modules of that folder which
        // contain its ends.
        let mut folders: BTreeMap<Name, Steps> = BTreeMap::new();
        for (from, to) in self.uses() {
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                let steps = folders.entry(from[..common].to_vec()).or_default();
                steps.entry((a.clone(), b.clone())).or_insert((from.clone(), to.clone()));
            }
        }
        let mut cycles = Vec::new();
        for (folder, steps) in folders {
            let reach = reachable(steps.keys());
            let mut seen = BTreeSet::new();
            for (a, others) in &reach {
                if !others.contains(a) || seen.contains(a) {
                    continue;
                }
                let circle: BTreeSet<&String> = others.iter().filter(|b| reach[*b].contains(a)).collect();
                seen.extend(circle.iter().map(|&b| b.clone()));
                let within = steps.iter().filter(|((a, b), _)| circle.contains(a) && circle.contains(b));
                let shown: Vec<String> =
                    within.map(|(_, (from, to))| format!("{} uses {}", from.join("::"), to.join("::"))).collect();
                let names: Vec<&str> = circle.iter().map(|name| name.as_str()).collect();
                let place = if folder.is_empty() { "the crate".to_owned() } else { folder.join("::") };
                cycles.push(format!("in {place}: {}: {}", names.join(", "), shown.join("; ")));
            }
        }
        cycles
    }
}

/// Modules that can be reached from each module in at least one step.
fn reachable<'a>(steps: impl Iterator<Item = &'a (String, String)>) -> BTreeMap<String, BTreeSet<String>> {
    let mut reach: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (a, b) in steps {
        reach.entry(a.clone()).or_default().insert(b.clone());
        reach.entry(b.clone()).or_default();
    }
    loop {
        let mut is_changed = false;
        for a in reach.keys().cloned().collect::<Vec<_>>() {
            let more: BTreeSet<String> = reach[&a].iter().flat_map(|b| reach[b].iter().cloned()).collect();
            let own = reach.get_mut(&a).unwrap();
            let before = own.len();
            own.extend(more);
            is_changed |= own.len() > before;
        }
        if !is_changed {
            return reach;
        }
    }
}

/// The text without comments, and without everything from the first `#[cfg(test)]` on, where this
/// project has its tests.
fn plain(text: &str) -> String {
    let before = text.split("#[cfg(test)]").next().unwrap_or_default();
    before.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// A `use` statement.
struct Statement {
    is_public: bool,
    /// Every path in it, with the name that it gets.
    paths: Vec<(Vec<String>, String)>,
}

/// The `use` statements in a text, and the text without them.
fn statements(code: &str) -> (Vec<Statement>, String) {
    let (mut found, mut left, mut rest) = (Vec::new(), String::new(), code);
    while let Some(place) = rest.find("use ") {
        let line = rest[..place].rsplit('\n').next().unwrap_or_default().trim();
        // The match is neither the end of another word nor in a string.
        if !line.is_empty() && !line.starts_with("pub") {
            left += &rest[..place + 4];
            rest = &rest[place + 4..];
            continue;
        }
        left += &rest[..place];
        let (text, after) = rest[place + 4..].split_once(';').unwrap_or((&rest[place + 4..], ""));
        let mut paths = Vec::new();
        tree(&text.split_whitespace().collect::<Vec<_>>().join(" "), &[], &mut paths);
        found.push(Statement { is_public: line.starts_with("pub"), paths });
        rest = after;
    }
    (found, left + rest)
}

/// The paths of a use tree, `a::{b, c::d as e}`.
fn tree(text: &str, prefix: &[String], into: &mut Vec<(Vec<String>, String)>) {
    let text = text.trim();
    if let Some((head, group)) = text.split_once('{') {
        let prefix: Vec<String> = prefix.iter().cloned().chain(segments(head)).collect();
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (place, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    tree(&group[start..place], &prefix, into);
                    start = place + 1;
                }
                _ => {}
            }
        }
        tree(&group[start..], &prefix, into);
    } else if !text.is_empty() {
        let (path, alias) = text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias)));
        let mut path: Vec<String> = prefix.iter().cloned().chain(segments(path)).collect();
        // `a::{self}` stands for a; `a::*` stands for everything in a.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self" || last == "*") {
            path.pop();
        }
        let alias = alias.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
        into.push((path, alias));
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Paths that begin with `crate::` or `super::` in code without `use` statements.
fn inline(body: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (place, _) in body.match_indices(start) {
            let before = body[..place].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                continue;
            }
            let end = body[place..].find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
            found.push(segments(&body[place..place + end.unwrap_or(body.len() - place)]));
        }
    }
    found
}

#[test]
fn a_circle_is_found_whatever_the_way_it_is_written() {
    let cycles = |modules: &[(&str, &str)]| Crate::of(modules).cycles();
    let root = ("", "pub mod a; pub mod b; pub mod c;\npub use a::A;");
    assert!(cycles(&[root, ("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "")]).is_empty());
    // The cycle is closed in a group, through a re-export, in the middle of code, and through a
    // third module.
    let closing =
        ["use crate::{b::X, a::{self, A}};", "use crate::A;", "fn f() { super::a::f(); }", "use super::a as z;"];
    for back in closing {
        let found = cycles(&[root, ("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", back)]);
        assert_eq!(found.len(), 1, "{back}: {found:?}");
        assert!(found[0].starts_with("in the crate: a, b, c: "), "{found:?}");
    }
    // Tests, comments and re-exports do not count. Nor does the file of a folder itself.
    for none in ["// use crate::a::A;", "pub use crate::a::A;", "#[cfg(test)]\nmod tests { use crate::a::A; }"] {
        assert!(cycles(&[root, ("a", "use crate::b::B;"), ("b", none), ("c", "")]).is_empty(), "{none}");
    }
    let folder =
        [("", "mod a;"), ("a", "mod x; use x::X;\nmod y;"), ("a::x", "use super::S;"), ("a::y", "use super::x::X;")];
    assert!(cycles(&folder).is_empty());
    let folder = [("", "mod a;"), ("a", "mod x;\nmod y;"), ("a::x", "use super::y::Y;"), ("a::y", "use super::x::X;")];
    assert!(cycles(&folder)[0].starts_with("in a: x, y: "));
}
