//! A directory of records: `records.jsonl`, one line for each run, and `manifest.json`, which says what made them.

use super::given::Given;
use super::kept::Contents;
use super::line::FORMAT;
use super::rules::Rule;
use meshpace_sim::MODEL_REVISION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The records, one line of JSON each.
pub const RECORDS: &str = "records.jsonl";
/// The records of a campaign that is under way, after its manifest.
pub const UNFINISHED: &str = "unfinished.jsonl";
/// Their manifest.
pub const MANIFEST: &str = "manifest.json";
/// What to do where a directory of records is expected.
pub const MADE_BY: &str =
    "name a directory of records, as meshpace run FILE --out DIR and meshpace reproduce make them";

/// Manifest of a directory of records.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of the scenario with its `--set` arguments and the files it names.
    pub scenario_sha256: String,
    /// The scenario as it was read.
    #[serde(default)]
    pub scenario_text: String,
    /// The `--set` arguments.
    #[serde(default)]
    pub set: Vec<String>,
    /// Version of meshpace.
    pub version: String,
    /// Format of the records, [`FORMAT`]; 0 before there were formats.
    #[serde(default)]
    pub format: u32,
    /// Revision of the model, [`MODEL_REVISION`]; 0 before there were revisions.
    #[serde(default)]
    pub model: u32,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds that every point has of which there are records.
    pub seeds: u64,
    /// Points of the sweep; of a finished campaign those of which there are records.
    pub points: usize,
    /// Lines of `records.jsonl`.
    #[serde(default)]
    pub records: usize,
    /// Runs that failed and have no record.
    pub failed_runs: usize,
    /// Threads.
    #[serde(default)]
    pub jobs: usize,
    /// Name of the machine.
    #[serde(default)]
    pub host: String,
    /// Time the campaign took, seconds.
    #[serde(default)]
    pub wall_time_s: f64,
    /// Pacing rules of another language, in the order in which the scenario got them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The registered experiment that the runs belong to.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Quality of the campaign, which sets the number of runs: "quick" or "paper"; none if the seeds were given.
    #[serde(default)]
    pub quality: Option<String>,
    /// True if all runs have been made.
    #[serde(default = "yes")]
    pub complete: bool,
    /// The scenarios that were run into the directory, in order; the other fields describe the last one. Empty in directories of
    /// versions that did not list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Given>,
    /// True while the records are made anew: those of `records.jsonl` are about to be replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replaces: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn yes() -> bool {
    true
}

impl Manifest {
    /// The manifest of a directory; None if it has none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Manifest>, String> {
        let path = directory.join(MANIFEST);
        let shown = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                shown(&format_args!("{error}; the command that made the directory makes it again with --force"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(shown(&error)),
        }
    }

    /// The same with pacing rules of another language, and the digest of the scenario with these.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<Rule>, scenario_sha256: String) -> Manifest {
        self.sources.iter_mut().for_each(|given| given.rules.clone_from(&rules));
        Manifest { rules, scenario_sha256, ..self }
    }

    /// The same for a directory that keeps no files, because another one keeps them.
    #[must_use]
    pub fn without_files(mut self) -> Manifest {
        self.sources.iter_mut().for_each(|given| given.contents = Contents::default());
        self
    }

    /// Checks that both are of the same format and of the same revision of the model.
    ///
    /// # Errors
    /// The format or revision that this one is of instead, in words.
    pub fn same_model(&self, other: &Manifest) -> Result<(), String> {
        if self.format != other.format {
            Err(format!("records of {}", format_told(self.format)))
        } else if self.model != other.model {
            Err(format!("records of {}, this is {}", model_told(self.model), other.model))
        } else {
            Ok(())
        }
    }

    /// The scenarios that it lists; of a manifest that lists none, the one that it describes. `now` is the one that is given today, with its
    /// digest ([`Given::proved`]).
    pub fn given(&self, now: Option<(&Given, &str)>) -> Vec<Given> {
        if !self.sources.is_empty() {
            return self.sources.clone();
        }
        let given = Given {
            scenario: self.scenario.clone(),
            text: self.scenario_text.clone(),
            set: self.set.clone(),
            first_seed: self.first_seed,
            seeds: self.seeds,
            files: BTreeMap::new(),
            rules: self.rules.clone(),
            version: self.version.clone(),
            unlisted: None,
            parts: Vec::new(),
            contents: Contents::default(),
        };
        vec![given.proved(&self.scenario_sha256, now)]
    }

    /// Revision of the model and format, in words.
    pub fn model_told(&self) -> String {
        format!("{}, {}", model_told(self.model), format_told(self.format))
    }

    /// What a reader of the records should know: that they are of another revision of the model. `None` if they are of this one.
    ///
    /// # Errors
    /// Why this program cannot read them, and what to do.
    pub fn strange(&self) -> Result<Option<String>, String> {
        if self.format > FORMAT {
            return Err(format!(
                "these are records of {}, and this program reads {FORMAT}: use a newer meshpace",
                format_told(self.format)
            ));
        }
        Ok((self.model != MODEL_REVISION).then(|| {
            format!(
                "these are records of {}, and this program is revision {MODEL_REVISION}, which gives other results: they can be read and compared, \
                 and not extended",
                model_told(self.model)
            )
        }))
    }

    /// The command that makes these records again and shows `id` of the register in a directory, or of the one that is part of the program.
    pub fn command(&self, id: &str, register: Option<&Path>) -> String {
        let register = register.map(|place| format!(" --register {}", quoted(&place.display().to_string())));
        let register = register.unwrap_or_default();
        match &self.quality {
            Some(quality) => format!("meshpace reproduce {id} --quality {quality}{register}"),
            None => format!("meshpace reproduce {id} --seeds {}{register}", self.seeds),
        }
    }
}

/// A word of a command as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Name of this machine, or of its system.
pub fn host() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = name.unwrap_or_default().trim().to_owned();
    if name.is_empty() { std::env::consts::OS.to_owned() } else { name }
}

fn format_told(format: u32) -> String {
    if format == 0 { "the format without checksums".to_owned() } else { format!("format {format}") }
}

fn model_told(model: u32) -> String {
    if model == 0 { "no revision of the model".to_owned() } else { format!("revision {model} of the model") }
}

/// The directory itself if it has a manifest, or those in it that have one, by name.
///
/// # Errors
/// If it cannot be read.
pub fn campaigns(root: &Path) -> Result<Vec<PathBuf>, String> {
    let has_manifest = |directory: &Path| directory.join(MANIFEST).is_file();
    if has_manifest(root) {
        return Ok(vec![root.to_owned()]);
    }
    let shown = |error: io::Error| format!("{}: {error}; {MADE_BY}", root.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(shown)? {
        let path = entry.map_err(shown)?.path();
        if has_manifest(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_a_register_of_ones_own() {
        let made = crate::record::store::tests::manifest();
        let command = |register: Option<&str>| made.command("AP05-F3", register.map(Path::new));
        let plain = command(None);
        assert!(!plain.contains("--register"), "{plain}");
        assert_eq!(command(Some("my/register")), format!("{plain} --register my/register"));
        assert_eq!(command(Some("it's mine")), format!("{plain} --register 'it'\\''s mine'"));
    }
}
