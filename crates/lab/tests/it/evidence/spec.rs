//! `validation/tables.toml`: where the numbers of each table are from.

use serde::Deserialize;
use std::collections::BTreeMap;

/// All tables of results.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Tables that a command makes.
    pub simulated: Vec<Simulated>,
    /// Tables that were measured in real time.
    pub measured: Vec<Measured>,
    /// Tables whose command is named and not run.
    pub named: Vec<Named>,
    /// All others, page by page.
    pub others: Vec<Other>,
}

/// A table that a command makes.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    /// The page, from the root of the repository.
    pub page: String,
    /// The header of the table, as it stands there.
    pub header: String,
    /// The command, as it stands on the page.
    pub command: String,
    /// True if every `./check` computes it.
    #[serde(default)]
    pub sample: bool,
    /// By the first cell of each row that is computed, which runs it is of.
    pub rows: BTreeMap<String, Place>,
    /// What each column but the first shows.
    pub columns: Vec<Place>,
    /// What a cell shows, unless its row or its column says otherwise: text with `{field unit digits}` in it, and `±` for the
    /// interval.
    #[serde(default)]
    pub show: String,
}

/// Runs and what is shown of them.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Conditions as `--where` takes them.
    #[serde(default, rename = "where")]
    pub conditions: Vec<String>,
    /// What a cell shows.
    #[serde(default)]
    pub show: Option<String>,
    /// True if these cells are not computed.
    #[serde(default)]
    pub is_apart: bool,
}

/// A table that was measured in real time.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The page, from the root of the repository.
    pub page: String,
    /// The header of the table, as it stands there.
    pub header: String,
    /// The command that measured it.
    pub command: String,
    /// The day.
    pub date: String,
    /// The commit that put the numbers there.
    pub commit: String,
    /// What was measured: files and folders, from the root of the repository.
    pub code: Vec<String>,
}

impl Measured {
    /// What the page says of it.
    pub fn note(&self) -> String {
        format!("Numbers of {}, commit {}: `{}`", self.date, self.commit, self.command)
    }
}

/// A table whose numbers a command makes that tests do not run.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The page, from the root of the repository.
    pub page: String,
    /// The header of the table, as it stands there.
    pub header: String,
    /// The command, as it stands in the section of the table.
    pub command: String,
}

/// The other tables of a page, whose numbers no command of the lists above makes.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// The page.
    pub page: String,
    /// Where the numbers are from.
    pub from: String,
}

impl Tables {
    /// Reads the file.
    pub fn parse(text: &str) -> Tables {
        toml::from_str(text).unwrap_or_else(|error| panic!("validation/tables.toml: {error}"))
    }

    /// Page and header of all tables that are listed one by one.
    pub fn listed(&self) -> impl Iterator<Item = (&str, &str)> {
        let simulated = self.simulated.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        let measured = self.measured.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        let named = self.named.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        simulated.chain(measured).chain(named)
    }
}
