//! The radiotap header: what the radio knows of a frame besides its bytes.
//!
//! Source: radiotap.org, "Radiotap" (header, `it_present`) and "Defined fields" (TSFT, Flags, Rate, Channel, Antenna
//! signal). Little-endian; a field is aligned to its own size, counted from the start of the header.

use meshpace_core::Rate;

/// Bits of `it_present`.
const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const ANTENNA_SIGNAL: u32 = 1 << 5;

/// Flags: the frame ends with its FCS; not encrypted, no fragment.
const FCS_AT_END: u8 = 0x10;
/// Flags: a short preamble precedes the frame.
const SHORT_PREAMBLE: u8 = 0x02;
/// Channel flags: the modulations of IEEE 802.11b.
const CCK: u16 = 0x0020;
/// Channel flags: OFDM.
const OFDM: u16 = 0x0040;

/// What is said of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Radio {
    /// When the first bit of the MPDU was on the air here, microseconds.
    pub tsft: u64,
    /// Carrier frequency, MHz.
    pub frequency_mhz: u16,
    /// Whether its preamble is the short one.
    pub short_preamble: bool,
    /// Whether it is of OFDM.
    pub is_ofdm: bool,
    /// Its bit rate.
    pub rate: Rate,
    /// Power at which it was received, dBm; None for the node's own transmissions.
    pub signal: Option<i8>,
}

/// Appends the header to the empty `out`.
pub fn write(out: &mut Vec<u8>, radio: Radio) {
    debug_assert!(out.is_empty(), "alignment counts from the start of the header");
    // The field has 8 bits for units of 500 kbit/s; another rate is left out.
    let rate = Some(radio.rate.0).filter(|bps| bps % 500_000 == 0).and_then(|bps| u8::try_from(bps / 500_000).ok());
    let present = TSFT
        | FLAGS
        | if rate.is_some() { RATE } else { 0 }
        | CHANNEL
        | if radio.signal.is_some() { ANTENNA_SIGNAL } else { 0 };
    out.extend([0, 0, 0, 0]);
    out.extend(present.to_le_bytes());
    out.extend(radio.tsft.to_le_bytes());
    out.push(FCS_AT_END | if radio.short_preamble { SHORT_PREAMBLE } else { 0 });
    // The rate, or the byte that aligns the channel.
    out.push(rate.unwrap_or(0));
    out.extend(radio.frequency_mhz.to_le_bytes());
    out.extend(if radio.is_ofdm { OFDM } else { CCK }.to_le_bytes());
    if let Some(signal) = radio.signal {
        out.push(signal as u8);
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
                signal: None,
            },
        );
        assert_eq!(out[4], 0x0b);
        assert_eq!((out.len(), out[2]), (22, 22));
        assert_eq!(out[17], 0);
    }
}
