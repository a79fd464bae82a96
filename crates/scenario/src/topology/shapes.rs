//! Regular topologies of the papers: chains, crosses and grids.

use super::super::reader::Reader;
use super::draw::{self, Draw, Pairs};
use super::{DEFAULT_HOPS, MAX_NODES, Topology, at};
use meshpace_core::{Parameter, parameter};
use meshpace_mesh::config::RadioConfig;
use meshpace_mesh::radio::Channel;
use meshpace_settings::value::Kind;

static SPACING: Parameter = parameter!(spacing: f64 = 200.0 => LENGTH.above(0.0).to(1e5), Basic, "distance between neighbours; with OFDM, the default is four fifths of the range of its links");
static SEPARATION: Parameter = parameter!(separation: f64 = 400.0 => LENGTH.above(0.0).to(1e5), Basic, "distance between parallel chains; with OFDM, the default is twice the default spacing");
static HOPS: Parameter =
    parameter!(hops: u64 = DEFAULT_HOPS => whole("hops", 1, MAX_NODES - 1), Basic, "hops of a chain");
/// Each of the two chains has half of the nodes.
static PARALLEL_HOPS: Parameter =
    parameter!(hops: u64 = 4 => whole("hops", 1, MAX_NODES / 2 - 1), Basic, "hops of a chain");
static ROWS: Parameter =
    parameter!(rows: u64 = 5 => whole("rows", 1, MAX_NODES), Basic, "rows of a grid, from the south");
static COLUMNS: Parameter =
    parameter!(columns: u64 = 5 => whole("columns", 1, MAX_NODES), Basic, "columns of a grid, from the west");

/// Distance of neighbours in a scenario that has none, metres.
///
/// The distance is 200 m, as in the papers: four fifths of the range of 802.11b, 250 m. Links with
/// OFDM may be much shorter, so their spacing is four fifths of the link range. That value is
/// rounded down to two digits, so that it can be written.
pub fn usual_spacing(radio: &RadioConfig, channel: &Channel) -> f64 {
    let range = channel.link_range();
    if radio.ofdm.is_none() || !channel.has_one_range() || !(range > 0.0 && range < 1e5) {
        return 200.0;
    }
    let spacing = 0.8 * range;
    let unit = libm::pow(10.0, libm::floor(libm::log10(spacing)) - 1.0);
    libm::floor(spacing / unit) * unit
}

/// Reads a length. Its default is `usual`.
fn length(keys: &mut Reader<'_>, parameter: &'static Parameter, usual: f64) -> f64 {
    let written: f64 = keys.standalone(parameter);
    if keys.value(parameter.key).is_some() { written } else { usual }
}

/// Links of a chain whose nodes have the numbers `first` to `last`.
fn chain_links(first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
    (first..last).map(|node| (node, node + 1))
}

/// Chain: nodes 0..=hops at (spacing * i, 0).
pub fn chain(keys: &mut Reader<'_>, usual: f64) -> Topology {
    let hops: u64 = keys.standalone(&HOPS);
    let spacing = length(keys, &SPACING, usual);
    let positions = (0..=hops).map(|i| at(spacing * i as f64, 0.0)).collect();
    let links = Some(chain_links(0, hops).collect());
    Topology { positions, default_ends: vec![(0, hops)], links, ..Topology::default() }
}

/// CROSS9: nodes 0 to 4 from west to east; nodes 5, 6, (2), 7, 8 from south to north.
pub fn cross(keys: &mut Reader<'_>, usual: f64) -> Topology {
    let d = length(keys, &SPACING, usual);
    let horizontal = (0..5).map(|i| at(d * f64::from(i), 2.0 * d));
    let vertical = [0.0, 1.0, 3.0, 4.0].map(|i| at(2.0 * d, d * i));
    let positions = horizontal.chain(vertical).collect();
    let links = chain_links(0, 4).chain([(5, 6), (6, 2), (2, 7), (7, 8)]).collect();
    Topology { positions, default_ends: vec![(0, 4), (5, 8)], links: Some(links), ..Topology::default() }
}

/// TPA-CROSS8: two chains of four nodes whose middle links cross. The paper's N1..N8 are nodes
/// 0..7. The second connection runs from N8 to N5.
pub fn tpa_cross() -> Topology {
    let along = [-300.0, -100.0, 100.0, 300.0];
    let horizontal = along.map(|x| at(x, 0.0));
    let vertical = along.map(|y| at(0.0, y));
    let positions = horizontal.into_iter().chain(vertical).collect();
    let links = chain_links(0, 3).chain(chain_links(4, 7)).collect();
    Topology { positions, default_ends: vec![(0, 3), (7, 4)], links: Some(links), ..Topology::default() }
}

/// Two chains. The first has nodes 0..=hops; the second is north of it and has the next numbers
/// (PAR4 with 4 hops).
pub fn parallel(keys: &mut Reader<'_>, usual: f64) -> Topology {
    let hops: u64 = keys.standalone(&PARALLEL_HOPS);
    let (spacing, separation) = (length(keys, &SPACING, usual), length(keys, &SEPARATION, 2.0 * usual));
    let row = |y: f64| (0..=hops).map(move |i| at(spacing * i as f64, y));
    let positions = row(0.0).chain(row(separation)).collect();
    let links = chain_links(0, hops).chain(chain_links(hops + 1, 2 * hops + 1)).collect();
    let default_ends = vec![(0, hops), (hops + 1, 2 * hops + 1)];
    Topology { positions, default_ends, links: Some(links), ..Topology::default() }
}

/// ASYM: a short chain of four hops, nodes 0 to 4, and a long chain north of it, nodes 5 to 15. The
/// long chain extends three hops beyond the short one at both ends.
pub fn asymmetric(keys: &mut Reader<'_>, usual: f64) -> Topology {
    let (spacing, separation) = (length(keys, &SPACING, usual), length(keys, &SEPARATION, 2.0 * usual));
    let short = (3..=7).map(|i| at(spacing * f64::from(i), 0.0));
    let long = (0..=10).map(|i| at(spacing * f64::from(i), separation));
    let positions = short.chain(long).collect();
    let links = chain_links(0, 4).chain(chain_links(5, 15)).collect();
    Topology { positions, default_ends: vec![(0, 4), (5, 15)], links: Some(links), ..Topology::default() }
}

/// Grid: rows from the south, each from west to east. The number of a node is row * columns +
/// column.
pub fn grid(keys: &mut Reader<'_>, channel: &Channel, usual: f64) -> Topology {
    let (rows, columns): (u64, u64) = (keys.standalone(&ROWS), keys.standalone(&COLUMNS));
    let spacing = length(keys, &SPACING, usual);
    if rows * columns > MAX_NODES {
        let message = format!("{rows} rows of {columns} nodes are more than {MAX_NODES} nodes");
        keys.report_invalid("rows", message, format!("expected at most {MAX_NODES} nodes in all"));
        return Topology::default();
    }
    let place = |i| at(spacing * (i % columns) as f64, spacing * (i / columns) as f64);
    let eastward = (0..rows * columns).filter(|i| i % columns + 1 < columns).map(|i| (i, i + 1));
    let northward = (0..(rows - 1) * columns).map(|i| (i, i + columns));
    let links = Some(eastward.chain(northward).collect());
    let positions = (0..rows * columns).map(place).collect();
    let (default_ends, draw) = grid_flows(keys, rows, columns, channel);
    let makes_flows = !default_ends.is_empty();
    Topology { positions, links, default_ends, makes_flows, draw, ..Topology::default() }
}

/// Reads `flows`: `"paper"` (GRID5), `"symmetric"` (GRID-SYM), or `{ per_side = 5 }` (LLAP-GRID10).
fn grid_flows(keys: &mut Reader<'_>, rows: u64, columns: u64, channel: &Channel) -> (Vec<(u64, u64)>, Option<Draw>) {
    let none = (Vec::new(), None);
    let Some(value) = keys.get("flows") else { return none };
    if matches!(value.kind, Kind::Table(_)) {
        let mut table = keys.table("flows");
        let most = rows.min(columns);
        let per_side = table.integer("per_side", 1..=most, "flows from each side");
        if table.get("per_side").is_none() {
            table.report_invalid("per_side", "is missing", format!("expected 1 to {most} flows from each side"));
        }
        let placement = draw::placement(keys);
        table.finish("the flows of a grid");
        let Some(per_side) = per_side else { return none };
        let draw = Draw::of_pairs(Pairs::Sides { rows, columns, per_side }, placement, channel);
        return (draw.ends_for_reading(), Some(draw));
    }
    let Some(is_paper) = keys.choice("flows", &[("paper", true), ("symmetric", false)], &[]) else { return none };
    if (rows, columns) != (5, 5) {
        let message = format!("these flows need 5 rows and 5 columns, and the grid has {rows} and {columns}");
        keys.report_conflict(&["flows", "rows", "columns"], message, "expected a grid of 5 x 5");
        return none;
    }
    let node = |row: u64, column: u64| row * 5 + column;
    let east = |row| (node(row, 0), node(row, 4));
    let north = |column| (node(0, column), node(4, column));
    let back = |(from, to): (u64, u64)| (to, from);
    let ends = if is_paper {
        vec![east(3), east(2), east(1), north(1), north(2), north(3)]
    } else {
        // A rotation by 90 degrees maps each flow to the next.
        vec![east(1), north(3), back(east(3)), back(north(1))]
    };
    (ends, None)
}
