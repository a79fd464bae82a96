//! The outline of a scenario, or those of the scenarios of a campaign one after the other.

use super::{Identity, Outline, Settings};
use crate::files::Load;
use crate::joint::{PART, Part};
use crate::sweep::Values;
use meshpace_settings::diagnostic::Source;
use std::collections::BTreeMap;

/// Outlines in order, each with its part of the campaign if there is one.
#[derive(Debug)]
pub struct Outlines(Vec<(Option<Part>, Outline)>);

impl Outlines {
    /// Reads the outline of a text with its arguments, or those of the parts if it is a campaign. `files`
    /// has the SHA-256 of each file that they name. `None` if a text is no scenario.
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

    /// Adds a setting that stands in no file, such as a rule of another language, to every point.
    pub fn add(&mut self, key: &str, meaning: &str, written: &str) {
        self.0.iter_mut().for_each(|(_, outline)| outline.add(key, meaning, written));
    }

    /// The values of a point as the JSON object that identifies it in records; `None` if there is no such point.
    pub fn key(&self, number: usize) -> Option<String> {
        let (part, outline, number) = self.at(number)?;
        let Some(part) = part else { return Some(outline.key(number)) };
        let (values, _) = outline.point(number);
        let name = (PART.to_owned(), part.name.clone().into());
        Some(serde_json::Value::Object(std::iter::once(name).chain(values).collect()).to_string())
    }

    /// The identity of each point, in their order.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        self.0.iter().flat_map(|(_, outline)| outline.identities())
    }

    /// The values and the settings of point `number`; `None` if there is no such point.
    pub fn point(&self, number: usize) -> Option<(Values, Settings)> {
        let (part, outline, number) = self.at(number)?;
        let (values, settings) = outline.point(number);
        let name = part.map(|part| (PART.to_owned(), part.name.clone().into()));
        Some((name.into_iter().chain(values).collect(), settings))
    }

    /// Builds point `number` with files from `load`: see [`Outline::built`].
    pub fn built(&self, number: usize, load: Load<'_>) -> Option<[u8; 32]> {
        let (part, outline, number) = self.at(number)?;
        match part {
            Some(part) => outline.built(number, &|name| load(&part.name_of(name).display().to_string())),
            None => outline.built(number, load),
        }
    }

    /// True if the string occurs as a value: then a file of that name may be one that a scenario reads.
    pub fn names(&self, text: &str) -> bool {
        self.0.iter().any(|(_, outline)| outline.names(text))
    }

    /// The outline that has point `number`, and the number of the point in it.
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
