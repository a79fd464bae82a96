//! The command line of tunnels, which `meshpace tunnel` and `meshpace-router` share: the ends in a file, their log and metrics ([`tunnel`]),
//! what `doctor` does, warnings of what a command line leaves open ([`caution`]), and hosts that it names
//! ([`hosts`]).

pub mod caution;
pub mod doctor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hosts;
pub mod tunnel;
