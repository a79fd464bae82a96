//! A loader for the files that a scenario names (maps, links), because not every program that reads scenarios has a disk (the viewer has none).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Gives the content of the file of that name, as the scenario has it; an error names the file and says why.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// The longest file that is read, bytes: more than any map or list of links has, and little enough to be refused before memory runs out.
pub const MOST: u64 = 64 << 20;

/// Loader of [`crate::Scenario::read`]: relative names start at `directory`.
///
/// # Errors
/// Whatever the file system refuses, and a file of more than [`MOST`] bytes, as devices are.
pub fn from_disk(directory: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = directory.join(name);
    read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Mark that editors of Windows put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of a file that a person named, without a byte order mark.
///
/// # Errors
/// Whatever the file system refuses, and a file of more than [`MOST`] bytes; the name is not in it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut content)?;
    match content.len() as u64 > MOST {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} MiB", MOST >> 20))),
        false => {
            if content.starts_with(BYTE_ORDER_MARK) {
                content.drain(..BYTE_ORDER_MARK.len());
            }
            Ok(content)
        }
    }
}
