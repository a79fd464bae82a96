//! Tests of the code that decodes segments.

use crate::checksum::sum;
use crate::tcp::wire::{self, Addresses, Blocks, Check, Error, Header, LARGEST_SCALE, Numbers, Options, PROTOCOL};
use crate::{tpa, train};
use alloc::vec::Vec;

/// The addresses of every segment in these tests.
const ADDRESSES: Addresses = Addresses { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };

/// Decodes a segment of TCP, TPA or quiet trains, as it is and with a corrected checksum. A segment
/// that was decoded must have the same meaning after it is encoded and decoded again.
///
/// # Panics
///
/// Panics if the meaning differs.
pub fn segments(data: &[u8]) {
    let Some((what, bytes)) = data.split_first() else { return };
    match what % 4 {
        0 => tcp(bytes, *what & 0x80 != 0),
        1 => tpa(bytes),
        2 => train(bytes),
        _ => numbers(bytes),
    }
}

/// Copies `bytes` and writes the checksum of TCP at `at`.
fn with_checksum(bytes: &[u8], at: usize, start: u16) -> Vec<u8> {
    let mut right = bytes.to_vec();
    if let Some(place) = right.get_mut(at..at + 2) {
        place.fill(0);
        let checksum = !sum(&right, start);
        right[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    right
}

/// Sum of TCP's pseudo-header.
fn pseudo_sum(length: usize) -> u16 {
    let Addresses { source: [a, b, c, d], destination: [e, f, g, h] } = ADDRESSES;
    let [high, low] = (length as u16).to_be_bytes();
    sum(&[a, b, c, d, e, f, g, h, 0, PROTOCOL, high, low], 0)
}

fn tcp(bytes: &[u8], is_offloaded: bool) {
    let _ = wire::decode(bytes, ADDRESSES, Check::Full);
    let pseudo = pseudo_sum(bytes.len());
    let mut right = with_checksum(bytes, 16, pseudo);
    if is_offloaded && let Some(place) = right.get_mut(16..18) {
        place.copy_from_slice(&pseudo.to_be_bytes());
    }
    let check = if is_offloaded { Check::Offloaded } else { Check::Full };
    match wire::decode(&right, ADDRESSES, check) {
        Err(error) => assert_ne!(error, Error::Checksum),
        Ok((header, payload)) => {
            assert!(right.ends_with(payload));
            written(&header, payload);
        }
    }
}

/// Checks that a header which was decoded is the same after it is encoded and decoded again, as far
/// as there is room for its options at their usual places.
fn written(header: &Header, payload: &[u8]) {
    let again = |options: Options| {
        let header = Header { options, ..*header };
        let (bytes, length) = wire::encode(&header, ADDRESSES, payload);
        assert!(length == wire::BARE + options.length() || options.length() > wire::LONGEST - wire::BARE);
        let whole = [&bytes[..length], payload].concat();
        let read = wire::decode(&whole, ADDRESSES, Check::Full).map(|(header, _)| header);
        (header, read.expect("what was written can be read"))
    };
    let (experiments, usual) = (
        Options { one_way_us: header.options.one_way_us, train: header.options.train, ..Options::default() },
        Options { one_way_us: None, train: None, ..header.options },
    );
    let (meant, read) = again(experiments);
    assert_eq!(read, meant);
    let (meant, read) = again(usual);
    assert!(meant.options.blocks.as_slice().starts_with(read.options.blocks.as_slice()));
    let blocks = Blocks::default();
    let without = |header: Header| Header { options: Options { blocks, ..header.options }, ..header };
    assert_eq!(without(read), without(meant));
}

fn tpa(bytes: &[u8]) {
    let _ = tpa::wire::decode(bytes);
    let right = with_checksum(bytes, 12, 0);
    if let Ok((ports, segment, payload)) = tpa::wire::decode(&right) {
        let again = [&tpa::wire::encode(&segment, ports, payload)[..], payload].concat();
        assert_eq!(tpa::wire::decode(&again), Ok((ports, segment, payload)));
    }
}

fn train(bytes: &[u8]) {
    if let Some((segment, payload)) = train::datagram::decode(bytes) {
        assert_eq!([&train::datagram::encode(&segment)[..], payload].concat(), bytes);
    }
    if let Some(content) = train::wire::decode(bytes) {
        let (written, _) = train::wire::encode(&content);
        assert_eq!(train::wire::decode(&written[2..usize::from(written[1])]), Some(content));
    }
}

/// Checks the mapping of sequence numbers to offsets, at any position of the streams.
fn numbers(data: &[u8]) {
    let Some((head, bytes)) = data.split_first_chunk::<28>() else { return };
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let stands = |at: usize| u64::from(word(at)) << (word(at) % 31);
    let numbers = Numbers {
        own: word(0),
        peer: word(4),
        own_scale: head[8] % (LARGEST_SCALE + 1),
        peer_scale: head[9] % (LARGEST_SCALE + 1),
        timestamps: head[10] & 1 == 0,
    };
    let (expected, acknowledged) = (stands(12), stands(16));
    let right = with_checksum(bytes, 16, pseudo_sum(bytes.len()));
    let Ok((header, payload)) = wire::decode(&right, ADDRESSES, Check::Full) else { return };
    if let Some(understood) = numbers.segment(&header, payload.len() as u16, expected, acknowledged) {
        let ack = understood.segment.ack;
        assert!(understood.blocks().iter().all(|(start, end)| ack < *start && start < end));
        let blocks = understood.blocks().iter().copied();
        let again = numbers.header(&understood.segment, (header.source, header.destination), blocks);
        assert_eq!((again.source, again.destination, again.flags), (header.source, header.destination, header.flags));
    }
    let _ = numbers.train_segment(&header, payload.len() as u16, 1 + word(20) % 9000, (expected, acknowledged));
    let _ = (wire::agreed(1 + word(24) as u16 % 9000, &header.options), wire::answer(1460, word(24), &header.options));
}
