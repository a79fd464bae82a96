//! The command line of tunnels, which `meshpace tunnel` and `meshpace-router` share: the ends in a file, their log and metrics ([`tunnel`]),
//! what `doctor` does, and warnings of what a command line leaves open ([`caution`]).

pub mod caution;
pub mod doctor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod tunnel;
