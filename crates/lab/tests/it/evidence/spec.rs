//! `validation/tables.toml`: the sources of the numbers of each table.

use serde::Deserialize;
use std::collections::BTreeMap;

/// All tables of results.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Tables that a command computes.
    pub simulated: Vec<Simulated>,
    /// Tables that were measured in real time.
    pub measured: Vec<Measured>,
    /// Tables whose command is named but not run by the tests.
    pub named: Vec<Named>,
    /// All other tables, page by page.
    pub others: Vec<Other>,
}

/// A table that a command computes.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    /// Page, relative to the root of the repository.
    pub page: String,
    /// Header of the table, as on the page.
    pub header: String,
    /// Command, as on the page.
    pub command: String,
    /// True if every `./check` computes it.
    #[serde(default)]
    pub sample: bool,
    /// The runs of each computed row, by the first cell of the row.
    pub rows: BTreeMap<String, Place>,
    /// Content of each column but the first.
    pub columns: Vec<Place>,
    /// Content of a cell, unless its row or its column defines it: text that contains `{field unit
    /// digits}`, with `±` for the interval.
    #[serde(default)]
    pub show: String,
}

/// Selection of runs, and the content of cells from them.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Conditions in the format of `--where`.
    #[serde(default, rename = "where")]
    pub conditions: Vec<String>,
    /// Content of a cell.
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
    /// Page, relative to the root of the repository.
    pub page: String,
    /// Header of the table, as on the page.
    pub header: String,
    /// Command with which it was measured.
    pub command: String,
    /// Date of the measurement.
    pub date: String,
    /// Commit that added the numbers.
    pub commit: String,
    /// Measured files and folders, relative to the root of the repository.
    pub code: Vec<String>,
}

impl Measured {
    /// Sentence about the measurement that the page must contain.
    pub fn note(&self) -> String {
        format!("Numbers of {}, commit {}: `{}`", self.date, self.commit, self.command)
    }
}

/// A table whose numbers come from a command that the tests do not run.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Page, relative to the root of the repository.
    pub page: String,
    /// Header of the table, as on the page.
    pub header: String,
    /// Command, as in the section of the table.
    pub command: String,
}

/// The other tables of a page, whose numbers come from none of the commands listed above.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// Page, relative to the root of the repository.
    pub page: String,
    /// Source of the numbers.
    pub from: String,
}

impl Tables {
    /// Parses the file.
    pub fn parse(text: &str) -> Tables {
        toml::from_str(text).unwrap_or_else(|error| panic!("validation/tables.toml: {error}"))
    }

    /// Page and header of all tables that are listed individually.
    pub fn listed(&self) -> impl Iterator<Item = (&str, &str)> {
        let simulated = self.simulated.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        let measured = self.measured.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        let named = self.named.iter().map(|table| (table.page.as_str(), table.header.as_str()));
        simulated.chain(measured).chain(named)
    }
}
