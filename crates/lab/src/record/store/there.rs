//! State of a directory before a campaign works in it.

use super::super::directory::{Manifest, RECORDS, UNFINISHED};
use super::super::given::Given;
use super::super::rules;
use super::named;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Files and scenarios that a directory already has.
#[derive(Default)]
pub struct There {
    /// The finished file, and the manifest of the directory.
    pub records: Option<(File, Manifest)>,
    /// The unfinished file.
    pub unfinished: Option<File>,
    /// Scenarios of both files.
    pub sources: Vec<Given>,
    /// True if the finished file is going to be replaced. Its records do not count then.
    pub replaces: bool,
}

/// Error for a directory that holds something else.
fn occupied(directory: &Path, what: &str) -> io::Error {
    let message =
        format!("{} has {what}; replace it with --force, or choose another directory with --out", directory.display());
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

/// Error for a directory with records of the same point that were made with other settings. `what`
/// describes the conflict and the remedies.
pub fn conflicting(directory: &Path, what: &str) -> io::Error {
    let message = format!("{} has {what}; replace everything with --force", directory.display());
    io::Error::new(io::ErrorKind::AlreadyExists, message)
}

impl There {
    /// Looks for records in `directory` that the campaign of `manifest` can extend.
    pub fn find(directory: &Path, manifest: &Manifest) -> io::Result<There> {
        let file = |name: &str| match File::open(directory.join(name)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named(&directory.join(name), &error)),
        };
        let (records, unfinished) = (file(RECORDS)?, file(UNFINISHED)?);
        let Ok(beside) = Manifest::read(directory) else {
            return Err(occupied(directory, "a manifest.json that cannot be read"));
        };
        let head = match &unfinished {
            Some(file) => {
                let mut line = Vec::new();
                let read = BufReader::new(file).read_until(b'\n', &mut line);
                read.map_err(|error| named(&directory.join(UNFINISHED), &error))?;
                serde_json::from_slice::<Manifest>(&line).ok()
            }
            None => None,
        };
        // The unfinished file was begun after the finished one was written, so its manifest takes
        // precedence.
        let Some(last) = head.as_ref().or(beside.as_ref()) else {
            return match (unfinished, records) {
                (Some(_), _) => Err(occupied(directory, "an unfinished campaign that cannot be read")),
                (None, Some(_)) => Err(occupied(directory, "a records.jsonl without a manifest")),
                (None, None) => Ok(There::default()),
            };
        };
        let unfinished_told = if head.is_some() { "the unfinished " } else { "" };
        let refuse = |what: String| occupied(directory, &format!("{unfinished_told}{what}"));
        last.same_model(manifest).map_err(refuse)?;
        let now = manifest.sources.last().map(|given| (given, manifest.scenario_sha256.as_str()));
        let mut sources = last.given(now);
        sources.iter_mut().for_each(|given| given.find_contents(now.map(|(now, _)| now), directory));
        let rules = manifest.sources.last().map_or(&[][..], |given| &given.rules);
        if let Some(changed) = sources.iter().find_map(|given| rules::difference(&given.rules, rules)) {
            return Err(refuse(format!("records of {changed}")));
        }
        let replaces = match (&head, &beside) {
            (Some(head), _) if !head.sources.is_empty() => head.replaces,
            // A version that did not list scenarios kept only one campaign in a directory.
            (Some(head), Some(beside)) => head.scenario_sha256 != beside.scenario_sha256,
            _ => false,
        };
        let records = records.zip(beside).filter(|_| !replaces);
        Ok(There { records, unfinished, sources, replaces })
    }
}
