//! Places the numbers of nodes on a map: beside their nodes, away from the lines of flows where
//! possible, and never over another number or node.

/// A position on the page.
pub type Place = (f64, f64);
/// A straight line on the page.
pub type Segment = (Place, Place);

/// Lines that are drawn below the numbers.
#[derive(Default)]
pub struct Lines {
    /// Lines of links, which are thin.
    pub links: Vec<Segment>,
    /// Lines of flows, which are thick.
    pub flows: Vec<Segment>,
}

/// Half the width of a digit and half the height of a number, including the free space around it.
const HALF: (f64, f64) = (3.6, 6.0);
/// Distance from a node to the nearest edge of its number. It is larger than the ring around the
/// end of a flow.
const BESIDE: f64 = 9.0;
/// Penalty for a number over the line of a flow; over the line of a link the penalty is 1.
const FLOW: usize = 5;

/// Rectangle of a number: its middle, and half of its width and height.
#[derive(Clone, Copy)]
struct Label {
    middle: Place,
    half: Place,
}

impl Label {
    fn is_apart(&self, other: &Label) -> bool {
        (self.middle.0 - other.middle.0).abs() >= self.half.0 + other.half.0
            || (self.middle.1 - other.middle.1).abs() >= self.half.1 + other.half.1
    }

    fn is_on(&self, (from, to): &Segment) -> bool {
        // Clips the line to the rectangle, axis by axis.
        let (mut first, mut last) = (0.0f64, 1.0f64);
        for (start, end, middle, half) in
            [(from.0, to.0, self.middle.0, self.half.0), (from.1, to.1, self.middle.1, self.half.1)]
        {
            let (low, high, step) = (middle - half, middle + half, end - start);
            if step.abs() < 1e-9 {
                if start < low || start > high {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - start) / step, (high - start) / step);
            (first, last) = (first.max(one.min(other)), last.min(one.max(other)));
        }
        first <= last
    }
}

/// Divides a curve with one bend into straight pieces.
pub fn bent(from: Place, bend: Place, to: Place) -> impl Iterator<Item = Segment> {
    const PIECES: u32 = 8;
    let at = move |piece: u32| {
        let t = f64::from(piece) / f64::from(PIECES);
        let mix =
            |from: f64, bend: f64, to: f64| (1.0 - t) * (1.0 - t) * from + 2.0 * t * (1.0 - t) * bend + t * t * to;
        (mix(from.0, bend.0, to.0), mix(from.1, bend.1, to.1))
    };
    (0..PIECES).map(move |piece| (at(piece), at(piece + 1)))
}

/// Numbers that have room, with the middles of their places. The nodes of `ends` come first, then
/// all others in order.
pub fn placed(nodes: &[Place], ends: &[usize], lines: &Lines) -> Vec<(usize, Place)> {
    let mut labels: Vec<(usize, Label)> = Vec::new();
    let spots: Vec<Label> = nodes.iter().map(|node| Label { middle: *node, half: (3.5, 3.5) }).collect();
    for node in ends.iter().copied().chain(0..nodes.len()) {
        if labels.iter().any(|(other, _)| *other == node) {
            continue;
        }
        let is_free = |label: &Label| {
            spots.iter().all(|spot| label.is_apart(spot)) && labels.iter().all(|(_, other)| label.is_apart(other))
        };
        let crossed = |label: &Label| {
            let on = |segments: &[Segment]| segments.iter().filter(|segment| label.is_on(segment)).count();
            on(&lines.links) + FLOW * on(&lines.flows)
        };
        let around = around(nodes[node], node.to_string().len());
        if let Some(label) = around.into_iter().filter(is_free).min_by_key(crossed) {
            labels.push((node, label));
        }
    }
    labels.into_iter().map(|(node, label)| (node, label.middle)).collect()
}

/// Possible places around a node for a number with `digits` digits, in the order of preference.
fn around((x, y): Place, digits: usize) -> [Label; 8] {
    let half = (HALF.0 * digits as f64, HALF.1);
    let (aside, above) = (BESIDE + half.0, BESIDE + half.1);
    // The places at the corners are a little nearer, because the ring is round.
    let (near_aside, near_above) = (aside - 2.0, above - 2.0);
    [
        (0.0, above),
        (0.0, -above),
        (aside, 0.0),
        (-aside, 0.0),
        (near_aside, near_above),
        (-near_aside, near_above),
        (near_aside, -near_above),
        (-near_aside, -near_above),
    ]
    .map(|(dx, dy)| Label { middle: (x + dx, y + dy), half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leaves_the_line_of_its_flow() {
        // A flow straight down through three nodes: the usual place, below, is on its line.
        let nodes = [(100.0, 50.0), (100.0, 150.0), (100.0, 250.0)];
        let flow = (nodes[0], nodes[2]);
        let lines = Lines { links: Vec::new(), flows: vec![flow] };
        let middle = placed(&nodes, &[], &lines)[1];
        assert!(middle.0 == 1 && (middle.1.0 - 100.0).abs() >= HALF.0, "{middle:?}");
        // Level with the chain it stays below.
        let nodes = [(50.0, 100.0), (150.0, 100.0), (250.0, 100.0)];
        let lines = Lines { links: vec![(nodes[0], nodes[2])], flows: Vec::new() };
        for (node, (x, y)) in placed(&nodes, &[], &lines) {
            assert!(x == nodes[node].0 && y > 100.0 + HALF.1, "{node}: {x} {y}");
        }
    }

    #[test]
    fn no_number_covers_another_and_ends_of_flows_keep_theirs() {
        // A hundred nodes so near each other that not all numbers have room.
        let nodes: Vec<Place> =
            (0..100).map(|node| (f64::from(node % 10) * 14.0, f64::from(node / 10) * 14.0)).collect();
        let found = placed(&nodes, &[99, 0], &Lines::default());
        assert!((10..100).contains(&found.len()), "{}", found.len());
        assert!([99, 0].iter().all(|end| found.iter().any(|(node, _)| node == end)));
        for (number, (one, (x, y))) in found.iter().enumerate() {
            for (other, (to_x, to_y)) in &found[number + 1..] {
                let wide = HALF.0 * (one.to_string().len() + other.to_string().len()) as f64;
                assert!((x - to_x).abs() >= wide || (y - to_y).abs() >= 2.0 * HALF.1, "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_bend_begins_and_ends_where_its_flow_does() {
        let pieces: Vec<Segment> = bent((0.0, 0.0), (5.0, -10.0), (10.0, 0.0)).collect();
        assert_eq!((pieces[0].0, pieces[7].1), ((0.0, 0.0), (10.0, 0.0)));
        // A quadratic curve passes half as far from its chord as its bend.
        assert_eq!(pieces[3].1, (5.0, -5.0));
    }
}
