//! Time that flows are without a route while nodes move: a sample every 0.1 s.

use meshpace_core::Duration;

/// The time between two samples. A node at 9 m/s moves 0.9 m in it.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Absence of a flow's route, counted in samples.
#[derive(Clone, Copy, Default)]
pub struct Absence {
    /// The source's routing knew no route.
    pub route: u32,
    /// There was no path of links.
    pub path: u32,
}
