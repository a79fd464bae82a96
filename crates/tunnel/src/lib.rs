//! The command line of tunnels, shared by `meshpace tunnel` and `meshpace-router`. It covers the
//! ends in a file, their log and metrics ([`tunnel`]), the actions of `doctor`, warnings about what
//! a command line leaves accessible to others ([`caution`]), and the hosts that it names
//! ([`hosts`]).

pub mod caution;
pub mod doctor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hosts;
pub mod tunnel;
