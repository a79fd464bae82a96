//! A loader for the files that a scenario names (maps, links), because not every program that reads scenarios has a disk (the viewer has none).

use std::path::Path;

/// Gives the content of the file of that name, as the scenario has it; an error names the file and says why.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// What [`crate::Scenario::read`] loads with: relative names start at `directory`.
///
/// # Errors
/// Whatever the file system refuses.
pub fn from_disk(directory: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = directory.join(name);
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}
