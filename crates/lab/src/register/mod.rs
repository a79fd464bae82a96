//! The register of published experiments. Each experiment has an ordinary scenario, a file with the
//! published results as data, and a judge that compares the two. `docs/register.md` describes the
//! files.

pub mod account;
pub mod collection;
pub mod consistency;
pub mod data;
pub mod gain;
pub mod judge;
pub mod labels;
pub mod library;
mod names;
pub mod observations;
pub mod reference;
pub mod replication;
pub mod reproduction;
pub mod select;
pub mod verdicts;

pub use account::Account;
pub use gain::Gain;
pub use judge::{Judgement, Verdict};
pub use library::{Effort, Experiment, PAPERS, Register, Runs, STUDIES};
pub use observations::Observations;
