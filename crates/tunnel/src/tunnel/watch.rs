//! Log and metrics of a process with tunnels.

use super::log::{Format, Level};
use clap::Args;

/// Logs and metrics.
#[derive(Args, Clone, Debug, Default)]
pub struct Watching {
    /// Choose the format of events on standard error, one per line
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log: Format,
    /// Print events of this level and above
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    pub log_level: Level,
    /// Serve metrics for Prometheus at a TCP port of this machine, or at a Unix socket with this
    /// name [default: off]
    #[arg(long, value_name = "[ADDRESS:]PORT|/PATH")]
    pub metrics: Option<String>,
}
