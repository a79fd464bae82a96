//! The laboratory: campaigns of runs, statistics, records, and the register of published experiments with its judge.

pub mod campaign;
pub mod record;
pub mod register;
pub mod statistics;
pub mod validate;
