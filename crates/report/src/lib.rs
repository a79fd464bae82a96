//! Reports from records on disk. A report is one self-contained page about a whole directory of
//! experiments, about a scenario, or about a comparison.
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

/// File name of the page.
pub const PAGE: &str = "index.html";

/// Writes the report of `collections`, which come from the directory `root`, and returns its path.
/// An existing report is replaced.
///
/// The report is written into `root`, or to `page` if that is given. A report at `page` does not
/// link to the records, because it is read elsewhere. Scenarios are linked to the page of `meshpace
/// view --export` at `viewer`, if that is given.
///
/// # Errors
/// If no collection is of a registered experiment, or if the page cannot be written.
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
            "{}: these are records of \"{}\", which is not a registered experiment; this report needs registered experiments",
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
