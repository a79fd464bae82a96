//! Log and metrics of a process with tunnels.

use super::log::{Format, Level};
use clap::Args;

/// Logs and metrics.
#[derive(Args, Clone, Debug, Default)]
pub struct Watching {
    /// How events are told on standard error, one line each
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log: Format,
    /// Events that matter less than this are not told
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    pub log_level: Level,
    /// Serve metrics for Prometheus: at a TCP port of this machine, or at a Unix socket of this name [default: nowhere]
    #[arg(long, value_name = "[ADDRESS:]PORT|/PATH")]
    pub metrics: Option<String>,
}
