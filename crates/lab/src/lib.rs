//! The laboratory: campaigns of runs, statistics, records, and the register of published experiments with its judge.

pub mod campaign;
mod pool;
pub mod record;
pub mod register;
pub mod statistics;
pub mod validate;
