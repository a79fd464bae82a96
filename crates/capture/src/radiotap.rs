//! Radiotap header: what the radio knows about a frame in addition to its bytes.
//!
//! Source: radiotap.org, "Radiotap" (header, `it_present`) and "Defined fields" (TSFT, Flags, Rate,
//! Channel, Antenna signal, MCS, A-MPDU status). All fields are little-endian. A field is aligned
//! to its own size, counted from the start of the header.

use meshpace_core::Rate;
use meshpace_mesh::radio::ofdm::OfdmRate;

/// Bits of `it_present`.
const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const ANTENNA_SIGNAL: u32 = 1 << 5;
const MCS: u32 = 1 << 19;
const AMPDU_STATUS: u32 = 1 << 20;

/// Flags: the frame ends with its FCS; it is not encrypted and not a fragment.
const FCS_AT_END: u8 = 0x10;
/// Flags: a short preamble precedes the frame.
const SHORT_PREAMBLE: u8 = 0x02;
/// Channel flags: a modulation of IEEE 802.11b.
const CCK: u16 = 0x0020;
/// Channel flags: OFDM.
const OFDM: u16 = 0x0040;
/// Channel flags: frequency bands.
const BAND_2_GHZ: u16 = 0x0080;
const BAND_5_GHZ: u16 = 0x0100;

/// MCS: the fields bandwidth, index, guard interval, format, code, STBC and extension streams are
/// valid.
const MCS_KNOWN: u8 = 0x7f;
/// MCS flags: short guard interval. All other bits are zero: 20 MHz, HT-mixed, BCC, no STBC, no
/// extension streams.
const SHORT_GUARD: u8 = 0x04;

/// A-MPDU status: the flag for the last MPDU is valid.
const LAST_KNOWN: u16 = 0x0004;
const IS_LAST: u16 = 0x0008;

/// Rate of an HT frame.
#[derive(Clone, Copy, Debug)]
pub struct Ht {
    /// MCS index, 0 to 15.
    pub mcs: u8,
    /// True if the guard intervals are short.
    pub short_guard: bool,
}

impl Ht {
    /// HT rate of `rate`; `None` if it is not one of 802.11n.
    pub fn of(rate: OfdmRate) -> Option<Ht> {
        match rate {
            OfdmRate::Ht { mcs, short_guard } => Some(Ht { mcs, short_guard }),
            OfdmRate::NonHt(_) => None,
        }
    }
}

/// Position of an MPDU in an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// Number that all MPDUs of an aggregate share, and no other aggregate in the file has.
    pub reference: u32,
    /// True if the MPDU is the last one of the aggregate.
    pub is_last: bool,
}

/// Data of one frame for its radiotap header.
#[derive(Clone, Copy, Debug)]
pub struct Radio {
    /// Time at which the first bit of the MPDU was on the air at this node, in microseconds.
    pub tsft: u64,
    /// Carrier frequency in MHz.
    pub frequency_mhz: u16,
    /// True if the preamble is short.
    pub short_preamble: bool,
    /// True if the modulation is OFDM.
    pub is_ofdm: bool,
    /// Bit rate.
    pub rate: Rate,
    /// Rate of an 802.11n frame, which is written instead of the bit rate.
    pub ht: Option<Ht>,
    /// Position in an aggregate; `None` if the frame is not part of one.
    pub aggregate: Option<Aggregate>,
    /// Received power in dBm; `None` for the node's own transmissions.
    pub signal: Option<i8>,
}

/// Writes the header to `out`, which must be empty.
pub fn write(out: &mut Vec<u8>, radio: Radio) {
    debug_assert!(out.is_empty(), "alignment counts from the start of the header");
    // The field has 8 bits, in units of 500 kbit/s. A rate that does not fit is left out.
    let plain = Some(radio.rate.0).filter(|bps| radio.ht.is_none() && bps % 500_000 == 0);
    let rate = plain.and_then(|bps| u8::try_from(bps / 500_000).ok());
    let present = TSFT
        | FLAGS
        | if rate.is_some() { RATE } else { 0 }
        | CHANNEL
        | if radio.signal.is_some() { ANTENNA_SIGNAL } else { 0 }
        | if radio.ht.is_some() { MCS } else { 0 }
        | if radio.aggregate.is_some() { AMPDU_STATUS } else { 0 };
    out.extend([0, 0, 0, 0]);
    out.extend(present.to_le_bytes());
    out.extend(radio.tsft.to_le_bytes());
    out.push(FCS_AT_END | if radio.short_preamble { SHORT_PREAMBLE } else { 0 });
    // The rate, or the padding byte that aligns the channel field.
    out.push(rate.unwrap_or(0));
    out.extend(radio.frequency_mhz.to_le_bytes());
    let band = if radio.frequency_mhz < 3_000 { BAND_2_GHZ } else { BAND_5_GHZ };
    out.extend(if radio.is_ofdm { OFDM | band } else { CCK }.to_le_bytes());
    if let Some(signal) = radio.signal {
        out.push(signal as u8);
    }
    if let Some(ht) = radio.ht {
        out.extend([MCS_KNOWN, if ht.short_guard { SHORT_GUARD } else { 0 }, ht.mcs]);
    }
    if let Some(aggregate) = radio.aggregate {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(aggregate.reference.to_le_bytes());
        out.extend((LAST_KNOWN | if aggregate.is_last { IS_LAST } else { 0 }).to_le_bytes());
        // The CRC of the delimiter, which is unknown, and a reserved byte.
        out.extend([0, 0]);
    }
    let length = (out.len() as u16).to_le_bytes();
    out[2..4].copy_from_slice(&length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_received_frame_byte_by_byte() {
        let mut out = Vec::new();
        write(
            &mut out,
            Radio {
                tsft: 0x0102,
                frequency_mhz: 914,
                short_preamble: false,
                is_ofdm: false,
                rate: Rate::from_bps(5_500_000),
                ht: None,
                aggregate: None,
                signal: Some(-64),
            },
        );
        #[rustfmt::skip]
        let expected = [
            0, 0, 23, 0, // version, pad, length
            0x2f, 0, 0, 0, // TSFT, flags, rate, channel, antenna signal
            0x02, 0x01, 0, 0, 0, 0, 0, 0, // TSFT
            0x10, 11, // FCS at the end; 11 x 500 kbit/s
            0x92, 0x03, 0x20, 0, // 914 MHz, CCK
            0xc0, // -64 dBm
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_rate_the_field_cannot_hold_is_left_out() {
        let mut out = Vec::new();
        write(
            &mut out,
            Radio {
                tsft: 0,
                frequency_mhz: 914,
                short_preamble: false,
                is_ofdm: false,
                rate: Rate::from_bps(1_200_000),
                ht: None,
                aggregate: None,
                signal: None,
            },
        );
        assert_eq!(out[4], 0x0b);
        assert_eq!((out.len(), out[2]), (22, 22));
        assert_eq!(out[17], 0);
    }

    #[test]
    fn an_mpdu_of_an_aggregate_byte_by_byte() {
        let mut out = Vec::new();
        write(
            &mut out,
            Radio {
                tsft: 0x0102,
                frequency_mhz: 5_220,
                short_preamble: false,
                is_ofdm: true,
                rate: Rate::from_bps(65_000_000),
                ht: Some(Ht { mcs: 7, short_guard: true }),
                aggregate: Some(Aggregate { reference: 0x0a0b, is_last: true }),
                signal: Some(-64),
            },
        );
        #[rustfmt::skip]
        let expected = [
            0, 0, 36, 0, // version, pad, length
            0x2b, 0, 0x18, 0, // TSFT, flags, channel, antenna signal, MCS, A-MPDU status
            0x02, 0x01, 0, 0, 0, 0, 0, 0, // TSFT
            0x10, 0, // FCS at the end; padding in place of the rate
            0x64, 0x14, 0x40, 0x01, // 5220 MHz, OFDM in the band of 5 GHz
            0xc0, // -64 dBm
            0x7f, 0x04, 7, // everything is known; short guard interval; MCS 7
            0, 0, // padding
            0x0b, 0x0a, 0, 0, 0x0c, 0, 0, 0, // reference, the last one, which is known
        ];
        assert_eq!(out[..26], expected[..26]);
        // 26 bytes so far, and the status is aligned to four.
        assert_eq!(out, expected);
    }
}
