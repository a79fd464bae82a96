//! Which nodes can reach each other at all, over links of the two-ray radio (250 m).

use meshpace_mesh::config::Position;
use meshpace_mesh::radio::two_ray;

/// For each node the lowest number of the nodes it can reach, itself included: equal for nodes that are connected.
pub fn components(positions: &[Position]) -> Vec<usize> {
    let reach = two_ray::range(two_ray::DECODE_THRESHOLD_W);
    let mut by_x: Vec<usize> = (0..positions.len()).collect();
    by_x.sort_by(|&a, &b| positions[a].x.total_cmp(&positions[b].x));
    let mut parent: Vec<usize> = (0..positions.len()).collect();
    for (place, &a) in by_x.iter().enumerate() {
        for &b in by_x[place + 1..].iter().take_while(|&&b| positions[b].x - positions[a].x <= reach) {
            if two_ray::received_power(positions[a].distance(positions[b])) >= two_ray::DECODE_THRESHOLD_W {
                let (a, b) = (root(&mut parent, a), root(&mut parent, b));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    (0..positions.len()).map(|node| root(&mut parent, node)).collect()
}

fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_end_at_250_metres() {
        let at = |x| Position { x, y: 0.0 };
        // Unsorted on purpose; 250 m is still a link, 251 m is none.
        let positions = [at(0.0), at(501.0), at(250.0), at(-251.0), at(700.0)];
        assert_eq!(components(&positions), [0, 1, 0, 3, 1]);
    }
}
