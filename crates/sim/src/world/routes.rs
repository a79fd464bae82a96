//! Time during which flows have no route while nodes move, sampled every 0.1 s.

use meshpace_core::Duration;

/// Time between two samples. A node at 9 m/s moves 0.9 m in it.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Numbers of samples in which a flow had no route or no path.
#[derive(Clone, Copy, Default)]
pub struct Outage {
    /// Number of samples in which the source's routing had no route.
    pub route: u32,
    /// Number of samples in which there was no path of links.
    pub path: u32,
}
