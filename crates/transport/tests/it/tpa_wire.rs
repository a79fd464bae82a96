//! Tests of TPA's byte format: the layout bit by bit, the checksum, and arbitrary bytes.

use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_transport::tpa::segment::ALL;
use meshpace_transport::tpa::wire::{self, Error, Ports};
use meshpace_transport::tpa::{Flags, Segment};

const PORTS: Ports = Ports { source: 0x1234, destination: 0xabcd };

fn example() -> Segment {
    Segment {
        offset: 0,
        block: 0x123,
        place: 1 << 11,
        ack_block: 0xfed,
        ack_places: 0x00f,
        payload: 3,
        tx: 0x45,
        ack_tx: 0x67,
        window: 0x81,
        congested: true,
        last: true,
        flags: Flags::ACK,
    }
}

#[test]
fn layout() {
    // Words as in the head of `wire`: 12 + 12 + 8 bits twice; status 1000 (ACK), 1 (txStat),
    // 10000001 (WinSize), 1 (last), 00.
    let header = wire::encode_inside_udp(&example());
    assert_eq!(header, [0x12, 0x38, 0x00, 0x45, 0xfe, 0xd0, 0x0f, 0x67, 0, 0, 0b1000_1100, 0b0000_1100]);
    let full = wire::encode(&example(), PORTS, b"abc");
    assert_eq!(full[..4], [0x12, 0x34, 0xab, 0xcd]);
    assert_eq!(full[4..12], header[..8]);
    assert_eq!(full[14..], header[10..]);
    // RFC 1071: the complement of the one's complement sum of 1234 abcd 1238 0045 fed0 0f67 8c0c
    // 6162 6300. By hand: be01, d039, d07e, cf4f, deb6, 6ac3, cc25, 2f26. The complement is d0d9.
    assert_eq!(full[12..14], [0xd0, 0xd9]);
}

#[test]
fn what_is_encoded_is_decoded() {
    for seed in 0..2000 {
        let mut rng = Rng::stream(seed, Purpose::Test, 10);
        let mut bits = |width: u32| rng.below(1 << width) as u16;
        let (place, payload) = match bits(2) {
            0 => (0, 0),
            1 => (1 << (bits(4) % 12), 0),
            _ => (1 << (bits(4) % 12), 1 + bits(11)),
        };
        let fin = place != 0 && payload == 0;
        let four = [Flags::FIN, Flags::SYN, Flags::RST, Flags::ACK];
        let flags = four.into_iter().filter(|&flag| bits(1) == 1 || fin && flag == Flags::FIN);
        let flags = flags.fold(Flags::NONE, Flags::with);
        let segment = Segment {
            offset: 0,
            block: bits(12),
            place,
            ack_block: bits(12),
            ack_places: bits(12),
            payload,
            tx: bits(8) as u8,
            ack_tx: bits(8) as u8,
            window: bits(8) as u8,
            congested: bits(1) == 1,
            last: bits(1) == 1,
            flags,
        };
        let payload: Vec<u8> = (0..segment.payload).map(|i| i as u8).collect();
        let mut bytes = wire::encode(&segment, PORTS, &payload).to_vec();
        bytes.extend_from_slice(&payload);
        assert_eq!(wire::decode(&bytes), Ok((PORTS, segment, &payload[..])), "seed {seed}");
        let mut bytes = wire::encode_inside_udp(&segment).to_vec();
        bytes.extend_from_slice(&payload);
        assert_eq!(wire::decode_inside_udp(&bytes), Ok((segment, &payload[..])), "seed {seed}");
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let mut bytes = wire::encode(&example(), PORTS, b"abc").to_vec();
    bytes.extend_from_slice(b"abc");
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(wire::decode(&bytes), Err(Error::Checksum), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn every_error_has_its_bytes() {
    let decode = |segment: Segment, payload: &[u8]| {
        let bytes = [&wire::encode_inside_udp(&segment), payload].concat();
        wire::decode_inside_udp(&bytes).map(|(segment, _)| segment)
    };
    assert_eq!(wire::decode(&[0; 15]), Err(Error::Short));
    assert_eq!(wire::decode_inside_udp(&[0; 11]), Err(Error::Short));
    assert_eq!(decode(example(), &[0; 65536]), Err(Error::Long));
    assert_eq!(decode(Segment { place: 0b11, ..example() }, b"abc"), Err(Error::Places));
    assert_eq!(decode(Segment { place: 0, ..example() }, b"abc"), Err(Error::Payload));
    assert_eq!(decode(example(), b""), Err(Error::Payload));
    let cookie = Segment { place: 0, flags: Flags::SYN, ..example() };
    assert!(decode(cookie, b"abc").is_ok(), "a SYN carries a cookie");
    let fin = Segment { flags: Flags::FIN, payload: 0, ..example() };
    assert_eq!(decode(fin, b""), Ok(fin));
}

#[test]
fn any_bytes_decode_to_an_error_or_a_segment() {
    let mut segments = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::stream(seed, Purpose::Test, 11);
        let length = rng.below(40) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8 & rng.next_u64() as u8).collect();
        // Inside UDP, whose checksum protects it, any bytes may be decoded. Otherwise the checksum
        // is corrected, so that decoding continues.
        let decoded = [
            wire::decode_inside_udp(&bytes).ok(),
            repaired(&bytes).and_then(|bytes| wire::decode(&bytes).map(|(_, segment, _)| (segment, &[][..])).ok()),
        ];
        for (segment, _) in decoded.into_iter().flatten() {
            segments += 1;
            assert!(segment.block < 4096 && segment.ack_block < 4096 && segment.ack_places <= ALL);
            assert!(segment.place == 0 || segment.index().is_some());
        }
        let _ = wire::decode(&bytes);
    }
    assert!(segments > 100, "the bytes hardly ever were a segment: {segments}");
}

/// The bytes with a correct checksum.
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    bytes.get_mut(12..14)?.fill(0);
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes.get_mut(12..14)?.copy_from_slice(&(!sum as u16).to_be_bytes());
    Some(bytes)
}
