//! Outline of a scenario, or outlines of all scenarios of a campaign in their order.

use super::{Identity, Outline, Settings};
use crate::PART;
use crate::files::Load;
use crate::joint::Part;
use crate::sweep::Values;
use meshpace_settings::diagnostic::Source;
use std::collections::BTreeMap;

/// Outlines in order. In a campaign of several scenarios, each has its part.
#[derive(Debug)]
pub struct Outlines(Vec<(Option<Part>, Outline)>);

impl Outlines {
    /// Reads the outline of a text with its arguments, or the outlines of `parts` if there are any.
    /// `files` contains the SHA-256 of each file that they name. `None` if a text is not a valid
    /// scenario.
    pub fn read(source: &Source, parts: &[Part], files: &BTreeMap<String, String>) -> Option<Outlines> {
        if parts.is_empty() {
            return Some(Outlines(vec![(None, Outline::read(source, files.clone())?)]));
        }
        let one = |part: &Part| {
            let own = files.iter().map(|(name, digest)| (part.own_name_of(name).to_owned(), digest.clone()));
            Some((Some(part.clone()), Outline::read(&part.source(), own.collect())?))
        };
        parts.iter().map(one).collect::<Option<Vec<_>>>().map(Outlines)
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.0.iter().map(|(_, outline)| outline.points()).sum()
    }

    /// Adds to every point a setting that is not in a file, such as a pacing rule written in
    /// another language.
    pub fn add(&mut self, key: &str, meaning: &str, written: &str) {
        self.0.iter_mut().for_each(|(_, outline)| outline.add(key, meaning, written));
    }

    /// Values of point `number` as the JSON object that identifies the point in records; `None` if
    /// there is no such point.
    pub fn key(&self, number: usize) -> Option<String> {
        let (part, outline, number) = self.at(number)?;
        let Some(part) = part else { return Some(outline.key(number)) };
        let (values, _) = outline.point(number);
        let name = (PART.to_owned(), part.name.clone().into());
        Some(serde_json::Value::Object(std::iter::once(name).chain(values).collect()).to_string())
    }

    /// Identity of each point, in order.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        self.0.iter().flat_map(|(_, outline)| outline.identities())
    }

    /// Values and settings of point `number`; `None` if there is no such point.
    pub fn point(&self, number: usize) -> Option<(Values, Settings)> {
        let (part, outline, number) = self.at(number)?;
        let (values, settings) = outline.point(number);
        let name = part.map(|part| (PART.to_owned(), part.name.clone().into()));
        Some((name.into_iter().chain(values).collect(), settings))
    }

    /// Builds point `number` with files from `load`; see [`Outline::built`].
    pub fn built(&self, number: usize, load: Load<'_>) -> Option<[u8; 32]> {
        let (part, outline, number) = self.at(number)?;
        outline.built(number, &|name| load(&campaign_name(part, name)))
    }

    /// True if point `number` writes `key` with its default: see [`Outline::is_default`].
    pub fn is_default(&self, number: usize, key: &str, load: Load<'_>) -> bool {
        let Some((part, outline, number)) = self.at(number) else { return false };
        outline.is_default(number, key, &|name| load(&campaign_name(part, name)))
    }

    /// True if `text` occurs as a value. A file of that name may then be one that a scenario reads.
    pub fn names(&self, text: &str) -> bool {
        self.0.iter().any(|(_, outline)| outline.names(text))
    }

    /// Outline that contains point `number`, its part, and the number of the point within the
    /// outline.
    fn at(&self, mut number: usize) -> Option<(Option<&Part>, &Outline, usize)> {
        for (part, outline) in &self.0 {
            match number.checked_sub(outline.points()) {
                Some(beyond) => number = beyond,
                None => return Some((part.as_ref(), outline, number)),
            }
        }
        None
    }
}

/// What the campaign calls a file that a part names.
fn campaign_name(part: Option<&Part>, name: &str) -> String {
    part.map_or_else(|| name.to_owned(), |part| part.name_of(name).display().to_string())
}
