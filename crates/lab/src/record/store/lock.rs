//! The lock on a campaign's directory. It is held while a program reads what is there and while it adds to it. Between the two, other
//! programs may work in the directory; whoever goes on afterwards must find the files as it left them.

use crate::record::directory::{MANIFEST, RECORDS, UNFINISHED};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Each file of a campaign; none for one that is not there.
type Files = [Option<Seen>; 3];

/// A file as it was seen. Programs that work in a directory replace a file or append to it. A time of last change would not tell
/// a replaced file for certain: two changes within a few milliseconds have the same time.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The file, kept open: otherwise the system could give its number to the file that replaces it.
    file: same_file::Handle,
    length: u64,
}

/// The lock, and what the files were when it was given back.
#[derive(Debug)]
pub enum Lock {
    /// Held: the open directory.
    Held(#[expect(dead_code, reason = "the lock ends when it is closed")] File),
    /// Given back.
    Released(Files),
}

impl Lock {
    /// Locks a directory. The directory itself is locked: there is no file whose removal could let two in.
    ///
    /// # Errors
    /// `WouldBlock` if another process, or another campaign of this process, holds the lock.
    pub fn take(directory: &Path) -> io::Result<Lock> {
        let named = |error: io::Error| super::named(directory, &error);
        let file = File::open(directory).map_err(named)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock::Held(file)),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is at work in {}", directory.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
            Err(TryLockError::Error(error)) => Err(named(error)),
        }
    }

    /// Gives the lock back.
    pub fn release(&mut self, directory: &Path) {
        if matches!(self, Lock::Held(_)) {
            *self = Lock::Released(files(directory));
        }
    }

    /// Takes the lock again after [`Lock::release`].
    ///
    /// # Errors
    /// As [`Lock::take`]; and if the files have changed since.
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
