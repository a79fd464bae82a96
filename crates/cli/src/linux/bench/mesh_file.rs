//! File with the positions and flows of a workload, which the scripts for other simulators read.

use meshpace_scenario::Point;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Writes `path`: "node X Y" in metres for each node in order, then "flow FROM TO" for each flow.
pub fn write(point: &Point, path: &Path) -> io::Result<()> {
    let mut text = String::new();
    for place in &point.config.positions {
        let _ = writeln!(text, "node {} {}", place.x, place.y);
    }
    for flow in &point.config.flows {
        let _ = writeln!(text, "flow {} {}", flow.from.0, flow.to.0);
    }
    std::fs::write(path, text)
}
