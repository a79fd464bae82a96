//! `series` and `[batches]`: the pieces of a run that are measured one by one.

use super::quantity::TIME;
use super::reader::{Reader, Sign};
use meshpace_core::Duration;
use meshpace_sim::config::Batches;

/// The most windows of a time series: what a record can hold without becoming a burden.
const MAX_WINDOWS: f64 = 100_000.0;
/// The most packets of a batch, and the most batches.
const MOST: u64 = 1_000_000_000;
/// AP05, section 5: 11 batches of 5,000 packets.
const DEFAULT: Batches = Batches { packets: 5_000, count: 11 };

/// Reads both.
pub fn read(root: &mut Reader<'_>, duration: Duration) -> (Option<Duration>, Option<Batches>) {
    let seconds = duration.as_secs_f64();
    let series = root.quantity("series", &TIME, Sign::Positive, seconds);
    if let Some(window) = series
        && (window < 1e-6 || seconds / window > MAX_WINDOWS)
    {
        root.wrong("series", format!("more than {MAX_WINDOWS} windows in {seconds} s"), "expected a longer window");
        return (None, None);
    }
    let batches = root.value("batches").is_some().then(|| {
        let mut table = root.table("batches");
        let packets = table.whole("packets", 1..=MOST, "packets").unwrap_or(DEFAULT.packets);
        let count = table.whole("count", 2..=10_000, "batches").unwrap_or(u64::from(DEFAULT.count));
        table.finish("batches");
        Batches { packets, count: count as u32 }
    });
    (series.map(Duration::from_secs_f64), batches)
}
