//! TCP with adaptive pacing, and quiet trains of the sender alone, as congestion controls of the
//! Linux kernel: `meshpace_ap` and `meshpace_solo`, written in eBPF (`bpf/`), and their loader.
//!
//! The eBPF programs compute an interval for every connection that has chosen one of them. The
//! window of `meshpace_ap` is still the kernel's NewReno. The window of `meshpace_solo` causes the
//! silence after a train. The programs need the number of hops and the rate by destination; the
//! loader writes these into a map. The programs are compiled, and libbpf is linked, only with the
//! feature `kernel`. Without it this crate only reports what the machine lacks.
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

/// Default name of the congestion control with adaptive pacing.
pub const NAME: &str = "meshpace_ap";
/// Default name of the congestion control with quiet trains.
pub const SOLO: &str = "meshpace_solo";

/// Reason why a requested change was not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The request is invalid, or cannot be carried out on this machine.
    Refused(String),
    /// An operation failed that should have succeeded.
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
    /// Error for an operation `what` that failed with `error`.
    pub fn failed(what: impl fmt::Display, error: impl fmt::Display) -> Error {
        Error::Failed(format!("{what}: {error}"))
    }
}

/// Checks a name for a congestion control: 1 to 15 of `a-z`, `A-Z`, `0-9`, `_`, `-`.
///
/// # Errors [`Error::Refused`] with the reason.
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
