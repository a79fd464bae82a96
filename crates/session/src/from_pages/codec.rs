//! A second reader and writer of the datagrams of `docs/wire.md`, `docs/wire-opening.md`,
//! `docs/wire-encryption.md` and `docs/wire-bbr.md`.
//!
//! The codec is written from these pages alone and shares no code with the session layer, so that
//! it reveals a difference between a page and the session's code.

use crate::cipher::Cipher;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// Bytes of an opening datagram before Noise's message: "All kinds except a stray consist of 62 bytes
/// and Noise's message".
pub(super) const OPENING: usize = 62;
/// "A stray (20 bytes: version, kind and, at 12 to 19, the tag)".
pub(super) const STRAY: usize = 20;
/// Bytes before the sealed content: tag and number.
pub(super) const HEAD: usize = 16;
/// "last 16: authentication of the whole datagram".
pub(super) const AUTHENTICATION: usize = 16;
/// Bytes of a path challenge or of its response before sealing: kind and number.
pub(super) const PATH: usize = 9;
/// Bytes of the header of a TPA segment.
pub(super) const TPA_HEADER: usize = 12;
/// Bytes of the header of a segment of quiet trains.
pub(super) const TRAIN_HEADER: usize = 38;
/// Bytes of the header of a BBR segment that is no report.
pub(super) const BBR_DATA: usize = 13;
/// Bytes of a BBR report without its ranges.
pub(super) const BBR_REPORT: usize = 22;

/// "the highest bit of its number": marks a datagram with a piece of a segment, or a probe.
const PIECE: u64 = 1 << 63;
/// Bytes in a piece before the bytes of the segment.
pub(super) const PIECE_HEADER: usize = 4;

/// True if a sealed datagram contains a piece, or is a probe.
pub(super) fn is_piece(datagram: &[u8]) -> bool {
    datagram.get(8..HEAD).is_some_and(|bytes| number(bytes) & PIECE != 0)
}

/// The path challenge in the content of a probe. `None` for the content of a piece.
pub(super) fn challenge(content: &[u8]) -> Option<&[u8]> {
    let challenge = content.get(PIECE_HEADER..PIECE_HEADER + PATH)?;
    (content[3] == 0).then_some(challenge)
}

/// The number that `bytes` represent in network byte order.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Writes `value` over `bytes` in network byte order.
pub(super) fn write(bytes: &mut [u8], value: u64) {
    let all = value.to_be_bytes();
    let length = bytes.len();
    bytes.copy_from_slice(&all[all.len() - length..]);
}

/// The tag with which a datagram begins. `None` if the datagram is too short.
pub(super) fn tag(datagram: &[u8]) -> Option<u64> {
    datagram.get(..8).map(number)
}

/// Kind of a datagram with tag zero (byte 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Request,
    Challenge,
    Acceptance,
    Stray,
    Refusal,
}

/// A datagram with tag zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    pub(super) kind: Kind,
    /// Byte 10: protection, cipher and transport.
    pub(super) protection: u8,
    pub(super) opener: u64,
    pub(super) acceptor: u64,
    /// Payload of a full segment, bytes.
    pub(super) segment: u16,
    pub(super) cookie: [u8; 16],
    pub(super) header: TpaSegment,
    pub(super) noise: Vec<u8>,
    pub(super) padding: Vec<u8>,
}

impl Opening {
    /// Reads a datagram with tag zero. The error names the sentence of the page that the datagram
    /// breaks.
    pub(super) fn read(bytes: &[u8]) -> Result<Opening, &'static str> {
        if tag(bytes) != Some(0) || bytes.len() < STRAY {
            return Err("a datagram with tag zero has 20 bytes at least");
        }
        if bytes[8] != 3 {
            return Err("byte 8 is the version, 3");
        }
        let kind = match bytes[9] {
            0 => Kind::Request,
            1 => Kind::Challenge,
            2 => Kind::Acceptance,
            3 => Kind::Stray,
            4 => Kind::Refusal,
            _ => return Err("byte 9 is a kind from 0 to 4"),
        };
        let opener = number(&bytes[12..20]);
        if kind == Kind::Stray {
            let (header, noise, padding) = (TpaSegment::default(), Vec::new(), bytes[STRAY..].to_vec());
            let (protection, acceptor, segment, cookie) = (0, 0, 0, [0; 16]);
            return Ok(Opening { kind, protection, opener, acceptor, segment, cookie, header, noise, padding });
        }
        let noise_length =
            bytes.get(60..OPENING).map(number).ok_or("all kinds except a stray consist of 62 bytes")? as usize;
        let noise =
            bytes.get(OPENING..OPENING + noise_length).ok_or("bytes 60 and 61 are the length of what follows")?;
        if !(1..=12).contains(&bytes[28]) || !(1..=12).contains(&bytes[29]) {
            return Err("cwnd_max and segments in a block are 1 to 12 each");
        }
        if bytes[11] != 2 && bytes[11] != bytes[28] {
            return Err("segments that share an ACK are 2 or cwnd_max");
        }
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&bytes[32..48]);
        Ok(Opening {
            kind,
            protection: bytes[10],
            opener,
            acceptor: number(&bytes[20..28]),
            segment: number(&bytes[30..32]) as u16,
            cookie,
            header: TpaSegment::read(&bytes[48..60]).ok_or("bytes 48 to 59 are a header of TPA")?,
            noise: noise.to_vec(),
            padding: bytes[OPENING + noise_length..].to_vec(),
        })
    }

    /// True if byte 10 names a handshake of Noise.
    pub(super) fn is_encrypted(&self) -> bool {
        self.protection & 0x0f != 0
    }
}

/// A TPA header of 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TpaSegment {
    pub(super) block: u16,
    pub(super) bitmap: u16,
    pub(super) transmission: u8,
    pub(super) ack_block: u16,
    pub(super) ack_bitmap: u16,
    pub(super) ack_transmission: u8,
    /// ACK, RST, SYN and FIN from the highest bit to the lowest.
    pub(super) flags: u8,
    pub(super) congested: bool,
    pub(super) window: u8,
    pub(super) is_last: bool,
    /// True if all bits that the page's figure shows as zero are zero.
    pub(super) has_zeros: bool,
}

impl TpaSegment {
    pub(super) const ACK: u8 = 8;
    pub(super) const SYN: u8 = 2;
    pub(super) const FIN: u8 = 1;

    pub(super) fn read(bytes: &[u8]) -> Option<TpaSegment> {
        let word = |at: usize| bytes.get(at..at + 4).map(number);
        let (data, ack, rest) = (word(0)?, word(4)?, word(8)?);
        Some(TpaSegment {
            block: (data >> 20) as u16,
            bitmap: (data >> 8 & 0xfff) as u16,
            transmission: data as u8,
            ack_block: (ack >> 20) as u16,
            ack_bitmap: (ack >> 8 & 0xfff) as u16,
            ack_transmission: ack as u8,
            flags: (rest >> 12 & 0xf) as u8,
            congested: rest >> 11 & 1 == 1,
            window: (rest >> 3) as u8,
            is_last: rest >> 2 & 1 == 1,
            has_zeros: rest >> 16 == 0 && rest & 3 == 0,
        })
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Keys of one direction: "After every 2^20 datagrams the key of a direction is replaced by Noise's
/// REKEY".
#[derive(Debug)]
pub(super) struct Keys {
    cipher: Cipher,
    /// The key of each span of numbers, for the spans that were needed so far.
    spans: Vec<[u8; 32]>,
    /// A key serves two to the power of this many datagrams.
    life: u32,
}

impl Keys {
    /// Keys of a direction that begins with this key.
    pub(super) fn new((cipher, first): (Cipher, [u8; 32]), life: u32) -> Keys {
        Keys { cipher, spans: vec![first], life }
    }

    /// The key with which the direction begins.
    pub(super) fn first(&self) -> [u8; 32] {
        self.spans[0]
    }

    fn key(cipher: Cipher, key: &[u8; 32]) -> Option<LessSafeKey> {
        let algorithm = match cipher {
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Cipher::Aes256Gcm => &AES_256_GCM,
        };
        UnboundKey::new(algorithm, key).ok().map(LessSafeKey::new)
    }

    /// Noise's nonce (revision 34, sections 12.3 and 12.4).
    fn nonce(cipher: Cipher, number: u64) -> Nonce {
        let mut nonce = [0; 12];
        match cipher {
            Cipher::ChaCha20Poly1305 => nonce[4..].copy_from_slice(&number.to_le_bytes()),
            Cipher::Aes256Gcm => nonce[4..].copy_from_slice(&number.to_be_bytes()),
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// The key for the number of a datagram, made by Noise's REKEY (section 4.2) from the earlier
    /// keys. `None` for numbers far beyond those that a run sends.
    fn of(&mut self, number: u64) -> Option<LessSafeKey> {
        let span = usize::try_from(number >> self.life).ok().filter(|span| *span < 4096)?;
        while self.spans.len() <= span {
            let mut zeros = [0; 32];
            let last = Keys::key(self.cipher, self.spans.last()?)?;
            let nonce = Keys::nonce(self.cipher, u64::MAX);
            // REKEY takes the first 32 bytes of what Noise's ENCRYPT returns. These are the
            // encrypted text without the authentication behind it.
            let _ = last.seal_in_place_separate_tag(nonce, Aad::empty(), &mut zeros).ok()?;
            self.spans.push(zeros);
        }
        Keys::key(self.cipher, &self.spans[span])
    }

    /// Number and content of a sealed datagram. `None` if this key did not seal it.
    pub(super) fn open(&mut self, datagram: &[u8]) -> Option<(u64, Vec<u8>)> {
        if datagram.len() < HEAD + AUTHENTICATION {
            return None;
        }
        let number = number(&datagram[8..HEAD]) & !PIECE;
        let mut content = datagram[HEAD..].to_vec();
        let (key, nonce) = (self.of(number)?, Keys::nonce(self.cipher, number));
        let length = key.open_in_place(nonce, Aad::from(&datagram[..HEAD]), &mut content).ok()?.len();
        content.truncate(length);
        Some((number, content))
    }

    /// A sealed datagram with this content.
    pub(super) fn seal(&mut self, tag: u64, number: u64, content: &[u8]) -> Option<Vec<u8>> {
        let (key, nonce) = (self.of(number)?, Keys::nonce(self.cipher, number));
        let mut head = [tag.to_be_bytes(), number.to_be_bytes()].concat();
        let mut sealed = content.to_vec();
        key.seal_in_place_append_tag(nonce, Aad::from(head.clone()), &mut sealed).ok()?;
        head.append(&mut sealed);
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_what_it_sealed_and_nothing_altered() {
        for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm] {
            let mut keys = Keys::new((cipher, [7; 32]), 2);
            for number in [0, 3, 4, 9] {
                let sealed = keys.seal(5, number, b"content").unwrap();
                assert_eq!(sealed.len(), 7 + 32, "wire.md: encryption adds 32 bytes");
                assert_eq!(keys.open(&sealed), Some((number, b"content".to_vec())));
                for at in 0..sealed.len() {
                    let mut altered = sealed.clone();
                    altered[at] ^= 1;
                    // The first eight bytes choose the key; they are authenticated as the others are.
                    assert_eq!(keys.open(&altered), None, "byte {at}");
                }
            }
        }
    }

    #[test]
    fn the_figure_of_a_segment_is_read_as_it_is_drawn() {
        let bytes = [0xab, 0xcd, 0xef, 0x12, 0x34, 0x56, 0x78, 0x9a, 0x00, 0x00, 0x9a, 0xac];
        let segment = TpaSegment::read(&bytes).unwrap();
        let expected = TpaSegment {
            block: 0xabc,
            bitmap: 0xdef,
            transmission: 0x12,
            ack_block: 0x345,
            ack_bitmap: 0x678,
            ack_transmission: 0x9a,
            flags: TpaSegment::ACK | TpaSegment::FIN,
            congested: true,
            window: 0x55,
            is_last: true,
            has_zeros: true,
        };
        assert_eq!(segment, expected);
    }
}
