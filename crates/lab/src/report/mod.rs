//! Reports of records on disk: one self-contained page per experiment.

mod write;

pub use write::write_whole;
