//! The integration tests of this crate, in one program: one link instead of many.

mod architecture;
mod check;
mod dependencies;
mod licences;
mod proofs;
mod records;
mod skips;
mod sources;
mod unsafe_code;
