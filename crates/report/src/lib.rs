//! Reports of records on disk: one self-contained page for everything in a directory, of a scenario, of a comparison.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod book;
mod chart;
pub mod comparison;
mod decomposition;
mod figure;
pub mod findings;
mod palette;
mod parts;
pub mod picture;
pub mod view;

pub use book::Book;

use meshpace_lab::register::Register;
use meshpace_lab::register::collection::Collection;
use std::path::{Path, PathBuf};

/// The page.
pub const PAGE: &str = "index.html";

/// Writes the report of `collections`, which come from `root`, replacing the one that is there. It goes into that directory, or
/// to `page`, without links to the records then: it is read elsewhere. Scenarios are linked to the page of `meshpace view --export`
/// at `viewer`, if that is given. Returns its path.
///
/// # Errors
/// If none of them is of a registered experiment, or the page cannot be written.
pub fn write(
    root: &Path,
    collections: &[Collection],
    register: &Register,
    page: Option<&Path>,
    viewer: Option<&str>,
) -> Result<PathBuf, String> {
    if collections.iter().all(|collection| collection.runs.is_none()) {
        let titles: Vec<&str> = collections.iter().map(|collection| collection.made.scenario.as_str()).collect();
        return Err(format!(
            "{}: these are records of \"{}\", which is no registered experiment; a report can be made of those",
            root.display(),
            titles.join("\", \"")
        ));
    }
    let links = page.is_none().then_some(root);
    let text = Book { register, collections, links, viewer }.render();
    let path = page.map_or_else(|| root.join(PAGE), Path::to_owned);
    parts::write(&path, &text)?;
    Ok(path)
}
