//! When may the next one leave: the spacing of segments a window allows. Knows nothing of TCP.

pub mod adaptive;
pub mod dispersion;
pub mod estimator;
pub mod pacer;

pub use adaptive::{AdaptiveConfig, Dispersion, HopSource, RateLimit, Recovery, Sampling, ShortPath};
pub use estimator::Estimator;
pub use pacer::Pacer;

use crate::config::ParameterError;

/// Which pacing a sender uses.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// None: segments leave as the window allows.
    None,
    /// Adaptive pacing of TCP-AP (AP05).
    Adaptive(AdaptiveConfig),
}

impl Config {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::None => Ok(()),
            Config::Adaptive(config) => config.check(),
        }
    }
}
