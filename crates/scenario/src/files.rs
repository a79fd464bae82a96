//! Loading of the files that a scenario names, such as maps and lists of links. The loader is a
//! parameter of the reader, because not every program that reads scenarios has a file system. The
//! viewer in the browser has none.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns the content of the file with this name, spelled as in the scenario. An error message
/// names the file and gives the reason.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Largest size of a file that is read, bytes. No map or list of links is longer, and a longer file
/// is refused before memory runs out.
pub const MOST: u64 = 64 << 20;

/// Loader of [`crate::Scenario::read`]. Relative names start at `directory`.
///
/// # Errors
/// Errors of the file system, and a file of more than [`MOST`] bytes. Devices have no end and are
/// refused for that reason.
pub fn from_disk(directory: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = directory.join(name);
    read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Byte order mark, which editors on Windows write at the start of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file that a person named, without its byte order mark.
///
/// # Errors
/// Errors of the file system, and a file of more than [`MOST`] bytes. The error does not contain
/// the name of the file.
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
