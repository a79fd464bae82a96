//! Common parts of all commands: exit statuses, messages ([`output`]), interruption
//! ([`interrupt`]), quantities on the command line ([`quantities`]), and a small HTTP server
//! ([`serve`]).

pub mod interrupt;
pub mod output;
pub mod printable;
pub mod quantities;
pub mod serve;

/// Exit status of a failed run, or of output that cannot be written.
pub const FAILED: u8 = 1;
/// Exit status of a refused scenario or command line.
pub const REFUSED: u8 = 2;
/// Exit status after Ctrl-C, which shells expect.
pub const INTERRUPTED: u8 = 130;
