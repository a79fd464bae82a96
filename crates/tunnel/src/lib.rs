//! The command line of tunnels, which `meshpace tunnel` and `meshpace-router` share: the ends in a file, their log and metrics ([`tunnel`]); and
//! what commands have in common: how they speak, how they are interrupted, quantities, a small HTTP server.

pub mod caution;
pub mod doctor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod interrupt;
pub mod output;
pub mod printable;
pub mod quantities;
pub mod serve;
pub mod tunnel;

/// Exit status of a failed run, or of output that cannot be written.
pub const FAILED: u8 = 1;
/// Exit status of a refused scenario or command line.
pub const REFUSED: u8 = 2;
/// Exit status after Ctrl-C, as shells expect it.
pub const INTERRUPTED: u8 = 130;
