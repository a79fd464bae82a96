//! The laboratory: scenario files, campaigns of runs, statistics and records.

pub mod campaign;
pub mod pcap;
pub mod record;
pub mod register;
pub mod report;
pub mod scenario;
pub mod statistics;
pub mod validate;
