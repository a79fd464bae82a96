//! Tests the turns of neighbours at a station that holds MPDUs for one neighbour while its queue
//! has packets for another.

use meshpace_core::{NodeId, Rate};
use meshpace_lab::validate::ht::scene::{How, POWER_DBM, datagrams};
use meshpace_mesh::Propagation;
use meshpace_mesh::radio::{Channel, Links};
use meshpace_sim::Traffic;

#[test]
fn a_neighbour_that_loses_packets_does_not_keep_the_others_waiting() {
    // Half of the capacity goes to node 1, which loses MPDUs, and an occasional packet to node 2.
    // They wait in one queue, so they should wait equally long.
    for arrives in [0.85, 0.6] {
        let mut mesh = How::mcs(7, 64, false).mesh(3, |_, _| true);
        let weak = mesh.radio.noise_dbm + Channel::snr_for(&mesh.radio, arrives);
        if let Propagation::Links(links) = &mut mesh.radio.propagation {
            let power = |from, to| if (from, to) == (NodeId(0), NodeId(1)) { weak } else { POWER_DBM };
            *links = Links::new(links.all().iter().map(|&(from, to, _)| (from, to, power(from, to))).collect());
        }
        let mut config = datagrams(mesh, 3, &[(0, 1), (0, 2)], 25.0 / 65.0, 5);
        config.flows[3].traffic = Traffic::Cbr { rate: Rate::from_bps(500_000) };
        for seed in 1..=3 {
            let outcome = meshpace_sim::run(&config, seed);
            let p95 = |flow: usize| outcome.flows[flow].delay.p95_s;
            let (lossy, other) = (p95(2), p95(3));
            assert!(other < 1.5 * lossy, "{arrives} arrive, seed {seed}: {other} s beside {lossy} s");
        }
    }
}
