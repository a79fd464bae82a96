//! Campaigns of runs, statistics, records, recordings, comparisons, validation, and the register of
//! published experiments with its judge.

pub mod advise;
pub mod backend;
pub mod campaign;
pub mod check;
pub mod compare;
pub mod field;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod pool;
pub mod record;
pub mod reference;
pub mod register;
pub mod rerun;
pub mod rivals;
pub mod robust;
pub mod routes;
pub mod selection;
pub mod session;
pub mod statistics;
pub mod stream;
pub mod summary;
pub mod until;
pub mod validate;
pub mod variants;
pub mod warmup;
mod words;
pub mod workers;
