//! Tests of TCP's byte format: worked examples, round trips, and invalid bytes.

use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_transport::tcp::wire::{
    self, Addresses, Blocks, Check, Error, Header, Numbers, Options, agreed, answer, decode, encode, offer,
};
use meshpace_transport::tcp::{Extension, Flags, Segment};

const BETWEEN: Addresses = Addresses { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };

fn bytes(header: &Header, payload: &[u8]) -> Vec<u8> {
    let (head, length) = encode(header, BETWEEN, payload);
    [&head[..length], payload].concat()
}

/// RFC 1071 sum of the 16-bit words of pseudo-header and segment, implemented from RFC 9293,
/// section 3.1.
fn total(segment: &[u8]) -> u16 {
    let length = (segment.len() as u16).to_be_bytes();
    let pseudo = [&BETWEEN.source[..], &BETWEEN.destination, &[0, 6], &length].concat();
    let all = [&pseudo, segment, &[0][..segment.len() % 2]].concat();
    let mut sum: u32 = all.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_syn_byte_by_byte() {
    // RFC 9293, section 3.1, with options as in RFC 9293, 3.2, RFC 7323, 2.2 and 3.2, and RFC 2018,
    // 2.
    let options = Options { timestamps: Some((0x0102_0304, 0)), ..offer(1460, 93_440) };
    let header = Header {
        source: 0x1234,
        destination: 80,
        seq: 0xdead_beef,
        ack: 0,
        flags: Flags::SYN,
        window: 0xffff,
        options,
    };
    let mut out = bytes(&header, &[]);
    assert_eq!(total(&out), 0xffff);
    out[16..18].fill(0);
    #[rustfmt::skip]
    let expected = [
        0x12, 0x34, 0, 80, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0,
        11 << 4, 0x02, 0xff, 0xff, 0, 0, 0, 0,
        2, 4, 0x05, 0xb4, 1, 3, 3, 1, 1, 1, 4, 2, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0,
    ];
    assert_eq!(out, expected);
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    for _ in 0..2000 {
        let mut word = || rng.next_u64() as u32;
        let mut blocks = Blocks::default();
        for _ in 0..word() % 4 {
            blocks.push((word(), word()));
        }
        let header = Header {
            source: word() as u16,
            destination: word() as u16,
            seq: word(),
            ack: word(),
            flags: Flags(word() as u8 & 0xd7),
            window: word() as u16,
            options: Options { timestamps: (word() % 2 == 0).then(|| (word(), word())), blocks, ..Options::default() },
        };
        let payload: Vec<u8> = (0..word() % 1500).map(|_| word() as u8).collect();
        let mut out = bytes(&header, &payload);
        assert_eq!(total(&out), 0xffff);
        assert_eq!(decode(&out, BETWEEN, Check::Full), Ok((header, &payload[..])));
        // Any flipped bit is detected.
        let bit = word() as usize % (out.len() * 8);
        out[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&out, BETWEEN, Check::Full).is_err(), "bit {bit}");
    }
}

#[test]
fn every_error_has_its_bytes() {
    let good = bytes(&Header::default(), &[7; 10]);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        // The checksum is corrected, so that it does not detect the change.
        bytes.get_mut(16..18).unwrap_or_default().fill(0);
        let sum = !total(&bytes);
        bytes.get_mut(16..18).unwrap_or(&mut [0; 2]).copy_from_slice(&sum.to_be_bytes());
        decode(&bytes, BETWEEN, Check::Full).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(&|b| b.truncate(19)), Error::Short);
    assert_eq!(with(&|b| b[12] = 15 << 4), Error::Short);
    assert_eq!(with(&|b| b[12] = 4 << 4), Error::Offset);
    assert_eq!(with(&|b| b.resize(70_000, 0)), Error::Long);
    // An option that ends behind the header, one without its length, one with a length below its
    // own size, and known options of a wrong length.
    let options: [&[u8]; 7] =
        [&[8, 10, 1, 1], &[1, 1, 1, 9], &[9, 1, 0, 0], &[2, 3, 5, 0], &[5, 4, 1, 1], &[4, 3, 0, 0], &[8, 2, 0, 0]];
    for option in options {
        let error = with(&|b| {
            b[12] = 6 << 4;
            b.splice(20..20, option.iter().copied());
        });
        assert_eq!(error, Error::Option, "{option:?}");
    }
    let mut wrong = good.clone();
    wrong[25] ^= 1;
    assert_eq!(decode(&wrong, BETWEEN, Check::Full), Err(Error::Checksum));
}

#[test]
fn a_checksum_left_to_the_network_card_passes_only_where_that_happens() {
    let mut out = bytes(&Header::default(), &[7; 11]);
    // Linux leaves the sum of the pseudo-header here, not complemented.
    let pseudo = [&BETWEEN.source[..], &BETWEEN.destination, &[0, 6], &31u16.to_be_bytes()].concat();
    let sum: u32 = pseudo.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    out[16..18].copy_from_slice(&(sum as u16 + (sum >> 16) as u16).to_be_bytes());
    assert_eq!(decode(&out, BETWEEN, Check::Full), Err(Error::Checksum));
    assert!(decode(&out, BETWEEN, Check::Offloaded).is_ok());
    out[17] ^= 1;
    assert_eq!(decode(&out, BETWEEN, Check::Offloaded), Err(Error::Checksum));
}

#[test]
fn any_bytes_decode_to_an_error_or_a_segment() {
    let mut rng = Rng::stream(2, Purpose::Test, 0);
    for _ in 0..100_000 {
        let length = rng.next_u64() as usize % 80;
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        if length > 20 {
            bytes[12] = (5 + rng.next_u64() as u8 % 11) << 4;
            bytes[16..18].fill(0);
            let sum = !total(&bytes);
            bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        }
        if let Ok((header, payload)) = decode(&bytes, BETWEEN, Check::Full) {
            let word = || rng.next_u64();
            let [own, peer, near, far] = [(); 4].map({
                let mut word = word;
                move |()| word()
            });
            let numbers =
                Numbers { own: own as u32, peer: peer as u32, own_scale: 3, peer_scale: 14, timestamps: false };
            let _ = numbers.segment(&header, payload.len() as u16, near >> 20, far >> 20);
        }
    }
}

const NUMBERS: Numbers = Numbers { own: 0xffff_ff00, peer: 0x7fff_fff0, own_scale: 1, peer_scale: 7, timestamps: true };

#[test]
fn offsets_survive_sequence_numbers_that_wrap() {
    // Offset 0 has the number after the initial one. Offsets up to 2^31 on either side of the
    // expected one are distinguished.
    for offset in [0, 1, 0xff, 0x100, 0x7fff_ffff, 0x1_0000_0000, 0x5_4321_0000] {
        let data = Segment {
            seq: offset,
            ack: offset + 5,
            window: 1 << 16,
            ts_val: 1,
            flags: Flags::ACK,
            payload: 9,
            ..Segment::default()
        };
        let header = NUMBERS.header(&data, (1, 2), std::iter::empty());
        assert_eq!(header.seq, 0xffff_ff01u32.wrapping_add(offset as u32));
        assert_eq!(header.ack, 0x7fff_fff1u32.wrapping_add(5).wrapping_add(offset as u32));
        assert_eq!(header.window, 0x8000);
        let mirrored = Numbers { own: NUMBERS.peer, peer: NUMBERS.own, own_scale: 7, peer_scale: 1, timestamps: true };
        for away in [0, 1000, 0x7fff_0000u64] {
            let near = offset.saturating_sub(away);
            let understood = mirrored.segment(&header, 9, near, near).unwrap();
            assert_eq!(understood.segment, data, "near {near}");
        }
    }
    // The number before the start of the stream counts as beyond every window.
    let keep_alive = Header {
        seq: NUMBERS.peer,
        ack: NUMBERS.own.wrapping_add(1),
        flags: Flags::ACK,
        options: Options { timestamps: Some((0, 0)), ..Options::default() },
        ..Header::default()
    };
    let understood = NUMBERS.segment(&keep_alive, 0, 0, 0).unwrap();
    assert_eq!((understood.segment.seq, understood.segment.ack), (u64::MAX, 0));
}

#[test]
fn windows_are_scaled_except_those_of_syns() {
    let header = |flags| Header {
        flags,
        window: 100,
        options: Options { timestamps: Some((0, 0)), ..Options::default() },
        ..Header::default()
    };
    let window = |flags| NUMBERS.segment(&header(flags), 0, 0, 0).unwrap().segment.window;
    assert_eq!((window(Flags::ACK), window(Flags::SYN)), (100 << 7, 100));
    let segment = Segment { window: 93_440, flags: Flags::SYN, ..Segment::default() };
    assert_eq!(NUMBERS.header(&segment, (1, 2), std::iter::empty()).window, 0xffff);
    // The field has 16 bits, up to 65535. The largest shift is 14 (RFC 7323, section 2.3).
    assert_eq!([65_535, 65_536, 131_072, u32::MAX].map(wire::scale_for), [0, 1, 2, 14]);
}

#[test]
fn blocks_are_offsets_of_the_other_stream() {
    // A receiver whose peer's stream has reached 2^32 reports two blocks. Its peer decodes them.
    let base = 1u64 << 32;
    let blocks = [(base + 1460, base + 2920), (base + 5840, base + 7300)];
    let mut ack = Segment { ack: base, flags: Flags::ACK, ..Segment::default() };
    ack.report(blocks.into_iter());
    let header = NUMBERS.header(&ack, (1, 2), blocks.into_iter());
    assert_eq!(header.options.blocks.as_slice().len(), 2);
    let mirrored = Numbers { own: NUMBERS.peer, peer: NUMBERS.own, ..NUMBERS };
    let understood = mirrored.segment(&header, 0, 0, base - 10_000).unwrap();
    assert_eq!(understood.blocks(), &blocks);
    // With time stamps the forty bytes have room for three blocks (RFC 2018, section 3); four do
    // not fit.
    let header = NUMBERS.header(&ack, (1, 2), [blocks[0]; 4].into_iter());
    let out = bytes(&header, &[]);
    assert_eq!(out.len(), 20 + 12 + 4 + 3 * 8);
    let header = Numbers { timestamps: false, ..NUMBERS }.header(&ack, (1, 2), [blocks[0]; 5].into_iter());
    assert_eq!(bytes(&header, &[]).len(), 20 + 4 + 4 * 8);
    // Blocks that are already acknowledged (RFC 2883) or whose end precedes their start are not
    // blocks beyond a gap.
    let stale = [(base - 3000, base - 1500), (base + 2920, base + 1460)];
    let header = NUMBERS.header(&ack, (1, 2), stale.into_iter());
    let understood = mirrored.segment(&header, 0, 0, base - 10_000).unwrap();
    assert_eq!((understood.segment.extension, understood.blocks().len()), (Extension::None, 0));
}

#[test]
fn a_segment_without_the_time_stamps_agreed_on_is_none_a_reset_is() {
    let header = Header { flags: Flags::ACK, ..Header::default() };
    assert!(NUMBERS.segment(&header, 0, 0, 0).is_none());
    let reset = Header { flags: Flags::RST, ..Header::default() };
    assert!(NUMBERS.segment(&reset, 0, 0, 0).is_some());
}

#[test]
fn syns_agree_on_what_both_say() {
    let bare = Options::default();
    // RFC 9293, section 3.7.1: 536 if the option is absent.
    assert_eq!(agreed(1460, &bare).segment, 536);
    assert!(!agreed(1460, &bare).timestamps && !agreed(1460, &bare).sack);
    let linux =
        Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, timestamps: Some((1, 0)), ..bare };
    // RFC 6691: the length of the options is subtracted. Linux has 1448 here.
    assert_eq!(agreed(1460, &linux).segment, 1448);
    assert_eq!(agreed(500, &linux).segment, 488);
    assert_eq!(agreed(0, &Options { mss: Some(0), ..linux }).segment, 1);
    let reply = answer(1460, 93_440, &bare);
    assert_eq!((reply.mss, reply.window_scale, reply.sack_permitted), (Some(1460), None, false));
    let reply = answer(1460, 93_440, &linux);
    assert_eq!((reply.window_scale, reply.sack_permitted), (Some(1), true));
}

#[test]
fn a_one_way_delay_travels_in_an_experimental_option() {
    // RFC 6994: kind 253, length 8, a 16-bit identifier.
    let ack =
        Segment { flags: Flags::ACK, extension: Extension::OneWayDelay, words: [123_456, 0], ..Segment::default() };
    let header = NUMBERS.header(&ack, (1, 2), std::iter::empty());
    let out = bytes(&header, &[]);
    assert_eq!(out[32..36], [253, 8, 0x4d, 0x50]);
    let (decoded, _) = decode(&out, BETWEEN, Check::Full).unwrap();
    let mirrored = Numbers { own: NUMBERS.peer, peer: NUMBERS.own, ..NUMBERS };
    let understood = mirrored.segment(&decoded, 0, 0, 0).unwrap();
    assert_eq!(understood.segment.one_way_delay(), Some(0.123_456));
}

#[test]
fn options_beside_a_full_segment_leave_out_what_has_no_room() {
    let mut all = Options { timestamps: Some((1, 2)), one_way_us: Some(3), ..Options::default() };
    for start in [100, 200] {
        assert!(all.blocks.push((start, start + 50)));
    }
    // RFC 7323, 3.2: 12 bytes with padding. RFC 6994: 8. RFC 2018, section 3: 8 per block, and 4
    // with padding.
    assert_eq!(all.length(), 12 + 8 + 20);
    let kept = |room| {
        let options = all.within(room);
        (options.blocks.as_slice().len(), options.one_way_us.is_some(), options.timestamps.is_some())
    };
    assert_eq!(
        [kept(40), kept(39), kept(32), kept(31)],
        [(2, true, true), (1, true, true), (1, true, true), (0, true, true)]
    );
    // The negotiated option is kept, because a segment without it is not valid.
    assert_eq!([kept(20), kept(19), kept(0)], [(0, true, true), (0, false, true), (0, false, true)]);
}
