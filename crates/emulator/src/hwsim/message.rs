//! Messages of mac80211_hwsim over generic netlink.
//!
//! Source: Linux, drivers/net/wireless/mac80211_hwsim.h (version 1 of its family, Linux 6.1);
//! netlink(7); include/uapi/linux/genetlink.h. All numbers are in the byte order of the machine.
//! Attributes are aligned to 4 bytes.

use crate::address::Mac;
use crate::packet::Series;
use meshpace_mesh::radio::FrameRate;

/// Name of the netlink family.
pub const FAMILY: &str = "MAC80211_HWSIM";

const VERSION: u8 = 1;
const REGISTER: u8 = 1;
const FRAME: u8 = 2;
const TX_INFO_FRAME: u8 = 3;

const ADDR_RECEIVER: u16 = 1;
const ADDR_TRANSMITTER: u16 = 2;
const FRAME_BYTES: u16 = 3;
const FLAGS: u16 = 4;
const RX_RATE: u16 = 5;
const SIGNAL: u16 = 6;
const TX_INFO: u16 = 7;
const COOKIE: u16 = 8;
const FREQ: u16 = 19;
const TX_INFO_FLAGS: u16 = 21;

/// The frame was acknowledged, or needs no acknowledgement (`HWSIM_TX_STAT_ACK`).
const STAT_ACK: u32 = 1 << 2;
/// The number of a rate is an MCS of 802.11n (`MAC80211_HWSIM_TX_RC_MCS`).
const RATE_IS_MCS: u16 = 1 << 3;
/// The number of a rate is an MCS of 802.11ac, with the streams in the upper half
/// (`MAC80211_HWSIM_TX_RC_VHT_MCS`).
const RATE_IS_VHT: u16 = 1 << 8;

/// Generic netlink's own family, with the command and the attributes that are used.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// Lengths of the header of a netlink message, and of the generic header behind it.
const HEADER: usize = 16;
const GENERIC: usize = 4;
/// Number of rates of the 2.4 GHz band before the first OFDM rate: 1, 2, 5.5 and 11 Mbit/s.
const CCK_RATES: i8 = 4;

/// A rate in the numbering of mac80211, with a number of attempts, requested or made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxRate {
    /// Index of the rate among the rates of the band, or its MCS; negative: no rate.
    pub index: i8,
    /// Number of attempts.
    pub count: u8,
}

/// A frame that a radio sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmission<'a> {
    /// The radio's own address, by which it is identified here: bit 6 of the first byte is set.
    pub radio: Mac,
    /// The 802.11 frame without FCS.
    pub frame: &'a [u8],
    /// Flags of mac80211.
    pub flags: u32,
    /// Number by which the kernel identifies the frame.
    pub cookie: u64,
    /// Centre frequency of the channel, MHz; 0 if it is not given.
    pub frequency: u32,
    /// Rates, in the order in which they are tried.
    pub rates: [TxRate; 4],
    /// Flags of the rates.
    pub rate_flags: [u16; 4],
}

impl Transmission<'_> {
    /// The requested attempts in the form of the engine.
    pub fn series(&self) -> Series {
        std::array::from_fn(|place| {
            let TxRate { index, count } = self.rates[place];
            let attempts = if index < 0 { 0 } else { count };
            let flags = self.rate_flags[place];
            let number = if flags & RATE_IS_MCS != 0 {
                index.clamp(0, 15) as u8
            } else if flags & RATE_IS_VHT != 0 {
                (index & 0xf).clamp(0, 7) as u8 + if index & 0x70 != 0 { 8 } else { 0 }
            } else {
                let first = if self.frequency > 4_000 { 0 } else { CCK_RATES };
                FrameRate::NON_HT + index.saturating_sub(first).clamp(0, 7) as u8
            };
            (FrameRate::chosen(number), attempts)
        })
    }

    /// The rates of the first `made` attempts, with the number of attempts at each.
    pub fn tried(&self, made: u32) -> [TxRate; 4] {
        let mut left = made;
        self.rates.map(|rate| {
            let count = left.min(if rate.index < 0 { 0 } else { u32::from(rate.count) });
            left -= count;
            if count == 0 { TxRate { index: -1, count: 0 } } else { TxRate { count: count as u8, ..rate } }
        })
    }
}

/// A message under construction.
struct Writer(Vec<u8>);

impl Writer {
    fn new(family: u16, command: u8, version: u8) -> Writer {
        let mut bytes = vec![0; HEADER + GENERIC];
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        bytes[HEADER] = command;
        bytes[HEADER + 1] = version;
        Writer(bytes)
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Writer {
        self.0.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn done(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// Request for the number of the family.
pub fn get_family() -> Vec<u8> {
    let name = [FAMILY.as_bytes(), &[0]].concat();
    Writer::new(CONTROL, GET_FAMILY, 1).with(FAMILY_NAME, &name).done()
}

/// Request for every frame from now on.
pub fn register(family: u16) -> Vec<u8> {
    Writer::new(family, REGISTER, VERSION).done()
}

/// Message that the radio `to` receives a frame with the power `signal_dbm`.
pub fn receive(family: u16, to: Mac, sent: &Transmission<'_>, signal_dbm: i32) -> Vec<u8> {
    // The field takes a rate of the band. It cannot express an MCS.
    let rate = if sent.rate_flags[0] & (RATE_IS_MCS | RATE_IS_VHT) == 0 { sent.rates[0].index.max(0) } else { 0 };
    let mut message = Writer::new(family, FRAME, VERSION)
        .with(ADDR_RECEIVER, &to)
        .with(FRAME_BYTES, sent.frame)
        .with(RX_RATE, &(rate as u32).to_ne_bytes())
        .with(SIGNAL, &signal_dbm.to_ne_bytes());
    if sent.frequency != 0 {
        message = message.with(FREQ, &sent.frequency.to_ne_bytes());
    }
    message.done()
}

/// Transmission status of a frame: acknowledged or given up after `attempts` attempts. `signal_dbm`
/// is the power of the ACK.
pub fn status(family: u16, sent: &Transmission<'_>, attempts: u32, acknowledged: bool, signal_dbm: i32) -> Vec<u8> {
    let flags = if acknowledged { sent.flags | STAT_ACK } else { sent.flags };
    let rates: Vec<u8> = sent.tried(attempts).iter().flat_map(|rate| [rate.index as u8, rate.count]).collect();
    Writer::new(family, TX_INFO_FRAME, VERSION)
        .with(ADDR_TRANSMITTER, &sent.radio)
        .with(FLAGS, &flags.to_ne_bytes())
        .with(SIGNAL, &signal_dbm.to_ne_bytes())
        .with(TX_INFO, &rates)
        .with(COOKIE, &sent.cookie.to_ne_bytes())
        .done()
}

/// A message from the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Received<'a> {
    /// A radio sends a frame.
    Transmission(Transmission<'a>),
    /// Number of the requested family.
    Family(u16),
    /// Answer to a request: 0, or a number of errno.
    Answer(i32),
    /// Any other message.
    Other,
}

/// The messages of one datagram, in their order. Reading ends at a message that is cut short.
pub fn read(mut datagram: &[u8]) -> Vec<Received<'_>> {
    let mut messages = Vec::new();
    while let Some(length) = number::<4>(datagram, 0).map(|bytes| u32::from_ne_bytes(bytes) as usize) {
        let Some(message) = datagram.get(..length).filter(|message| message.len() >= HEADER) else { break };
        messages.push(one(message).unwrap_or(Received::Other));
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    messages
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn one(message: &[u8]) -> Option<Received<'_>> {
    let kind = u16::from_ne_bytes(number(message, 4)?);
    if kind == NLMSG_ERROR {
        return Some(Received::Answer(i32::from_ne_bytes(number(message, HEADER)?).saturating_neg()));
    }
    let command = *message.get(HEADER)?;
    let attributes = || Attributes(message.get(HEADER + GENERIC..).unwrap_or_default());
    if kind == CONTROL {
        let (_, value) = attributes().find(|&(kind, _)| kind == FAMILY_ID)?;
        return Some(Received::Family(u16::from_ne_bytes(number(value, 0)?)));
    }
    if command != FRAME {
        return None;
    }
    let none = TxRate { index: -1, count: 0 };
    let mut sent = Transmission {
        radio: [0; 6],
        frame: &[],
        flags: 0,
        cookie: 0,
        frequency: 0,
        rates: [none; 4],
        rate_flags: [0; 4],
    };
    for (kind, value) in attributes() {
        match kind {
            ADDR_TRANSMITTER => sent.radio = number(value, 0)?,
            FRAME_BYTES => sent.frame = value,
            FLAGS => sent.flags = u32::from_ne_bytes(number(value, 0)?),
            COOKIE => sent.cookie = u64::from_ne_bytes(number(value, 0)?),
            FREQ => sent.frequency = u32::from_ne_bytes(number(value, 0)?),
            TX_INFO => {
                for (rate, bytes) in sent.rates.iter_mut().zip(value.chunks_exact(2)) {
                    *rate = TxRate { index: bytes[0] as i8, count: bytes[1] };
                }
            }
            TX_INFO_FLAGS => {
                for (flags, bytes) in sent.rate_flags.iter_mut().zip(value.chunks_exact(3)) {
                    *flags = u16::from_ne_bytes([bytes[1], bytes[2]]);
                }
            }
            _ => {}
        }
    }
    Some(Received::Transmission(sent))
}

/// Iterator over the attributes of a message: kinds and values.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let length = usize::from(u16::from_ne_bytes(number(self.0, 0)?));
        let kind = u16::from_ne_bytes(number(self.0, 2)?);
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// A frame as Linux 6.1 passes it: at 5180 MHz, with three attempts at rate index 7 and two at rate
/// index 0.
#[cfg(test)]
pub(super) fn transmission_of(radio: Mac, frame: &[u8]) -> Vec<u8> {
    Writer::new(28, FRAME, VERSION)
        .with(ADDR_TRANSMITTER, &radio)
        .with(FRAME_BYTES, frame)
        .with(FLAGS, &1u32.to_ne_bytes())
        .with(FREQ, &5180u32.to_ne_bytes())
        .with(TX_INFO, &[7, 3, 0, 2, 0xff, 0, 0xff, 0])
        .with(TX_INFO_FLAGS, &[7, 0, 0, 0, 0, 0, 0xff, 0, 0, 0xff, 0, 0])
        .with(COOKIE, &77u64.to_ne_bytes())
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: Mac = [0x42, 0, 0, 0, 1, 0];

    fn transmission(frame: &[u8]) -> Vec<u8> {
        transmission_of(RADIO, frame)
    }

    #[test]
    fn a_frame_of_the_kernel_is_read() {
        let frame = [9; 37];
        let bytes = [transmission(&frame), transmission(&frame)].concat();
        let messages = read(&bytes);
        assert_eq!(messages.len(), 2);
        let Received::Transmission(sent) = &messages[1] else { panic!("{messages:?}") };
        assert_eq!((sent.radio, sent.frame, sent.flags, sent.cookie), (RADIO, &frame[..], 1, 77));
        // 54 Mbit/s and 6 Mbit/s have the indices 7 and 0 among the rates of 802.11a.
        let rate = |place| FrameRate::chosen(FrameRate::NON_HT + place);
        assert_eq!(sent.series()[..2], [(rate(7), 3), (rate(0), 2)]);
        assert_eq!((sent.series()[2].1, sent.series()[3].1), (0, 0));
        for cut in 0..bytes.len() / 2 {
            read(&bytes[..cut]);
        }
    }

    #[test]
    fn rates_are_numbered_by_band_and_format() {
        let bytes = transmission(&[]);
        let Received::Transmission(mut sent) = read(&bytes).remove(0) else { panic!() };
        let mut number = |index, flags, frequency| {
            (sent.rates[0].index, sent.rate_flags[0], sent.frequency) = (index, flags, frequency);
            sent.series()[0].0
        };
        let non_ht = |place| FrameRate::chosen(FrameRate::NON_HT + place);
        // 2.4 GHz: 1, 2, 5.5, 11, 6, 9 ... 54 Mbit/s.
        assert_eq!([number(0, 0, 2412), number(4, 0, 2412), number(11, 0, 2412)], [non_ht(0), non_ht(0), non_ht(7)]);
        assert_eq!(number(13, RATE_IS_MCS, 5180), FrameRate::chosen(13));
        // VHT: two streams, MCS 9.
        assert_eq!(number(0x19, RATE_IS_VHT, 5180), FrameRate::chosen(15));
    }

    #[test]
    fn attempts_are_told_by_rate() {
        let bytes = transmission(&[]);
        let Received::Transmission(sent) = read(&bytes).remove(0) else { panic!() };
        let told = |attempts| sent.tried(attempts).map(|rate| (rate.index, rate.count));
        assert_eq!(told(1), [(7, 1), (-1, 0), (-1, 0), (-1, 0)]);
        assert_eq!(told(4), [(7, 3), (0, 1), (-1, 0), (-1, 0)]);
        assert_eq!(told(5), [(7, 3), (0, 2), (-1, 0), (-1, 0)]);
        // The kernel finds flags, signal, rates and cookie by the numbers of their attributes.
        let status = status(28, &sent, 4, true, -60);
        let attributes: Vec<_> = Attributes(&status[HEADER + GENERIC..]).collect();
        assert!(attributes.contains(&(FLAGS, &5u32.to_ne_bytes()[..])));
        assert!(attributes.contains(&(TX_INFO, &[7, 3, 0, 1, 0xff, 0, 0xff, 0][..])));
        assert_eq!(status.len() % 4, 0);
        assert_eq!(status[..4], (status.len() as u32).to_ne_bytes());
    }
}
