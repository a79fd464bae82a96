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

/// What a line begins with.
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
    /// Adds to the file at `path`; makes one that only its owner may read if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be opened or made.
    pub fn append(path: &Path) -> io::Result<KeyLog> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(explain)?;
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

    /// Whether all keys have been written.
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
