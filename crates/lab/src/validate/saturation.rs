//! Stations of one cell that always have a frame to send, with the profile `ieee`, compared with
//! theory.

use super::bianchi::{Account, Cell};
use super::{Options, Point, Sample, Table, Verdict, scenes};

/// Numbers of stations that are compared.
const STATIONS: [u16; 10] = [1, 2, 3, 5, 10, 15, 20, 30, 40, 50];
/// Payload of a datagram, bytes.
const PAYLOAD: u32 = 1000;
/// Distance from every station to the receiver, metres.
pub const RADIUS: f64 = 100.0;

/// Cell with the values of IEEE 802.11-1999 (DSSS, long preamble): 2 Mbit/s, control frames at 1
/// Mbit/s.
fn cell(rts: bool) -> Cell {
    let (slot, sifs, difs) = (20.0, 10.0, 50.0);
    let (rts_air, cts_air, ack_air) = (352.0, 304.0, 304.0);
    // MAC header and FCS have 28 bytes. IP and UDP have 20, as ns-2 counts them.
    let data_air = 192.0 + f64::from(PAYLOAD + 20 + 28) * 8.0 / 2.0;
    let travel = RADIUS / 300.0;
    let handshake = if rts { rts_air + sifs + cts_air + sifs + 2.0 * travel } else { 0.0 };
    let first = if rts { rts_air } else { data_air };
    Cell {
        slot,
        success: handshake + data_air + sifs + ack_air + 2.0 * travel + difs,
        // EIFS is SIFS, an ACK at 1 Mbit/s, and DIFS. The time-out for CTS or ACK (both are equally
        // long) and DIFS end one slot later.
        collision: first + travel + sifs + ack_air + difs,
        window: 32.0,
        doublings: 5,
        attempts: 7,
        payload: f64::from(PAYLOAD) * 8.0,
    }
}

/// Largest error, per cent.
const RULE: f64 = 1.5;

/// Compares basic access and RTS/CTS.
pub fn compare(options: &Options) -> Vec<Table> {
    let points = [false, true].into_iter().flat_map(|rts| STATIONS.map(|n| (rts, n)));
    let points = options.sampled(points, &[0, 3, 9, 13]).into_iter().flat_map(|(rts, stations)| {
        let config = scenes::cell(stations, RADIUS, PAYLOAD, rts);
        let outcomes = options.runs(&config, options.seeds(10));
        let sums: Vec<f64> = outcomes.iter().map(|outcome| outcome.aggregate_goodput_bps / 1e3).collect();
        [Account::Refined, Account::Printed].map(|account| {
            let (theory, ours) = (cell(rts).throughput(account, stations), Sample::of(&sums));
            let reference = Sample::single(theory);
            Point {
                case: format!(
                    "{stations} {}, {}{}",
                    if stations == 1 { "station" } else { "stations" },
                    if rts { "RTS/CTS" } else { "basic access" },
                    if account == Account::Printed { ", as printed" } else { "" }
                ),
                verdict: Verdict::from(ours.error_pct(&reference).abs() <= RULE),
                reference: Some(reference),
                ours,
                rule: format!("{RULE} %"),
            }
        })
    });
    vec![Table {
        name: "saturation",
        title: "Saturated stations in one cell",
        source: "theory",
        unit: "kbit/s",
        rule: "The reference is no simulation but theory: the sum of the goodputs of stations on a circle of 100 m around the one that \
               receives, 1000-byte datagrams, profile `ieee`, within 1.5 % of the fixed point of Bianchi (JSAC 2000). Each point \
               is there twice: with the refinements for what the standard does (a limit of 7 attempts, counters that stand still \
               while the medium is busy: Wu et al. 2002, Foh and Tantra 2005, Tinnirello, Bianchi and Xiao 2010), and with \
               Bianchi's equations as printed, a collision taking EIFS as the standard has it. (With the paper's DIFS \
               instead its throughput of 50 stations with basic access is 2 % higher.)",
        points: points.collect(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_stations_share_what_theory_says() {
        // Two runs of 50 s each, some 8000 frames: one per cent is some three standard deviations of their number.
        for rts in [false, true] {
            let runs = (1..=2).map(|seed| meshpace_sim::run(&scenes::cell(10, RADIUS, PAYLOAD, rts), seed));
            let measured = runs.map(|outcome| outcome.aggregate_goodput_bps).sum::<f64>() / 2e3;
            let theory = cell(rts).throughput(Account::Refined, 10);
            assert!((measured / theory - 1.0).abs() < 0.015, "RTS/CTS {rts}: {measured} kbit/s, theory {theory}");
        }
    }

    #[test]
    fn the_times_are_those_of_the_standard() {
        // 15.3.3 and 9.2.3.4, added up by hand: 192 + 4 x 1048 = 4384 us of data; EIFS 364.
        let (basic, rts) = (cell(false), cell(true));
        assert!((basic.success - (4384.0 + 10.0 + 304.0 + 50.0 + 2.0 / 3.0)).abs() < 1e-9);
        assert!((rts.success - basic.success - (352.0 + 10.0 + 304.0 + 10.0 + 2.0 / 3.0)).abs() < 1e-9);
        assert!((basic.collision - (4384.0 + 364.0 + 1.0 / 3.0)).abs() < 1e-9);
        assert!((rts.collision - (352.0 + 364.0 + 1.0 / 3.0)).abs() < 1e-9);
    }
}
