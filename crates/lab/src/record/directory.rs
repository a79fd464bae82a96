//! Directory of records: `records.jsonl` with one line for each run, and `manifest.json`, which
//! describes how the records were made.

use super::given::Given;
use super::kept::Contents;
use super::line::FORMAT;
use super::rules::Rule;
use meshpace_sim::MODEL_REVISION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file of records, which has one line of JSON for each run.
pub const RECORDS: &str = "records.jsonl";
/// Name of the file with the records of a campaign in progress. Its first line is the manifest of
/// the campaign.
pub const UNFINISHED: &str = "unfinished.jsonl";
/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Advice for a user who named something else where a directory of records is expected.
pub const MADE_BY: &str = "give a directory of records, which meshpace run FILE --out DIR or meshpace reproduce wrote";

/// Manifest of a directory of records.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of the scenario, its `--set` arguments and the files that it names.
    pub scenario_sha256: String,
    /// Text of the scenario as it was read.
    #[serde(default)]
    pub scenario_text: String,
    /// Arguments of `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Version of meshpace that made the records.
    pub version: String,
    /// Format of the records, [`FORMAT`]; 0 if the manifest is older than the numbering of formats.
    #[serde(default)]
    pub format: u32,
    /// Revision of the model, [`MODEL_REVISION`]; 0 if the manifest is older than the numbering of
    /// revisions.
    #[serde(default)]
    pub model: u32,
    /// The first seed.
    pub first_seed: u64,
    /// Number of seeds that every point has; points without records do not count.
    pub seeds: u64,
    /// Number of points of the sweep. In a finished campaign only points that have records count.
    pub points: usize,
    /// Number of lines of `records.jsonl`.
    #[serde(default)]
    pub records: usize,
    /// Number of runs that failed and therefore have no record.
    pub failed_runs: usize,
    /// Number of threads.
    #[serde(default)]
    pub jobs: usize,
    /// Name of the machine on which the campaign ran.
    #[serde(default)]
    pub host: String,
    /// Duration of the campaign in real time, seconds.
    #[serde(default)]
    pub wall_time_s: f64,
    /// Pacing rules written in another language, in the order in which they were given to the
    /// scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Registered experiment to which the runs belong; `None` if they belong to none.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Quality of the campaign, which determines the number of runs: "quick" or "paper". `None` if
    /// the seeds were given.
    #[serde(default)]
    pub quality: Option<String>,
    /// True if all runs are done.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Scenarios that were run into the directory, in order. The other fields describe the last of
    /// them. The list is empty in directories of versions that did not list scenarios.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Given>,
    /// True while a campaign makes all records anew. Those in `records.jsonl` are going to be
    /// replaced.
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
    /// Reads the manifest of a directory; `None` if the directory has none.
    ///
    /// # Errors
    /// If the manifest cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Manifest>, String> {
        let path = directory.join(MANIFEST);
        let shown = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                shown(&format_args!("{error}; the command that made the directory replaces it with --force"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(shown(&error)),
        }
    }

    /// Returns the manifest with pacing rules of another language. `scenario_sha256` is the digest
    /// of the scenario together with these rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Vec<Rule>, scenario_sha256: String) -> Manifest {
        self.sources.iter_mut().for_each(|given| given.rules.clone_from(&rules));
        Manifest { rules, scenario_sha256, ..self }
    }

    /// Returns the manifest for a directory that does not keep the scenario's files, because
    /// another directory keeps them.
    #[must_use]
    pub fn without_files(mut self) -> Manifest {
        self.sources.iter_mut().for_each(|given| given.contents = Contents::default());
        self
    }

    /// Checks that both manifests have the same format and the same revision of the model.
    ///
    /// # Errors
    /// Describes the format or revision of `self` if it differs from that of `other`.
    pub fn same_model(&self, other: &Manifest) -> Result<(), String> {
        if self.format != other.format {
            Err(format!("records of {}", format_told(self.format)))
        } else if self.model != other.model {
            Err(format!("the records are of {}, but this is {}", model_told(self.model), other.model))
        } else {
            Ok(())
        }
    }

    /// Returns the scenarios that the manifest lists. If it lists none, the result is the one
    /// scenario that its other fields describe. `now` is the current scenario with its digest
    /// ([`Given::proved`]).
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

    /// Describes the revision of the model and the format for messages.
    pub fn model_told(&self) -> String {
        format!("{}, {}", model_told(self.model), format_told(self.format))
    }

    /// Note for a reader if the records are of another revision of the model; `None` if they are of
    /// the current one.
    ///
    /// # Errors
    /// If this program cannot read the records: the reason, and what the user can do.
    pub fn strange(&self) -> Result<Option<String>, String> {
        if self.format > FORMAT {
            return Err(format!(
                "these records are of {}, but this program reads format {FORMAT}: use a newer version of meshpace",
                format_told(self.format)
            ));
        }
        Ok((self.model != MODEL_REVISION).then(|| {
            format!(
                "these records are of {}, but this program has revision {MODEL_REVISION}, which gives other results; they can be read and compared, but not extended",
                model_told(self.model)
            )
        }))
    }

    /// Returns the command that makes these records again and shows the experiment `id`. `register`
    /// is the directory of the register; `None` stands for the register that is built into the
    /// program.
    pub fn command(&self, id: &str, register: Option<&Path>) -> String {
        let register = register.map(|place| format!(" --register {}", quoted(&place.display().to_string())));
        let register = register.unwrap_or_default();
        match &self.quality {
            Some(quality) => format!("meshpace reproduce {id} --quality {quality}{register}"),
            None => format!("meshpace reproduce {id} --seeds {}{register}", self.seeds),
        }
    }
}

/// Quotes a word of a command for a shell, if that is necessary.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Name of this machine, or of its operating system if the name is unknown.
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

/// Returns `root` itself if it has a manifest, and otherwise the directories directly below it that
/// have one, sorted by name.
///
/// # Errors
/// If the directory cannot be read.
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
