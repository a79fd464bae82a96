//! Saturation throughput of one cell of 802.11n, in theory.
//!
//! Source: G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000, equations 7,
//! 9 and 13, where a success carries as many MPDUs as an aggregate holds (Y. Lin, V. Wong, "Frame aggregation and optimal frame
//! size adaptation for IEEE 802.11n WLANs", GLOBECOM 2006), with counters that stand still in a busy slot: who has just sent owns
//! the slot after it (I. Tinnirello, G. Bianchi, Y. Xiao, IEEE TVT 59(3), 2010). All times from IEEE Std 802.11-2016, worked out here.

/// Times in microseconds.
pub struct Cell {
    pub success: f64,
    pub collision: f64,
    /// Payload of a success, bits.
    pub payload: f64,
}

const SLOT: f64 = 9.0;
const SIFS: f64 = 16.0;
const AIFS: f64 = SIFS + 3.0 * SLOT;
const WINDOW: f64 = 16.0;
const DOUBLINGS: i32 = 6;

/// Symbols of 4 us for so many bytes.
fn symbols(bytes: f64, bits_per_symbol: f64) -> f64 {
    4.0 * ((16.0 + 8.0 * bytes + 6.0) / bits_per_symbol).ceil()
}

/// Data bits per symbol of MCS 0 to 7.
const BITS: [f64; 8] = [26.0, 52.0, 78.0, 104.0, 156.0, 208.0, 234.0, 260.0];

impl Cell {
    /// Datagrams of 1470 bytes: MPDUs of 1536, subframes of 1540.
    pub fn new(mcs: u8, mpdus: u32, rts: bool) -> Cell {
        let data_air = |bytes: f64| 36.0 + symbols(bytes, BITS[usize::from(mcs)]);
        let psdu = |count: u32| if count == 1 { 1536.0 } else { 1540.0 * f64::from(count) - 0.0 };
        let carried =
            (1..=mpdus).rev().find(|&n| n == 1 || psdu(n) <= 65_535.0 && data_air(psdu(n)) <= 5_484.0).unwrap();
        let response = [24.0, 48.0, 48.0, 96.0, 96.0, 96.0, 96.0, 96.0][usize::from(mcs)];
        let answer = 20.0 + symbols(if carried == 1 { 14.0 } else { 32.0 }, response);
        let (rts_air, cts_air) = (20.0 + symbols(20.0, 24.0), 20.0 + symbols(14.0, 24.0));
        let data = data_air(psdu(carried));
        let handshake = if rts { rts_air + cts_air + 2.0 * SIFS } else { 0.0 };
        let first = if rts { rts_air } else { data };
        Cell {
            success: handshake + data + SIFS + answer + AIFS,
            // Equally strong frames hide each other's preambles: nobody waits for EIFS. Who collided notices 2 us later.
            collision: first + AIFS,
            payload: f64::from(carried) * 1470.0 * 8.0,
        }
    }

    fn tau(p: f64) -> f64 {
        // Mean backoff of a cycle that ends with a success, by stages; the first one after a success is uniform on 0 to W - 2.
        let attempts = 1.0 / (1.0 - p);
        let mean = |stage: i32| (WINDOW * 2f64.powi(stage.min(DOUBLINGS)) - 1.0) / 2.0;
        let rest = p.powi(DOUBLINGS) / (1.0 - p) * mean(DOUBLINGS);
        let later: f64 = (1..DOUBLINGS).map(|stage| p.powi(stage) * mean(stage)).sum::<f64>() + rest;
        attempts / (attempts + (WINDOW - 2.0) / 2.0 + later)
    }

    /// Of `n` stations, Mbit/s.
    pub fn throughput(&self, n: u16) -> f64 {
        let (mut low, mut high) = (0.0, 1.0f64);
        for _ in 0..100 {
            let tau = (low + high) / 2.0;
            if Cell::tau(1.0 - (1.0 - tau).powi(i32::from(n) - 1)) > tau { low = tau } else { high = tau }
        }
        let tau: f64 = low;
        let others = (1.0 - tau).powi(i32::from(n) - 1);
        let (idle, success) = ((1.0 - tau) * others, f64::from(n) * tau * others);
        let collision = 1.0 - idle - success;
        let burst = WINDOW / (WINDOW - 1.0);
        let time = idle * SLOT + success * (self.success * burst + SLOT) + collision * (self.collision + SLOT);
        success * burst * self.payload / time
    }
}

#[test]
fn one_station_by_hand() {
    // One MPDU at MCS 7: 48 symbols: 228 us; SIFS 16, ACK 28, AIFS 43 and 7.5 slots: 382.5 us for 11760 bits. ns-3.44: 30.73.
    assert!((Cell::new(7, 1, false).throughput(1) - 11760.0 / 382.5).abs() < 1e-9);
    // 28 MPDUs: 5344 us, block ACK 32: 5502.5 us. ns-3.44: 59.84.
    assert!((Cell::new(7, 64, false).throughput(1) - 28.0 * 11760.0 / 5502.5).abs() < 1e-9);
}
