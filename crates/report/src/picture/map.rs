//! Map of a scenario: nodes, links, flows, and the routes that their packets took.

use super::{look, numbers};
use crate::chart::{TAIL, WIDTH, head, text};
use meshpace_scenario::Plot as Settings;
use std::fmt::Write;

/// Content of a map. Positions are in metres; links, flows and routes identify nodes by number.
#[derive(Clone, PartialEq, Debug)]
pub struct Map {
    /// Positions of the nodes.
    pub nodes: Vec<(f64, f64)>,
    /// Pairs of nodes that have a link.
    pub links: Vec<(usize, usize)>,
    /// Source, destination and transport of each flow.
    pub flows: Vec<(usize, usize, String)>,
    /// Name that the scenario gives to each flow, by flow.
    pub names: Vec<Option<String>>,
    /// Hops of each flow's packets in the run that `of` names, by flow: sender, receiver and number
    /// of frames. Empty if the run was not observed.
    pub routes: Vec<Vec<(usize, usize, u64)>>,
    /// Description of the run whose routes are drawn.
    pub of: String,
}

/// Largest height of the area with the nodes, in units of the SVG.
const HIGH: f64 = 330.0;
/// Share of the frames on the flow's busiest hop. Hops with a smaller share are not drawn, so that
/// routes that AODV tried only briefly are left out.
const SHARE: f64 = 0.05;

impl Map {
    /// Draws the map: links in grey, flows in the colours of their transports, and nodes. A node
    /// has its number if there is room for it.
    pub fn draw(&self, settings: &Settings) -> String {
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let values = self.nodes.iter().map(of);
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        let ((left, right), (bottom, top)) = (ends(|node| node.0), ends(|node| node.1));
        let (wide, high) = ((right - left).max(1.0), (top - bottom).max(1.0));
        // Both directions have the same scale.
        let factor = ((WIDTH - 60.0) / wide).min(HIGH / high);
        let tall = high.min(HIGH / factor) * factor + 90.0;
        let height = tall + 20.0 * self.flows.len().min(LEGEND) as f64;
        let place = |node: usize| {
            let (x, y) = self.nodes[node];
            (30.0 + (x - left) * factor, tall - 60.0 - (y - bottom) * factor)
        };
        let mut svg = head(height, "nodes, links and flows");
        let mut lines = numbers::Lines::default();
        for (one, other) in &self.links {
            let ((x, y), (to_x, to_y)) = (place(*one), place(*other));
            lines.links.push(((x, y), (to_x, to_y)));
            let _ = write!(svg, "<path class=\"grid\" d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\" stroke=\"#ccc\"/>");
        }
        // Parameters in braces would be too long for the legend.
        let name = |transport: &str| {
            transport.split_once('{').map_or(transport.to_owned(), |(name, _)| name.to_owned() + "{...}")
        };
        let own = |number: usize| match self.names.get(number) {
            Some(Some(own)) => own.clone(),
            _ => format!("flow {number}"),
        };
        let labels: Vec<String> =
            self.flows.iter().enumerate().map(|(number, flow)| format!("{}, {}", name(&flow.2), own(number))).collect();
        // If all flows have the same transport, its colour would not distinguish them. Each flow
        // then has its own colour.
        let of_one = self.flows.iter().all(|flow| flow.2 == self.flows[0].2);
        let styles =
            if of_one && self.flows.len() > 1 { look::apart(labels.len()) } else { look::styles(&labels, settings) };
        for (number, ((from, to, _), style)) in self.flows.iter().zip(&styles).enumerate() {
            let (to_x, to_y) = place(*to);
            let dashes = if style.dashes.is_empty() { "none" } else { &style.dashes };
            let _ = write!(
                svg,
                "<circle cx=\"{to_x:.1}\" cy=\"{to_y:.1}\" r=\"7.5\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\
                 <g fill=\"none\" stroke=\"{}\" stroke-dasharray=\"{dashes}\">",
                style.color, style.color
            );
            match self.routes.get(number).filter(|hops| !hops.is_empty()) {
                Some(hops) => lines.flows.extend(route(&mut svg, hops, number, self.flows.len(), &place)),
                None => {
                    // The line is bent, so that a flow along a chain does not hide the links.
                    let (x, y) = place(*from);
                    let (bend_x, bend_y) =
                        ((x + to_x) / 2.0 + (y - to_y) * 0.12, (y + to_y) / 2.0 - (to_x - x).abs() * 0.06 - 12.0);
                    lines.flows.extend(numbers::bent((x, y), (bend_x, bend_y), (to_x, to_y)));
                    let _ = write!(
                        svg,
                        "<path d=\"M{x:.1} {y:.1}Q{bend_x:.1} {bend_y:.1} {to_x:.1} {to_y:.1}\" stroke-width=\"2\"/>"
                    );
                }
            }
            svg.push_str("</g>");
        }
        self.write_nodes(&mut svg, &lines, place);
        let (wide, high) = (right - left, top - bottom);
        let size = if wide.min(high) < 0.5 {
            format!("{:.0} m long", wide.max(high))
        } else {
            format!("{wide:.0} m by {high:.0} m")
        };
        let told = if self.routes.is_empty() { "" } else { "; thicker hops carried more frames" };
        let _ = write!(
            svg,
            "<g font-size=\"12\"><text x=\"4\" y=\"{:.1}\">{size}</text>\
             <text x=\"4\" y=\"{:.1}\">a ring marks the destination of a flow{told}</text></g>",
            tall - 20.0,
            tall - 4.0,
        );
        for (number, (label, style)) in labels.iter().zip(&styles).take(LEGEND).enumerate() {
            let y = tall + 10.0 + 20.0 * number as f64;
            let (from, to, _) = self.flows[number];
            let _ = write!(
                svg,
                "<path d=\"M4 {y}h28\" stroke=\"{}\" stroke-width=\"2.5\" stroke-dasharray=\"{}\"/><text x=\"40\" y=\"{}\">{}, node {from} to node {to}</text>",
                style.color,
                style.dashes,
                y + 5.0,
                text(label)
            );
        }
        svg + TAIL
    }

    /// Draws the nodes, and their numbers on top of everything. Sources and destinations are
    /// numbered first, then the other nodes if there is room.
    fn write_nodes(&self, svg: &mut String, lines: &numbers::Lines, place: impl Fn(usize) -> (f64, f64)) {
        let places: Vec<(f64, f64)> = (0..self.nodes.len()).map(place).collect();
        for (x, y) in &places {
            let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
        }
        let ends: Vec<usize> = self.flows.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        for (node, (x, y)) in numbers::placed(&places, &ends, lines) {
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"12\" class=\"halo\" stroke=\"#fff\" stroke-width=\"3\" \
                 stroke-linejoin=\"round\" paint-order=\"stroke\">{node}</text>",
                y + 4.0
            );
        }
    }
}

/// Largest number of flows in the legend.
const LEGEND: usize = 8;

/// Draws the hops of a flow and returns the lines. They are shifted sideways, so that flows over
/// the same link do not hide each other.
fn route(
    svg: &mut String,
    hops: &[(usize, usize, u64)],
    number: usize,
    flows: usize,
    place: &impl Fn(usize) -> (f64, f64),
) -> Vec<numbers::Segment> {
    let mut drawn = Vec::new();
    let busiest = hops.iter().map(|hop| hop.2).max().unwrap_or(1) as f64;
    for (from, to, frames) in hops {
        let share = *frames as f64 / busiest;
        if share < SHARE {
            continue;
        }
        let ((x, y), (to_x, to_y)) = (place(*from), place(*to));
        let length = (to_x - x).hypot(to_y - y).max(1e-9);
        let aside = 3.0 * (number as f64 - (flows as f64 - 1.0) / 2.0).clamp(-4.0, 4.0);
        let (dx, dy) = ((to_y - y) / length * aside, (x - to_x) / length * aside);
        let ((x, y), (to_x, to_y)) = ((x + dx, y + dy), (to_x + dx, to_y + dy));
        let _ =
            write!(svg, "<path d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\" stroke-width=\"{:.1}\"/>", 1.0 + 2.0 * share);
        drawn.push(((x, y), (to_x, to_y)));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_drawn_where_packets_went_and_what_was_tried_once_is_not() {
        let map = Map {
            names: vec![None, Some("long".to_owned())],
            nodes: vec![(0.0, 0.0), (200.0, 0.0), (400.0, 0.0)],
            links: vec![(0, 1), (1, 2)],
            flows: vec![(0, 2, "tcp-ap".to_owned())],
            routes: vec![vec![(0, 1, 100), (1, 2, 98), (0, 2, 1)]],
            of: "seed 1".to_owned(),
        };
        let svg = map.draw(&Settings::default());
        // Two links, two hops, and the line in the legend.
        assert_eq!(svg.matches("<path").count(), 5, "{svg}");
        assert!(svg.contains("tcp-ap, flow 0, node 0 to node 2") && svg.contains("#0072B2"), "{svg}");
        assert!(svg.contains(">400 m long<"), "{svg}");
        // Two flows of one transport differ in colour.
        let flows = vec![(0, 2, "tcp-ap".to_owned()), (2, 0, "tcp-ap".to_owned())];
        let two = Map { flows, routes: Vec::new(), ..map.clone() }.draw(&Settings::default());
        let colors: Vec<&str> = two.split("r=\"7.5\" fill=\"none\" stroke=\"").skip(1).map(|rest| &rest[..7]).collect();
        assert!(colors.len() == 2 && colors[0] != colors[1], "{colors:?}");
        let flows = vec![(0, 2, "tcp-ap{pacing.alpha=0.5}".to_owned())];
        let unwatched = Map { routes: Vec::new(), flows, ..map }.draw(&Settings::default());
        assert!(unwatched.contains('Q') && !unwatched.contains("thicker"));
        assert!(unwatched.contains(">tcp-ap{...}, flow 0, node 0 to node 2<"), "{unwatched}");
    }
}
