//! Frames of OFDM radios: their rates, preambles and air times.
//!
//! Source: IEEE Std 802.11-2016: 17.3.2 and table 17-4 (rates of 6 to 54 Mbit/s), 17.4.3 (TXTIME of
//! a non-HT frame), 19.3.2 and 19.4.3 (HT-mixed format and its TXTIME, equations 19-90 and 19-91),
//! tables 19-27 and 19-28 (MCS 0 to 15 at 20 MHz), 19.3.9.4.6 (HT-LTFs by streams), 10.7.6.5.2
//! (rate of control responses), tables 17-21 and 19-25 (slot, SIFS, delays). The model covers one
//! channel of 20 MHz with equal modulation, one encoder, no STBC and no sounding.
//!
//! ```text
//! non-HT:   20 us + 4 us ceil((16 + 8 L + 6) / N_DBPS)
//! HT-mixed: 32 us + 4 us N_HTLTF + 4 us N_SYM,           N_SYM = ceil((16 + 8 L + 6) / N_DBPS)
//! short guard interval: 4 us ceil(3.6 us N_SYM / 4 us) in place of 4 us N_SYM
//! 2.4 GHz:  6 us of silence follow (signal extension)
//! ```

use super::bit_errors::Modulation;
use super::coded::{CodeRate, Coded, Constellation};
use super::frame::{FrameRate, RateKind};
use super::rate_model::RateModel;
use meshpace_core::{Duration, Rate};

/// Number of service bits before the MPDU and tail bits after it.
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// Length of a symbol with the long guard interval.
const SYMBOL: Duration = Duration::from_micros(4);
/// Length of L-STF, L-LTF and L-SIG.
const NON_HT_PREAMBLE: Duration = Duration::from_micros(20);
/// Length of L-STF, L-LTF, L-SIG, HT-SIG and HT-STF.
const HT_PREAMBLE: Duration = Duration::from_micros(32);
/// Signal extension after a frame in the 2.4 GHz band.
const SIGNAL_EXTENSION: Duration = Duration::from_micros(6);
/// aPHY-RX-START-Delay of control frames: time from the end of a SIFS until a receiver indicates
/// the start of a frame.
pub const RX_START_DELAY: Duration = Duration::from_micros(20);
/// aCCATime: time after which a busy medium is noticed.
pub const CCA_TIME: Duration = Duration::from_micros(4);
/// aPPDUMaxTime of HT-mixed frames.
pub const LONGEST_FRAME: Duration = Duration::from_micros(5_484);
/// aSlotTime. In the 2.4 GHz band this is the short slot.
pub const SLOT: Duration = Duration::from_micros(9);

/// Frequency band of the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Band {
    /// Band of 5 GHz, channel 44.
    #[default]
    Five,
    /// Band of 2.4 GHz, channel 6.
    Two,
}

impl Band {
    /// Centre frequency of the channel, in Hz.
    pub fn frequency_hz(self) -> f64 {
        match self {
            Band::Five => 5220e6,
            Band::Two => 2437e6,
        }
    }

    /// aSIFSTime of the band.
    pub fn sifs(self) -> Duration {
        match self {
            Band::Five => Duration::from_micros(16),
            Band::Two => Duration::from_micros(10),
        }
    }
}

/// Rate together with its frame format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfdmRate {
    /// Format of 802.11a with 6 to 54 Mbit/s: index in table 17-4, 0 to 7.
    NonHt(u8),
    /// HT-mixed format.
    Ht {
        /// MCS, 0 to 15. MCS 8 and above have two spatial streams, the others one.
        mcs: u8,
        /// True for guard intervals of 0.4 us instead of 0.8 us.
        short_guard: bool,
    },
}

/// Table 17-4: data bits per symbol of 4 us. The coded bits per subcarrier and the code rate are in
/// [`OfdmRate::modulation`].
const NON_HT_BITS: [u32; 8] = [24, 36, 48, 72, 96, 144, 192, 216];
/// Table 19-27: data bits per symbol of one stream.
const HT_BITS: [u32; 8] = [26, 52, 78, 104, 156, 208, 234, 260];

impl OfdmRate {
    /// Returns the rate of 802.11a with this bit rate; `None` if there is no such rate.
    pub fn non_ht(rate: Rate) -> Option<OfdmRate> {
        let place = NON_HT_BITS.iter().position(|&bits| u64::from(bits) * 250_000 == rate.0)?;
        Some(OfdmRate::NonHt(place as u8))
    }

    /// Returns the HT rate with MCS `mcs`; `None` unless `mcs` is 0 to 15.
    pub fn mcs(mcs: u8, short_guard: bool) -> Option<OfdmRate> {
        (mcs < 16).then_some(OfdmRate::Ht { mcs, short_guard })
    }

    /// N_DBPS: data bits per symbol.
    pub fn bits_per_symbol(self) -> u32 {
        match self {
            OfdmRate::NonHt(place) => NON_HT_BITS[usize::from(place & 7)],
            OfdmRate::Ht { mcs, .. } => HT_BITS[usize::from(mcs & 7)] * self.streams(),
        }
    }

    /// Number of spatial streams.
    pub fn streams(self) -> u32 {
        match self {
            OfdmRate::NonHt(_) => 1,
            OfdmRate::Ht { mcs, .. } => 1 + u32::from(mcs / 8),
        }
    }

    /// Bit rate in bit/s, rounded down.
    pub fn rate(self) -> Rate {
        let bits = u64::from(self.bits_per_symbol());
        match self {
            OfdmRate::Ht { short_guard: true, .. } => Rate::from_bps(bits * 10_000_000 / 36),
            _ => Rate::from_bps(bits * 250_000),
        }
    }

    /// Modulation and code of the rate.
    pub fn modulation(self) -> Modulation {
        use {CodeRate::*, Constellation::*};
        let (constellation, code) = match self {
            OfdmRate::NonHt(place) => match place {
                0 => (Bpsk, Half),
                1 => (Bpsk, ThreeQuarters),
                2 => (Qpsk, Half),
                3 => (Qpsk, ThreeQuarters),
                4 => (Qam16, Half),
                5 => (Qam16, ThreeQuarters),
                6 => (Qam64, TwoThirds),
                _ => (Qam64, ThreeQuarters),
            },
            OfdmRate::Ht { mcs, .. } => match mcs & 7 {
                0 => (Bpsk, Half),
                1 => (Qpsk, Half),
                2 => (Qpsk, ThreeQuarters),
                3 => (Qam16, Half),
                4 => (Qam16, ThreeQuarters),
                5 => (Qam64, TwoThirds),
                6 => (Qam64, ThreeQuarters),
                _ => (Qam64, FiveSixths),
            },
        };
        Modulation::Coded(Coded {
            constellation,
            code,
            streams: self.streams() as u8,
            bits_per_second: self.rate().0 as u32,
        })
    }

    /// Reception model of frames with this rate.
    pub fn model(self) -> RateModel {
        RateModel { modulation: self.modulation(), header: self.preamble() }
    }

    /// Time before the first data symbol.
    pub fn preamble(self) -> Duration {
        match self {
            OfdmRate::NonHt(_) => NON_HT_PREAMBLE,
            OfdmRate::Ht { .. } => HT_PREAMBLE + SYMBOL * u64::from(self.streams()),
        }
    }

    /// Air time of a frame of `bytes`.
    pub fn air_time(self, bytes: u32, band: Band) -> Duration {
        let symbols = (u64::from(bytes) * 8 + SERVICE_AND_TAIL).div_ceil(u64::from(self.bits_per_symbol()));
        let long = match self {
            OfdmRate::Ht { short_guard: true, .. } => (symbols * 9).div_ceil(10),
            _ => symbols,
        };
        let extension = if band == Band::Two { SIGNAL_EXTENSION } else { Duration::ZERO };
        self.preamble() + SYMBOL * long + extension
    }

    /// Size in bytes of the longest frame whose air time is at most `longest`.
    pub fn bytes_within(self, longest: Duration, band: Band) -> u32 {
        let (mut fits, mut too_long) = (0, 1 << 20);
        while too_long - fits > 1 {
            let middle = (fits + too_long) / 2;
            if self.air_time(middle, band) <= longest { fits = middle } else { too_long = middle }
        }
        fits
    }

    /// Rate of the control frame that answers a frame with this rate: the highest of the mandatory
    /// 6, 12 and 24 Mbit/s that is not above this rate. For an HT frame, it must not be above the
    /// non-HT reference rate of its modulation and code (table 10-7).
    pub fn response(self) -> OfdmRate {
        let reference = match self {
            OfdmRate::NonHt(place) => place,
            OfdmRate::Ht { mcs, .. } => [0, 2, 3, 4, 5, 6, 7, 7][usize::from(mcs & 7)],
        };
        OfdmRate::NonHt(match reference {
            0 | 1 => 0,
            2 | 3 => 2,
            _ => 4,
        })
    }
}

/// OFDM radio of a mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ofdm {
    /// Band of the channel.
    pub band: Band,
    /// Rate of unicast data.
    pub data: OfdmRate,
    /// Rate of RTS, CTS and broadcasts.
    pub basic: OfdmRate,
}

impl Ofdm {
    /// Returns the rate with the number `mcs` of [`FrameRate::chosen`]. An MCS has the guard
    /// interval of the mesh, which is the same for all nodes with 802.11n.
    pub fn chosen(self, mcs: u8) -> OfdmRate {
        match self.data {
            _ if mcs >= FrameRate::NON_HT => OfdmRate::NonHt(mcs - FrameRate::NON_HT),
            OfdmRate::Ht { short_guard, .. } => OfdmRate::Ht { mcs, short_guard },
            non_ht => non_ht,
        }
    }

    /// Returns the rate of a frame.
    pub fn rate_of(self, rate: FrameRate) -> OfdmRate {
        match rate.kind() {
            RateKind::Basic => self.basic,
            RateKind::Data => self.data,
            RateKind::Response => self.data.response(),
            RateKind::Chosen(mcs) => self.chosen(mcs),
            RateKind::Answering(mcs) => self.chosen(mcs).response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(rate: OfdmRate, bytes: u32, band: Band) -> u64 {
        rate.air_time(bytes, band).0 / 1_000
    }

    fn mcs(mcs: u8, short_guard: bool) -> OfdmRate {
        OfdmRate::mcs(mcs, short_guard).unwrap()
    }

    fn mbps(mbps: u64) -> OfdmRate {
        OfdmRate::non_ht(Rate::from_mbps(mbps)).unwrap()
    }

    #[test]
    fn a_chosen_rate_of_802_11a_is_answered_at_one_that_every_station_has() {
        // IEEE Std 802.11-2020, 10.6.6.5.2: the response has the highest of 6, 12 and 24 Mbit/s
        // that is not above the rate of the frame.
        let mesh = Ofdm { band: Band::Five, data: mcs(7, false), basic: mbps(6) };
        for (place, (chosen, answer)) in
            [(6, 6), (9, 6), (12, 12), (18, 12), (24, 24), (36, 24), (48, 24), (54, 24)].into_iter().enumerate()
        {
            let number = FrameRate::NON_HT + place as u8;
            assert_eq!(mesh.rate_of(FrameRate::chosen(number)), mbps(chosen));
            assert_eq!(mesh.rate_of(FrameRate::answering(number)), mbps(answer), "{chosen}");
        }
    }

    #[test]
    fn durations_seen_on_air_in_ns3() {
        // The durations are those of ns-3.44, HT-mixed, 5 GHz: 28 subframes of 1540 bytes at MCS 7,
        // 1536 bytes at MCS 3, RTS and CTS at 6 Mbit/s, ACK and block ACK at 24 and 6 Mbit/s.
        assert_eq!(us(mcs(7, false), 28 * 1540, Band::Five), 5344);
        assert_eq!(us(mcs(3, false), 1536, Band::Five), 512);
        assert_eq!(us(mbps(6), 20, Band::Five), 52);
        assert_eq!(us(mbps(6), 14, Band::Five), 44);
        assert_eq!((us(mbps(24), 14, Band::Five), us(mbps(24), 32, Band::Five)), (28, 32));
        assert_eq!(us(mbps(6), 32, Band::Five), 68);
    }

    #[test]
    fn durations_by_hand() {
        // 17.4.3: 1500 bytes at 54 Mbit/s are (16 + 12000 + 6) / 216 = 55.7, that is 56 symbols or
        // 244 us; 250 us in the 2.4 GHz band.
        assert_eq!((us(mbps(54), 1500, Band::Five), us(mbps(54), 1500, Band::Two)), (244, 250));
        // 19.4.3: two streams have 40 us of preamble and 12022 / 520 = 23.1, that is 24 symbols.
        assert_eq!(us(mcs(15, false), 1500, Band::Five), 136);
        // Short guard interval: 24 * 3.6 = 86.4 us are rounded up to whole symbols of 4 us, 88 us.
        assert_eq!(us(mcs(15, true), 1500, Band::Five), 128);
        // A frame of one symbol of 3.6 us takes 4 us.
        assert_eq!(us(mcs(7, true), 14, Band::Five), 40);
    }

    #[test]
    fn the_rates_of_the_tables() {
        let non_ht = [6, 9, 12, 18, 24, 36, 48, 54];
        for (place, &rate) in non_ht.iter().enumerate() {
            assert_eq!(mbps(rate), OfdmRate::NonHt(place as u8));
        }
        assert!(OfdmRate::non_ht(Rate::from_mbps(11)).is_none() && OfdmRate::mcs(16, false).is_none());
        // The values are those of tables 19-27 and 19-28, in Mbit/s with guard intervals of 800 ns
        // and 400 ns.
        let long = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0];
        let short = [7.2, 14.4, 21.7, 28.9, 43.3, 57.8, 65.0, 72.2];
        for n in 0..8u8 {
            for (add, factor) in [(0, 1.0), (8, 2.0)] {
                let rate = mcs(n + add, false).rate().0 as f64 / 1e6;
                assert!((rate - long[usize::from(n)] * factor).abs() < 1e-9, "MCS {}", n + add);
                let rate = mcs(n + add, true).rate().0 as f64 / 1e6;
                assert!((rate - short[usize::from(n)] * factor).abs() < 0.11, "MCS {} short: {rate}", n + add);
            }
        }
        assert_eq!(mcs(15, true).rate().0, 144_444_444);
    }

    #[test]
    fn responses_have_the_highest_mandatory_rate_below() {
        // ns-3.44 answers at 6 Mbit/s for MCS 0, at 12 Mbit/s for MCS 1, and at 24 Mbit/s for MCS
        // 3, 5 and 7.
        for (number, response) in [(0, 6), (1, 12), (2, 12), (3, 24), (5, 24), (7, 24), (8, 6), (15, 24)] {
            assert_eq!(mcs(number, false).response(), mbps(response), "MCS {number}");
        }
        for (rate, response) in [(6, 6), (9, 6), (12, 12), (18, 12), (24, 24), (54, 24)] {
            assert_eq!(mbps(rate).response(), mbps(response), "{rate} Mbit/s");
        }
    }

    #[test]
    fn what_fits_into_the_longest_frame() {
        // ns-3.44 sends 28 / 22 / 11 / 2 subframes of 1540 bytes at MCS 7 / 5 / 3 / 0. At MCS 7, 29
        // do not fit.
        for (number, subframes) in [(7, 28), (5, 22), (3, 11), (0, 2)] {
            let bytes = mcs(number, false).bytes_within(LONGEST_FRAME, Band::Five);
            assert_eq!(bytes / 1540, subframes, "MCS {number}");
            assert!(mcs(number, false).air_time(bytes, Band::Five) <= LONGEST_FRAME);
            assert!(mcs(number, false).air_time(bytes + 1, Band::Five) > LONGEST_FRAME);
        }
    }
}
