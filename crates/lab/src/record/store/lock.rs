//! Lock on the directory of a campaign. A program holds it while it reads the existing records and
//! while it adds records. In between, other programs may work in the directory. A program that
//! resumes afterwards must find the files unchanged.

use crate::record::directory::{MANIFEST, RECORDS, UNFINISHED};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// State of each file of a campaign; `None` for a file that does not exist.
type Files = [Option<Seen>; 3];

/// State of a file. Programs that work in a directory replace a file or append to it. The time of
/// the last change would not reliably detect a replaced file: two changes within a few milliseconds
/// have the same time.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The file, kept open. Otherwise the system could give its inode number to the file that
    /// replaces it.
    file: same_file::Handle,
    length: u64,
}

/// The lock, or the state of the files when it was released.
#[derive(Debug)]
pub enum Lock {
    /// The lock is held; the value is the open directory.
    Held(#[expect(dead_code, reason = "the lock ends when it is closed")] File),
    /// The lock was released.
    Released(Files),
}

impl Lock {
    /// Locks a directory. The directory itself is locked, because a lock file could be removed, and
    /// two programs could then hold the lock.
    ///
    /// # Errors
    /// `WouldBlock` if another process, or another campaign of this process, holds the lock.
    pub fn take(directory: &Path) -> io::Result<Lock> {
        let named = |error: io::Error| super::named(directory, &error);
        let file = File::open(directory).map_err(named)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock::Held(file)),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is writing to {}", directory.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
            Err(TryLockError::Error(error)) => Err(named(error)),
        }
    }

    /// Releases the lock.
    pub fn release(&mut self, directory: &Path) {
        if matches!(self, Lock::Held(_)) {
            *self = Lock::Released(files(directory));
        }
    }

    /// Takes the lock again after [`Lock::release`].
    ///
    /// # Errors
    /// The errors of [`Lock::take`]; also an error if the files have changed since the release.
    pub fn resume(&mut self, directory: &Path) -> io::Result<()> {
        let Lock::Released(before) = self else { return Ok(()) };
        let lock = Lock::take(directory)?;
        if files(directory) != *before {
            let what = "the records have changed since they were read: open the campaign again";
            return Err(super::named(directory, &io::Error::other(what)));
        }
        *self = lock;
        Ok(())
    }
}

fn files(directory: &Path) -> Files {
    [RECORDS, UNFINISHED, MANIFEST].map(|name| {
        let file = same_file::Handle::from_path(directory.join(name)).ok()?;
        let length = file.as_file().metadata().ok()?.len();
        Some(Seen { file, length })
    })
}
