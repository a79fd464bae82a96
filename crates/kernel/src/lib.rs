//! TCP with adaptive pacing and quiet trains of the sender alone in the Linux kernel: the congestion controls `meshpace_ap` and
//! `meshpace_solo`, written in eBPF (`bpf/`), and their loader.
//!
//! The eBPF programs give an interval to every connection that has chosen one of them; the window of `meshpace_ap` stays the kernel's NewReno,
//! that of `meshpace_solo` makes the silence after a train. What they must know about the network, hops and rate by destination, is in a map that the loader fills. Only the feature `kernel`
//! compiles them and links libbpf; without it this crate only reports what the machine lacks.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod connection;
pub mod destination;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod machine;
#[cfg(feature = "kernel")]
pub mod object;
pub mod path;
pub mod tuning;
#[cfg(feature = "kernel")]
pub mod watch;

pub use connection::Connection;
pub use destination::Destination;
pub use path::{Form, Path};

use std::fmt;

/// The congestion control's name unless told otherwise.
pub const NAME: &str = "meshpace_ap";
/// The name of quiet trains unless told otherwise.
pub const SOLO: &str = "meshpace_solo";

/// Why the kernel has not been changed as asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// What was asked for cannot be done, or not on this machine.
    Refused(String),
    /// It should have worked, and did not.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(message) | Error::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// `what` failed with `error`.
    pub fn failed(what: impl fmt::Display, error: impl fmt::Display) -> Error {
        Error::Failed(format!("{what}: {error}"))
    }
}

/// Checks a name for a congestion control: 1 to 15 of `a-z`, `A-Z`, `0-9`, `_`, `-`.
///
/// # Errors
/// [`Error::Refused`] with what is wrong.
pub fn check_name(name: &str) -> Result<(), Error> {
    let usable = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 15 || !name.chars().all(usable) {
        return Err(Error::Refused(format!(
            "`{name}` cannot name a congestion control: 1 to 15 letters, digits, `_` and `-`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel() {
        for name in [NAME, "meshpace_ap10", "a", "123456789012345"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1234567890123456", "with space", "../up", "a/b", "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
