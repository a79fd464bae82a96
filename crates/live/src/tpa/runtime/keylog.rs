//! Key log: a file with the keys of encrypted connections, with which captures can be decrypted
//! afterwards.
//!
//! ```text
//! # lines like this are comments
//! TPA_KEY 0102030405060708 000102..1f
//! TPA_KEY_AES 1112131415161718 202122..3f
//! ```
//!
//! The file has one line per direction of a connection. A line contains the cipher
//! (ChaCha20-Poly1305, or AES-256-GCM), the tag with which the datagrams begin, and the first key;
//! later keys are derived from the first. The purpose is debugging, as with the key logs of TLS
//! (draft-ietf-tls-keylogfile): the file lets its reader decrypt the connections.

use super::keys;
use meshpace_session::cipher::Cipher;
use meshpace_session::handshake::Tag;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Comment that is written before any keys.
const COMMENT: &str = "# Keys of TPA over UDP: whoever has them reads what the connections carried.\n";

/// First word of the lines for this cipher.
pub(crate) fn word(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::ChaCha20Poly1305 => "TPA_KEY",
        Cipher::Aes256Gcm => "TPA_KEY_AES",
    }
}

/// File to which keys are appended.
#[derive(Debug)]
pub struct KeyLog {
    path: PathBuf,
    /// The open file, or the error of the first failed write, after which nothing more is written.
    file: Mutex<Result<File, io::ErrorKind>>,
}

impl KeyLog {
    /// Opens the file at `path` for appending and writes a comment. A missing file is created,
    /// readable only by its owner.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, created or written.
    pub fn append(path: &Path) -> io::Result<KeyLog> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(explain)?;
        // Writing at once shows that the file is not writable before any keys are lost.
        file.write_all(COMMENT.as_bytes()).map_err(explain)?;
        Ok(KeyLog { path: path.to_owned(), file: Mutex::new(Ok(file)) })
    }

    /// Records the keys of both directions, each with the tag with which its datagrams begin.
    pub(crate) fn note(&self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]) {
        let word = word(cipher);
        let lines = directions.map(|(tag, key)| format!("{word} {tag:016x} {}\n", keys::write(key))).concat();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Both lines go into one write call, because other processes may append to the same file.
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
    /// The error of the first write that failed.
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
