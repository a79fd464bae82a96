//! Quiet trains in TCP packets: the header of [`super::wire`] with the option of
//! [`crate::train::wire`]. TAIL is encoded as PSH.
//!
//! docs/quiet-trains.md, "On the wire". Both SYNs offer the option. If one end does not offer it,
//! or without time stamps, the connection is a plain TCP connection. Windows are counted in full
//! segments, so both ends use the smaller of the two offered segment sizes as the size of a full
//! segment.

use super::segment;
use super::wire::{BEFORE, Header, Numbers, Options, TIMESTAMP_BYTES, offset};
use crate::flags::Flags;
use crate::train::Segment;
use crate::train::wire::{Content, content};

/// Adds the offer of quiet trains to the options of a SYN. Full segments of this end have at most
/// `segment` bytes.
pub fn offer(options: Options, segment: u32) -> Options {
    let largest = u16::try_from(segment.saturating_add(TIMESTAMP_BYTES)).unwrap_or(u16::MAX);
    Options { train: Some(Content::Offer), mss: options.mss.map(|mss| mss.min(largest)), ..options }
}

/// True if the peer's SYN offers quiet trains and the time stamps that they need.
pub fn is_offered(options: &Options) -> bool {
    options.train == Some(Content::Offer) && options.timestamps.is_some()
}

impl Numbers {
    /// The header of `segment`. Full segments have `full` bytes.
    pub fn train_header(&self, segment: &Segment, full: u32, ports: (u16, u16)) -> Header {
        let syn = segment.flags.has(Flags::SYN);
        let bytes = u32::from(segment.window).saturating_mul(full) >> if syn { 0 } else { self.own_scale };
        let numbers =
            segment::Segment { seq: segment.seq, ack: segment.ack, flags: segment.flags, ..Default::default() };
        let reset = segment.flags.has(Flags::RST);
        Header {
            source: ports.0,
            destination: ports.1,
            seq: numbers.wire_seq(self.own),
            ack: numbers.wire_ack(self.peer),
            flags: segment.flags,
            window: u16::try_from(bytes).unwrap_or(u16::MAX),
            options: Options {
                timestamps: (!reset).then_some((segment.ts_val, segment.ts_ecr)),
                train: content(segment),
                ..Options::default()
            },
        }
    }

    /// The segment that `header` with `payload` bytes represents. Full segments have `full` bytes,
    /// 1 or more. `expected` is the next offset of the peer's stream, and everything before
    /// `acknowledged` in our stream is acknowledged. `None` if the header has no time stamps and is
    /// no reset.
    pub fn train_segment(
        &self,
        header: &Header,
        payload: u16,
        full: u32,
        (expected, acknowledged): (u64, u64),
    ) -> Option<Segment> {
        let flags = header.flags;
        let syn = flags.has(Flags::SYN);
        let (ts_val, ts_ecr) = match header.options.timestamps {
            Some(stamps) => stamps,
            None if flags.has(Flags::RST) => (0, 0),
            None => return None,
        };
        let ack = if flags.has(Flags::ACK) { offset(header.ack, self.own, acknowledged).unwrap_or(BEFORE) } else { 0 };
        let seq = if syn { 0 } else { offset(header.seq, self.peer, expected).unwrap_or(BEFORE) };
        let bytes = u32::from(header.window) << if syn { 0 } else { self.peer_scale };
        let mut segment = Segment {
            seq,
            ack,
            ts_val,
            ts_ecr,
            payload,
            window: u16::try_from(bytes / full.max(1)).unwrap_or(u16::MAX),
            flags,
            ..Segment::default()
        };
        if let Some(Content::Report { feedback, wait, beyond }) = header.options.train {
            (segment.feedback, segment.wait, segment.beyond) = (feedback, wait, beyond);
        }
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::wire;
    use crate::train::Feedback;

    const NUMBERS: Numbers = Numbers { own: u32::MAX - 2, peer: 7, own_scale: 1, peer_scale: 1, timestamps: true };

    #[test]
    fn a_segment_survives_its_packet() {
        let addresses = wire::Addresses { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let feedback = Feedback { segments: 32, marked: 2, mean: -3, least: -40 };
        let data = Segment { seq: 1 << 33, ack: 1 << 34, ts_val: 5, ts_ecr: 6, window: 64, ..Segment::default() };
        let segments = [
            Segment { flags: Flags::SYN, seq: 0, ack: 0, window: 44, ..data },
            Segment { flags: Flags::ACK.with(Flags::PSH), payload: 3, ..data },
            Segment { flags: Flags::ACK, feedback, wait: 9, beyond: 0b10, ..data },
            Segment { flags: Flags::ACK.with(Flags::FIN), ..data },
        ];
        // What one end sends the other reads with the numbers turned round.
        let turned = Numbers { own: NUMBERS.peer, peer: NUMBERS.own, ..NUMBERS };
        for segment in segments {
            let header = NUMBERS.train_header(&segment, 1448, (1, 2));
            let payload = vec(segment.payload);
            let (bytes, length) = wire::encode(&header, addresses, &payload);
            let packet = [&bytes[..length], &payload].concat();
            let (read, rest) = wire::decode(&packet, addresses, wire::Check::Full).unwrap();
            assert_eq!((read, rest.len()), (header, usize::from(segment.payload)));
            assert_eq!(turned.train_segment(&read, segment.payload, 1448, (segment.seq, segment.ack)), Some(segment));
        }
    }

    fn vec(length: u16) -> alloc::vec::Vec<u8> {
        alloc::vec![7; usize::from(length)]
    }

    #[test]
    fn an_offer_needs_time_stamps_and_limits_the_segment() {
        let options = offer(wire::offer(1460, 65_535), 1000);
        assert_eq!(options.mss, Some(1012));
        assert!(!is_offered(&options));
        assert!(is_offered(&Options { timestamps: Some((1, 0)), ..options }));
        assert!(!is_offered(&Options { timestamps: Some((1, 0)), ..wire::offer(1460, 65_535) }));
        // The lesser of both is a full segment, less the time stamps.
        assert_eq!(wire::agreed(1460, &Options { timestamps: Some((1, 0)), ..options }).segment, 1000);
    }
}
