//! Generates the page `docs/keys.md`.

use super::{Key, Level, all, sections};

const HEAD: &str = "\
# Keys of a scenario

Every key that a scenario may have, as `meshpace keys` prints it; `meshpace keys flow.transport` prints one part, `--format json` one object
per line, and `meshpace keys --schema` a JSON Schema for editors. Keys for experts come last: they matter only for studies of that component. Names are as for `--set` and sweeps; `flow.0.transport` means the first flow
alone. The source of a key is a paper of [terms](terms.md), a standard or a program; a key without one is this program's own. A default in words depends on the rest: *by name* is that of the transport that is named, *the radio's* that of `[radio]`. This page is
written by the program.
";

/// Text of the page.
pub fn page() -> String {
    let all = all();
    let mut text = HEAD.to_owned();
    let top: Vec<&Key> =
        all.iter().filter(|key| !key.name.contains('.') && !sections(&all).contains(&key.name.as_str())).collect();
    part(&mut text, "Top", &top);
    for section in sections(&all) {
        let below: Vec<&Key> = all.iter().filter(|key| key.name.split('.').next() == Some(section)).collect();
        part(&mut text, &format!("`{section}`"), &below);
    }
    text
}

fn part(text: &mut String, title: &str, keys: &[&Key]) {
    text.push_str(&format!("\n## {title}\n"));
    rows(text, keys.iter().filter(|key| key.level == Level::Basic));
    if keys.iter().any(|key| key.level == Level::Expert) {
        text.push_str(&format!("\n### {title}, for experts\n"));
        rows(text, keys.iter().filter(|key| key.level == Level::Expert));
    }
}

fn rows<'a>(text: &mut String, keys: impl Iterator<Item = &'a &'a Key>) {
    text.push_str("\n| Key | What may be written | Default | Meaning | Source |\n|---|---|---|---|---|\n");
    for key in keys {
        let default = match key.default.as_deref() {
            None => String::new(),
            Some(words) if words.starts_with('(') => words.trim_matches(['(', ')']).to_owned(),
            Some(value) => format!("`{value}`"),
        };
        text.push_str(&format!(
            "| `{}` | {} | {default} | {} | {} |\n",
            key.name,
            key.takes(),
            key.meaning,
            key.source
        ));
    }
}
