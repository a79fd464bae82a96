//! Compares rate control with each fixed rate, over links of several qualities.

use meshpace_lab::validate::ht::scene::{How, datagrams, mbps};
use meshpace_mesh::RateControl;
use meshpace_sim::Config;

/// A saturated link with a signal-to-noise ratio of `snr_db`.
fn link(snr_db: f64, mcs: u8, control: RateControl, rts: bool, seconds: u64) -> Config {
    let mut mesh = How::mcs(mcs, 64, rts).mesh_at(-94.0 + snr_db, 2, |_, _| true);
    mesh.radio.rate_control = control;
    datagrams(mesh, 2, &[(1, 0)], 1.2, seconds)
}

#[test]
fn ideal_and_minstrel_carry_what_the_best_fixed_rate_does() {
    for (snr_db, rts) in [(5.0, false), (8.0, false), (11.0, true), (14.5, false), (18.5, false), (30.0, false)] {
        let run = |mcs, control, seconds| mbps(&meshpace_sim::run(&link(snr_db, mcs, control, rts, seconds), 1))[0];
        let fixed = (0..8).map(|mcs| run(mcs, RateControl::Fixed, 1));
        let best = fixed.fold(0.0, f64::max);
        let (ideal, minstrel) = (run(7, RateControl::Ideal, 2), run(7, RateControl::Minstrel, 4));
        println!("{snr_db} dB, RTS {rts}: best fixed rate {best:.2} Mbit/s, ideal {ideal:.2}, minstrel {minstrel:.2}");
        assert!(ideal > 0.97 * best && ideal < 1.03 * best, "{snr_db} dB: {ideal} of {best}");
        assert!(minstrel > 0.88 * best && minstrel < 1.03 * best, "{snr_db} dB: {minstrel} of {best}");
    }
}

#[test]
fn each_neighbour_has_its_own_rate() {
    // Node 0 sends to node 1, which receives it well, and to node 2, which receives it at 5 dB: MCS
    // 1. At MCS 7 nothing would reach node 2.
    for control in [RateControl::Ideal, RateControl::Minstrel] {
        for mpdus in [1, 64] {
            let mut mesh = How::mcs(7, mpdus, false).mesh(3, |_, _| true);
            mesh.radio.rate_control = control;
            if let meshpace_mesh::Propagation::Links(links) = &mut mesh.radio.propagation {
                let power = |from: u16, to: u16, dbm| if from.max(to) == 2 && from.min(to) == 0 { -89.0 } else { dbm };
                let all = links.all().iter().map(|&(from, to, dbm)| (from, to, power(from.0, to.0, dbm)));
                *links = meshpace_mesh::radio::Links::new(all.collect());
            }
            let mut config = datagrams(mesh, 3, &[(0, 1), (0, 2)], 0.02, 4);
            // 1.3 Mbit/s to the far node, 15 Mbit/s to the near one.
            config.flows[2].traffic = meshpace_sim::Traffic::Cbr { rate: meshpace_core::Rate::from_mbps(15) };
            let shares = mbps(&meshpace_sim::run(&config, 1));
            println!("{control:?}, {mpdus} MPDUs: {shares:.2?}");
            assert!(shares[0] > 14.0 && shares[1] > 1.2, "{control:?}, {mpdus} MPDUs: {shares:?}");
        }
    }
}

#[test]
fn ideal_knows_its_links_where_nodes_move() {
    let still = link(18.5, 7, RateControl::Ideal, false, 1);
    let moves = vec![meshpace_sim::mobility::Move {
        node: meshpace_core::NodeId(1),
        start: meshpace_core::Time(500_000_000),
        end: meshpace_core::Time(2_500_000_000),
        to: meshpace_mesh::config::Position { x: 11.0, y: 0.0 },
    }];
    let moving = Config { mobility: meshpace_sim::Mobility::Scripted(moves), ..still.clone() };
    // The link is given, so a metre more only changes the propagation delay by 3 ns.
    let (still, moving) = (mbps(&meshpace_sim::run(&still, 1))[0], mbps(&meshpace_sim::run(&moving, 1))[0]);
    assert!((moving / still - 1.0).abs() < 0.03, "{moving} Mbit/s where a node moves, {still} where none does");
}
