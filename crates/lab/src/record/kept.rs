//! Copies of the files that scenarios name. A directory of records keeps each content as
//! `files/SHA256`, so that a run can be repeated and compared after the original files are gone.

use super::write::{make_directory, write_whole};
use meshpace_scenario::{Files, LARGEST_FILE};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the directory with the copies, inside the directory of records.
pub const FILES: &str = "files";
/// Number of hexadecimal digits of a SHA-256 digest.
const DIGITS: usize = 64;

/// Sources of the contents of a scenario's files. All values of this type are equal, because two
/// scenarios are compared by the digests of their files.
#[derive(Clone, Default, Debug)]
pub struct Contents {
    /// Contents in memory, if this program read the scenario from its files.
    pub read: Arc<Files>,
    /// Directory of records that keeps the files; `None` if there is none.
    pub directory: Option<PathBuf>,
}

impl PartialEq for Contents {
    fn eq(&self, _: &Contents) -> bool {
        true
    }
}

impl Contents {
    /// Returns the content of the file `name`, whose digest is `digest`.
    ///
    /// # Errors
    /// Why the content is not available.
    pub fn load(&self, name: &str, digest: &str) -> Result<Vec<u8>, String> {
        if let Some((_, bytes)) = self.read.iter().find(|(known, _)| known.as_os_str() == name) {
            return Ok(bytes.clone());
        }
        let directory =
            self.directory.as_ref().ok_or_else(|| format!("{name}: the directory does not keep its content"))?;
        read(directory, digest).map_err(|why| format!("{name}: {why}"))
    }
}

/// Returns the SHA-256 digest in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True if the directory of records keeps a file with this digest.
pub fn has(directory: &Path, digest: &str) -> bool {
    place(directory, digest).is_some_and(|place| place.is_file())
}

/// Stores a file in the directory of records, under the name of its digest.
///
/// # Errors
/// Any error of the file system.
pub fn keep(directory: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = directory.join(FILES);
    make_directory(&place)?;
    write_whole(&place, &sha256(bytes), bytes)
}

/// Reads a file that a directory of records keeps, and checks its digest.
///
/// # Errors
/// If the file is missing or too large, or if its content does not have this digest.
pub fn read(directory: &Path, digest: &str) -> Result<Vec<u8>, String> {
    let place = place(directory, digest).ok_or_else(|| format!("{digest:?} is not a SHA-256"))?;
    let shown = |why: &dyn std::fmt::Display| format!("{}: {why}", place.display());
    let length = std::fs::metadata(&place).map_err(|error| shown(&error))?.len();
    if length > LARGEST_FILE {
        return Err(shown(&format_args!("{length} bytes are more than a file of a scenario can have")));
    }
    let bytes = std::fs::read(&place).map_err(|error| shown(&error))?;
    if sha256(&bytes) != digest {
        return Err(shown(&"its content does not match the SHA-256 in its name"));
    }
    Ok(bytes)
}

/// Path of a kept file. `None` if `digest`, which comes from a manifest, is not a valid SHA-256
/// digest.
fn place(directory: &Path, digest: &str) -> Option<PathBuf> {
    let is_digest = digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| directory.join(FILES).join(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_kept_by_its_content_and_a_changed_one_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        keep(scratch.path(), b"abc").unwrap();
        // The digest of "abc" in FIPS 180-2.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(has(scratch.path(), digest) && !has(scratch.path(), &digest.replace('b', "c")));
        assert_eq!(read(scratch.path(), digest).unwrap(), b"abc");
        let contents = Contents { read: Arc::default(), directory: Some(scratch.path().to_owned()) };
        assert_eq!(contents.load("map.csv", digest).unwrap(), b"abc");
        assert!(Contents::default().load("map.csv", digest).is_err());
        std::fs::write(scratch.path().join(FILES).join(digest), "abd").unwrap();
        let refused = contents.load("map.csv", digest).unwrap_err();
        assert!(refused.contains("map.csv") && refused.contains("does not match"), "{refused}");
        for strange in ["", "../../etc/passwd", &digest[1..], &format!("{digest}0")] {
            assert!(read(scratch.path(), strange).is_err() && !has(scratch.path(), strange), "{strange}");
        }
    }
}
