//! A hostile peer that has the keys of its connections. The peer changes segments that its protocol
//! sends, adds others, sends with forged source addresses, skips numbers, and acknowledges segments
//! that it has dropped.

use super::codec::{BBR_DATA, BBR_REPORT, Keys, PATH, TPA_HEADER, TRAIN_HEADER, number, write};
use super::plan::Hostile;
use crate::handshake::InnerTransport;
use meshpace_core::Rng;
use std::collections::BTreeMap;

/// Datagram that a hostile peer sends.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    /// True if the source address is somebody else's.
    pub(super) is_spoofed: bool,
}

/// True with a probability of `per_mille` per mille.
pub(super) fn happens(rng: &mut Rng, per_mille: u64) -> bool {
    rng.below(1000) < per_mille
}

/// State of a hostile peer, by the tag of the direction to its victim.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Number of the next datagram.
    next: BTreeMap<u64, u64>,
    /// Header that the peer's protocol sent last.
    last: BTreeMap<u64, Vec<u8>>,
}

impl Peer {
    /// Returns the datagrams that leave in place of a datagram with this content.
    pub(super) fn sends(
        &mut self,
        hostile: Hostile,
        carried: InnerTransport,
        (tag, content): (u64, Vec<u8>),
        mut keys: Option<&mut Keys>,
        rng: &mut Rng,
    ) -> Vec<Sent> {
        if content.len() != PATH {
            self.last.insert(tag, content[..content.len().min(TRAIN_HEADER)].to_vec());
        }
        let mut contents = vec![content.clone()];
        if happens(rng, hostile.changed) {
            contents[0] = changed(carried, content.clone(), rng);
        }
        if happens(rng, hostile.added) {
            contents.push(changed(carried, content.clone(), rng));
        }
        if happens(rng, hostile.added) {
            // A path challenge, or a response that guesses the number.
            let kind = 1 + rng.below(2) as u8;
            contents.push([&[kind][..], &rng.next_u64().to_be_bytes()].concat());
        }
        let mut sent = Vec::new();
        for content in contents {
            let is_spoofed = happens(rng, hostile.spoofed);
            let jump = if happens(rng, hostile.jumps) { rng.below(3000) } else { 0 };
            sent.extend(self.seal(tag, &content, keys.as_deref_mut(), jump).map(|bytes| Sent { bytes, is_spoofed }));
        }
        sent
    }

    fn seal(&mut self, tag: u64, content: &[u8], keys: Option<&mut Keys>, jump: u64) -> Option<Vec<u8>> {
        let Some(keys) = keys else { return Some([&tag.to_be_bytes()[..], content].concat()) };
        let next = self.next.entry(tag).or_default();
        *next += jump + 1;
        keys.seal(tag, *next - 1, content)
    }

    /// Returns a claim that a segment with this content has arrived, although it is dropped.
    /// Returns `None` for content without data. Otherwise two hostile ends would go on for ever
    /// claiming to have received each other's claims, and more often each time if somebody repeats
    /// datagrams.
    pub(super) fn claims(
        &mut self,
        carried: InnerTransport,
        (tag, arrived): (u64, &[u8]),
        keys: Option<&mut Keys>,
        rng: &mut Rng,
    ) -> Option<Sent> {
        let last = self.last.get(&tag)?.clone();
        let claim = match carried {
            InnerTransport::Tpa => claim_of_tpa(last, arrived, rng)?,
            InnerTransport::Trains => claim_of_trains(last, arrived)?,
            InnerTransport::Bbr => claim_of_bbr(arrived)?,
        };
        self.seal(tag, &claim, keys, 0).map(|bytes| Sent { bytes, is_spoofed: false })
    }
}

/// "AckBlockSeqNumber, BitmapAck, AckTxSeqNumber": acknowledges the whole block, as the
/// transmission that was received or as another.
fn claim_of_tpa(mut last: Vec<u8>, arrived: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let data = number(arrived.get(..4).filter(|_| arrived.len() > TPA_HEADER)?);
    let transmission = if rng.below(4) == 0 { rng.below(256) } else { data & 0xff };
    last.truncate(TPA_HEADER);
    // The claim has no data of its own, and acknowledges every place of the block.
    let block = number(last.get(..4)?) & 0xfff0_0000;
    write(last.get_mut(..4)?, block);
    write(last.get_mut(4..8)?, (data & 0xfff0_0000) | 0x000f_ff00 | transmission);
    // The ACK flag, and a window of 255.
    write(last.get_mut(8..12)?, 8 << 12 | 255 << 3);
    Some(last)
}

/// "12 to 19: offset expected next; 24 to 27: that clock in the newest segment that arrived".
fn claim_of_trains(mut last: Vec<u8>, arrived: &[u8]) -> Option<Vec<u8>> {
    let length = arrived.len().checked_sub(TRAIN_HEADER).filter(|length| *length > 0)?;
    last.resize(TRAIN_HEADER, 0);
    last[0] = 0x10;
    write(&mut last[2..4], 255);
    write(&mut last[12..20], number(&arrived[4..12]).wrapping_add(length as u64));
    last[24..28].copy_from_slice(&arrived[20..24]);
    Some(last)
}

/// A report of one range that ends at the received number and reaches down to the first number.
fn claim_of_bbr(arrived: &[u8]) -> Option<Vec<u8>> {
    if arrived.len() < BBR_DATA || arrived[0] & 16 != 0 {
        return None;
    }
    let (highest, offset) = (number(&arrived[1..7]), number(&arrived[7..13]));
    let end = offset + (arrived.len() - BBR_DATA) as u64 + u64::from(arrived[0] & 1);
    let mut claim = vec![0; BBR_REPORT + 4];
    claim[0] = 16;
    write(&mut claim[1..7], highest);
    write(&mut claim[7..13], end);
    write(&mut claim[13..19], end + (1 << 22));
    write(&mut claim[BBR_REPORT + 2..], (highest + 1).min(0xffff));
    Some(claim)
}

/// The content with a changed header or a changed length.
fn changed(carried: InnerTransport, mut content: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let fields: &[(usize, usize)] = match carried {
        InnerTransport::Tpa => &[(0, 2), (1, 2), (3, 1), (4, 2), (5, 2), (7, 1), (8, 2), (10, 1), (11, 1)],
        InnerTransport::Trains => {
            &[(0, 1), (1, 1), (2, 2), (4, 8), (12, 8), (20, 4), (24, 4), (28, 4), (32, 2), (34, 2), (36, 2)]
        }
        InnerTransport::Bbr => &[(0, 1), (1, 6), (7, 6), (13, 6), (19, 3), (22, 2), (24, 2), (26, 2), (28, 2)],
    };
    for _ in 0..=rng.below(3) {
        let (at, length) = fields[rng.below(fields.len() as u64) as usize];
        let Some(field) = content.get_mut(at..at + length) else { continue };
        let before = number(field);
        write(
            field,
            match rng.below(6) {
                0 => 0,
                1 => u64::MAX,
                2 => rng.next_u64(),
                3 => before.wrapping_add(1 + rng.below(3)),
                4 => before.wrapping_sub(1 + rng.below(3)),
                _ => before.wrapping_add(rng.below(1 << 20)),
            },
        );
    }
    match rng.below(8) {
        0 => content.truncate(rng.below(content.len() as u64 + 1) as usize),
        1 => content.extend((0..rng.below(1400)).map(|at| at as u8)),
        _ => {}
    }
    content
}
