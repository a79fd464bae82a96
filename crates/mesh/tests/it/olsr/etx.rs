//! Tests of the metric ETX: with given delivery ratios, routes have the least sum of 1 / (d_f d_r)
//! over their links.

use super::world::World;
use meshpace_core::NodeId;
use meshpace_mesh::OlsrMetric;
use meshpace_mesh::routing::olsr::ETX_ONE;

/// Number of ten HELLOs from one node to another that are lost, 0 to 5. Two consecutive ones are
/// never lost, so each loss is counted.
fn lost_of_ten(from: u16, to: u16) -> u64 {
    (u64::from(from) * 7 + u64::from(to) * 13 + u64::from(from * to) * 3) % 6
}

fn misses(from: u16, to: u16, count: u64) -> bool {
    let place = count % 10;
    place % 2 == 1 && place / 2 < lost_of_ten(from, to)
}

/// 1 / (d_f d_r) of a link.
fn etx(a: u16, b: u16) -> f64 {
    let ratio = |from, to| 1.0 - lost_of_ten(from, to) as f64 / 10.0;
    1.0 / (ratio(a, b) * ratio(b, a))
}

#[test]
fn routes_have_the_least_cost_under_given_delivery_ratios() {
    let mut detours = 0;
    for seed in 1..=10 {
        let mut world = World::random(14, 25, OlsrMetric::Etx, seed);
        world.misses = misses;
        // The window of ten HELLOs is full after 20 s, with two more as a margin. After that,
        // convergence is as with the hop metric.
        world.run(60.0);
        let n = world.nodes.len();
        // Algorithm of Floyd and Warshall.
        let mut least = vec![vec![f64::INFINITY; n]; n];
        for (a, b) in world.links() {
            least[usize::from(a)][usize::from(b)] = etx(a, b);
        }
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    least[i][j] = least[i][j].min(least[i][k] + least[k][j]);
                }
            }
        }
        for (from, least) in least.iter().enumerate() {
            let hops = world.distances(from as u16);
            for to in (0..n).filter(|&to| to != from) {
                let route = world.nodes[from].route(NodeId(to as u16)).expect("connected");
                let cost = f64::from(route.cost) / f64::from(ETX_ONE);
                // Ratios are encoded in units of 1/255, which changes a cost by up to half a per
                // cent in each direction.
                let error = cost / least[to] - 1.0;
                assert!(error.abs() < 0.012, "seed {seed}: {from} to {to} costs {cost}, {} is least", least[to]);
                detours += u32::from(hops[to] < Some(route.hops));
                // Actual cost of the chosen path, along the next hops of its nodes.
                let (mut at, mut real) = (from, 0.0);
                while at != to {
                    let next = world.nodes[at]
                        .route(NodeId(to as u16))
                        .map(|route| route.next_hop)
                        .expect("a next hop")
                        .index();
                    real += etx(at as u16, next as u16);
                    at = next;
                    assert!(real < 1e3, "seed {seed}: a loop from {from} to {to}");
                }
                assert!(real <= least[to] * 1.012, "seed {seed}: {from} to {to} takes {real}");
            }
        }
    }
    assert!(detours > 20, "only {detours} routes are longer than by hops: this test has tested little");
}

#[test]
fn without_loss_the_paths_are_the_shortest() {
    for seed in 1..=5 {
        let mut world = World::random(20, 20, OlsrMetric::Etx, seed);
        world.run(60.0);
        world.assert_shortest(&format!("seed {seed}"));
        assert_eq!(world.nodes[0].route(NodeId(1)).map(|r| r.cost), world.hops(0, 1).map(|h| u32::from(h) * ETX_ONE));
    }
}
