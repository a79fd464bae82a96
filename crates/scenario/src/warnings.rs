//! Warnings about settings that are allowed but probably not intended.

use super::Point;
use meshpace_mesh::config::MarkerConfig;
use meshpace_transport::{Config, pacing};

/// One sentence for each.
pub fn of(point: &Point) -> Vec<String> {
    let mut told = Vec::new();
    let is_dcc = |config: &Config| match config {
        Config::Tcp(tcp) => matches!(tcp.pacing, pacing::Config::Dcc(_)),
        Config::Tpa(tpa) => matches!(tpa.pacing, pacing::Config::Dcc(_)),
        _ => false,
    };
    if point.config.mesh.link.marker == MarkerConfig::None
        && let Some((flow, _)) = point.config.flows.iter().enumerate().find(|(_, flow)| is_dcc(&flow.transport))
    {
        told.push(format!(
            "flow {flow} has its rate from marks, as dcc does, and no node marks: set link.marker = \"dcc\" for the nodes to \
             mark what is sent into congestion"
        ));
    }
    told
}
