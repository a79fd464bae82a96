//! Keys of encrypted connections in a file, so that captures can be read afterwards.
//!
//! ```text
//! # lines like this are comments
//! TPA_KEY 0102030405060708 000102..1f
//! TPA_KEY_AES 1112131415161718 202122..3f
//! ```
//!
//! One line per direction of a connection: its cipher (ChaCha20-Poly1305, or AES-256-GCM), the tag that its datagrams begin with, and its first
//! key; later keys follow from that. As
//! TLS's key logs (draft-ietf-tls-keylogfile) it is for finding faults: whoever has the file reads what the connections carried.

use super::keys;
use crate::tpa::session::cipher::Cipher;
use crate::tpa::session::handshake::Tag;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Comment that is added before any keys.
const COMMENT: &str = "# Keys of TPA over UDP: whoever has them reads what the connections carried.\n";

/// The word that a line of this cipher begins with.
pub(crate) fn word(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::ChaCha20Poly1305 => "TPA_KEY",
        Cipher::Aes256Gcm => "TPA_KEY_AES",
    }
}

/// A file that keys are added to.
#[derive(Debug)]
pub struct KeyLog {
    path: PathBuf,
    /// None once writing has failed, and why.
    file: Mutex<Result<File, io::ErrorKind>>,
}

impl KeyLog {
    /// Adds to the file at `path`, beginning with a comment; makes one that only its owner may read if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be opened, made or written.
    pub fn append(path: &Path) -> io::Result<KeyLog> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(explain)?;
        // A file that takes nothing is told before there are keys to be lost.
        file.write_all(COMMENT.as_bytes()).map_err(explain)?;
        Ok(KeyLog { path: path.to_owned(), file: Mutex::new(Ok(file)) })
    }

    /// Notes the keys of both directions, each with the tag that its datagrams begin with.
    pub(crate) fn note(&self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]) {
        let word = word(cipher);
        let lines = directions.map(|(tag, key)| format!("{word} {tag:016x} {}\n", keys::write(key))).concat();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // In one write, as others may add to the same file.
        if let Ok(open) = &mut *file
            && let Err(error) = open.write_all(lines.as_bytes())
        {
            *file = Err(error.kind());
        }
    }

    /// Checks that all keys have been written.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let explain = |kind: &io::ErrorKind| io::Error::new(*kind, format!("{}: {kind}", self.path.display()));
        file.as_ref().map(|_| ()).map_err(explain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_takes_nothing_is_told_before_there_are_keys() {
        let error = KeyLog::append(Path::new("/dev/full")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }

    #[test]
    fn keys_that_could_not_be_written_are_told_afterwards() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let log = KeyLog { path: "/dev/full".into(), file: Mutex::new(Ok(file)) };
        assert!(log.check().is_ok());
        log.note(Cipher::Aes256Gcm, [(1, &[2; 32]), (3, &[4; 32])]);
        assert_eq!(log.check().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
