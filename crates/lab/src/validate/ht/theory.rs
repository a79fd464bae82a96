//! Saturated stations of one cell of 802.11n, compared with theory.
//!
//! The fixed point is that of [`crate::validate::bianchi`] with its refinements. A success carries
//! as many MPDUs as an aggregate holds (Y. Lin, V. Wong, "Frame aggregation and optimal frame size
//! adaptation for IEEE 802.11n WLANs", GLOBECOM 2006), and no frame is given up. All times are
//! computed here from IEEE Std 802.11-2016.

use super::scene::{How, datagrams, mbps};
use super::{Options, Sample, Table, point};
use crate::validate::bianchi::{Account, Cell};
use meshpace_mesh::HtConfig;
use meshpace_sim::Config;

const SLOT: f64 = 9.0;
const SIFS: f64 = 16.0;
const AIFS: f64 = SIFS + 3.0 * SLOT;

/// Data bits per symbol of MCS 0 to 7.
const BITS: [f64; 8] = [26.0, 52.0, 78.0, 104.0, 156.0, 208.0, 234.0, 260.0];
/// Data bits per symbol of the acknowledgement to MCS 0 to 7. Its rate is the highest of 6, 12 and
/// 24 Mbit/s that the data rate allows.
const RESPONSE_BITS: [f64; 8] = [24.0, 48.0, 48.0, 96.0, 96.0, 96.0, 96.0, 96.0];

/// Duration in us of the symbols of 4 us that carry `bytes`.
fn symbols(bytes: f64, bits_per_symbol: f64) -> f64 {
    4.0 * ((16.0 + 8.0 * bytes + 6.0) / bits_per_symbol).ceil()
}

/// Cell with datagrams of 1470 bytes: MPDUs have 1536 bytes, subframes 1540.
fn cell(mcs: u8, mpdus: u32, rts: bool) -> Cell {
    let mcs = usize::from(mcs);
    let data_air = |bytes: f64| 36.0 + symbols(bytes, BITS[mcs]);
    let psdu = |count: u32| if count == 1 { 1536.0 } else { 1540.0 * f64::from(count) };
    let fits = |n: &u32| *n == 1 || psdu(*n) <= 65_535.0 && data_air(psdu(*n)) <= 5_484.0;
    let carried = (1..=mpdus).rev().find(fits).unwrap_or(1);
    let answer = 20.0 + symbols(if carried == 1 { 14.0 } else { 32.0 }, RESPONSE_BITS[mcs]);
    let (rts_air, cts_air) = (20.0 + symbols(20.0, 24.0), 20.0 + symbols(14.0, 24.0));
    let data = data_air(psdu(carried));
    let handshake = if rts { rts_air + cts_air + 2.0 * SIFS } else { 0.0 };
    Cell {
        slot: SLOT,
        success: handshake + data + SIFS + answer + AIFS,
        // Equally strong frames hide each other's preambles, so no station waits for EIFS.
        collision: AIFS + if rts { rts_air } else { data },
        window: 16.0,
        doublings: 6,
        attempts: 255,
        payload: f64::from(carried) * 1470.0 * 8.0,
    }
}

/// Throughput, Mbit/s.
fn throughput(cell: &Cell, stations: u16) -> f64 {
    cell.throughput(Account::Refined, stations) / 1e3
}

/// A run that is long enough for `exchanges` exchanges. As in the theory, counters stand still
/// while the medium is busy, and no frame is given up. After a missed block ACK, all MPDUs are sent
/// again.
fn config(stations: u16, mcs: u8, mpdus: u32, rts: bool, exchanges: f64) -> Config {
    let ht = HtConfig { mpdus, requests_block_ack: false, busy_slot_counts: false, ..HtConfig::default() };
    let how = How { ht: Some(ht), retries: 255, ..How::mcs(mcs, mpdus, rts) };
    let ends: Vec<(u16, u16)> = (1..=stations).map(|station| (station, 0)).collect();
    let cell = cell(mcs, mpdus, rts);
    let seconds = exchanges * cell.payload / (throughput(&cell, stations) * 1e6);
    let share = (4.0 / f64::from(stations)).min(1.1);
    datagrams(how.mesh(stations + 1, |_, _| true), stations + 1, &ends, share, seconds.ceil() as u64)
}

/// Number of successful exchanges in a run.
const EXCHANGES: f64 = 1_500.0;

/// Compares all numbers of stations, bit rates and sizes of aggregates.
pub fn compare(options: &Options) -> Vec<Table> {
    let mut points = Vec::new();
    let sizes = [0, 3, 7].into_iter().flat_map(|mcs| [1, 4, 16, 64].map(|mpdus| (mcs, mpdus)));
    let accesses = sizes.flat_map(|(mcs, mpdus)| [false, true].map(|rts| (mcs, mpdus, rts)));
    let cells =
        accesses.flat_map(|(mcs, mpdus, rts)| [1, 2, 5, 10, 20, 50].map(|stations| (mcs, mpdus, rts, stations)));
    for (mcs, mpdus, rts, stations) in options.sampled(cells, &[1, 28, 56, 113, 142]) {
        let config = config(stations, mcs, mpdus, rts, EXCHANGES);
        let runs = options.runs(&config, options.seeds(10));
        let sums: Vec<f64> = runs.iter().map(|outcome| mbps(outcome).iter().sum()).collect();
        let reference = Sample::single(throughput(&cell(mcs, mpdus, rts), stations));
        let plural = if stations == 1 { "" } else { "s" };
        let access = if rts { "RTS/CTS" } else { "basic access" };
        let case = format!("{stations} station{plural}, MCS {mcs}, up to {mpdus} MPDUs, {access}");
        points.push(point(case, reference, Sample::of(&sums), Some(2.0)));
    }
    vec![Table {
        name: "ht_cell",
        title: "Saturated stations in one cell of 802.11n",
        source: "theory",
        unit: "Mbit/s",
        rule: "The reference is the fixed point of Bianchi (JSAC 2000) with counters that stand still while the medium is busy, a success \
               carrying an aggregate (Lin and Wong, GLOBECOM 2006). Datagrams of 1470 bytes, nothing is given up, a missed block ACK makes everything go again. \
               Within 2 %; a run has some 1500 exchanges.",
        points,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_station_by_hand() {
        // One MPDU at MCS 7: 48 symbols: 228 us; SIFS 16, ACK 28, AIFS 43 and 7.5 slots: 382.5 us for 11760 bits. ns-3.44: 30.73.
        assert!((throughput(&cell(7, 1, false), 1) - 11760.0 / 382.5).abs() < 1e-9);
        // 28 MPDUs: 5344 us, block ACK 32: 5502.5 us. ns-3.44: 59.84.
        assert!((throughput(&cell(7, 64, false), 1) - 28.0 * 11760.0 / 5502.5).abs() < 1e-9);
    }

    #[test]
    fn one_and_ten_stations_share_what_theory_says() {
        // Some 12,000 exchanges of each: the interval of the sum is below 1 %.
        for (stations, mcs, mpdus, rts) in [(1, 0, 4, true), (1, 7, 64, false), (10, 3, 1, false), (10, 7, 16, true)] {
            let config = config(stations, mcs, mpdus, rts, 6_000.0);
            let ours =
                (1..=2).map(|seed| mbps(&meshpace_sim::run(&config, seed)).iter().sum::<f64>()).sum::<f64>() / 2.0;
            let theory = throughput(&cell(mcs, mpdus, rts), stations);
            assert!((ours / theory - 1.0).abs() < 0.02, "{stations}, MCS {mcs}, {mpdus}: {ours}, theory {theory}");
        }
    }
}
