//! Integration tests of this crate in one program, which needs one link step instead of many.

mod architecture;
mod check;
mod dependencies;
mod licences;
mod planted_bugs;
mod pointers;
mod promises;
mod proofs;
mod records;
mod skips;
mod sources;
mod traceability;
mod unsafe_code;
