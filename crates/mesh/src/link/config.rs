//! What a scenario says about the link layer: one queue discipline, and one marker or none on top of it.

use crate::config::ParameterError;

/// Which packet waits where.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum QueueConfig {
    /// One queue of `radio.queue` packets, drop-tail, routing packets first (systems.md 2.5).
    #[default]
    DropTail,
}

impl QueueConfig {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            QueueConfig::DropTail => Ok(()),
        }
    }
}

/// What marks or drops packets as they leave for the MAC.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum MarkerConfig {
    /// Nothing does.
    #[default]
    None,
}

impl MarkerConfig {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            MarkerConfig::None => Ok(()),
        }
    }
}

/// The link layer: any queue discipline with any marker.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkConfig {
    /// The queue discipline.
    pub queue: QueueConfig,
    /// The marker.
    pub marker: MarkerConfig,
}

impl LinkConfig {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.queue.check()?;
        self.marker.check()
    }
}
