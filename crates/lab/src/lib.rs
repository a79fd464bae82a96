//! The laboratory: scenario files, campaigns of runs, statistics and records.

pub mod scenario;
pub mod validate;
