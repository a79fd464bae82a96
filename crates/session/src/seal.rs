//! Encryption of datagrams: sealing and opening in place.
//!
//! ```text
//! bytes 0-7    tag of the receiver
//! bytes 8-15   number of the datagram in its direction, from 0;
//!              the highest bit marks a piece of a segment
//! then         header of the transport and the payload, encrypted
//! last 16      authentication tag over all of it
//! ```
//!
//! The cipher is ChaCha20-Poly1305 (RFC 8439) or AES-256-GCM with Noise's transport keys. The nonce
//! is the number (Noise, sections 12.3 and 12.4). The tag and the number are authenticated as
//! associated data. After every 2^20 datagrams of a direction its key is replaced by Noise's REKEY
//! (section 4.2), so that a disclosed key does not decrypt anything older.

use super::cipher::Cipher;
use super::handshake::Tag;
use meshpace_transport::tpa::replay::Replay;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// Length of the header before the encrypted part, bytes.
pub(crate) const HEAD: usize = 16;

/// Length of the authentication tag, bytes.
pub(crate) const AUTHENTICATION: usize = 16;

/// Default lifetime of a key: two to the power of this many datagrams.
pub const KEY_LIFE: u32 = 20;

/// Keys of both directions of a connection.
#[derive(Clone, Copy)]
pub struct Keys {
    pub cipher: Cipher,
    pub send: [u8; 32],
    pub receive: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// Key of one direction.
pub(crate) struct Key {
    key: LessSafeKey,
    cipher: Cipher,
}

impl Key {
    pub(crate) fn new(cipher: Cipher, secret: [u8; 32]) -> Key {
        let algorithm = match cipher {
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Cipher::Aes256Gcm => &AES_256_GCM,
        };
        // The only possible error is a wrong length.
        let key = UnboundKey::new(algorithm, &secret).expect("32 bytes");
        Key { key: LessSafeKey::new(key), cipher }
    }

    /// Noise's nonce: 32 zero bits followed by the number, in little-endian order for ChaChaPoly
    /// and in big-endian order for AESGCM.
    fn nonce(&self, number: u64) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&match self.cipher {
            Cipher::ChaCha20Poly1305 => number.to_le_bytes(),
            Cipher::Aes256Gcm => number.to_be_bytes(),
        });
        Nonce::assume_unique_for_key(bytes)
    }

    /// Encrypts `text` in place as message `number`, and authenticates `head` with it. Returns the
    /// authentication tag.
    pub(crate) fn seal(&self, number: u64, head: &[u8], text: &mut [u8]) -> [u8; AUTHENTICATION] {
        let sealed = self.key.seal_in_place_separate_tag(self.nonce(number), Aad::from(head), text);
        let mut authentication = [0; AUTHENTICATION];
        authentication.copy_from_slice(sealed.expect("a datagram is not too long").as_ref());
        authentication
    }

    /// Decrypts `text`, which ends with its authentication tag, in place. Returns the length of the
    /// decrypted text, or `None` if it is not authentic.
    pub(crate) fn open(&self, number: u64, head: &[u8], text: &mut [u8]) -> Option<usize> {
        self.key.open_in_place(self.nonce(number), Aad::from(head), text).ok().map(|text| text.len())
    }

    /// Noise's REKEY: the next key is the first 32 bytes of zeros encrypted with the highest nonce.
    pub(crate) fn next(&self) -> Key {
        let mut secret = [0; 32];
        self.seal(u64::MAX, &[], &mut secret);
        Key::new(self.cipher, secret)
    }
}

/// Highest bit of the number in a datagram, which marks a piece of a segment. No direction has so
/// many datagrams that the number itself needs this bit.
const PIECE: u64 = 1 << 63;

/// Returns the number field of a sealed datagram, the piece bit included.
fn written_number(datagram: &[u8]) -> Option<u64> {
    datagram.get(HEAD - 8..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Returns the number of a sealed datagram.
pub fn number_of(datagram: &[u8]) -> Option<u64> {
    written_number(datagram).map(|number| number & !PIECE)
}

/// True if a sealed datagram is marked as a piece of a segment.
pub fn is_piece(datagram: &[u8]) -> bool {
    written_number(datagram).is_some_and(|number| number & PIECE != 0)
}

/// Keys of both directions of a connection, which seal and open its datagrams.
pub(crate) struct Seal {
    sending: Key,
    /// Number of the next datagram to be sealed.
    number: u64,
    /// Keys of the peer for the previous, the current and the next epoch. An epoch is the lifetime
    /// of a key.
    receiving: [Key; 3],
    epoch: u64,
    replay: Replay,
    key_life: u32,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Seal {
    /// Creates a seal from the first keys of both directions. Each key serves two to the power of
    /// `key_life` datagrams.
    pub(crate) fn new(keys: &Keys, key_life: u32) -> Seal {
        let [send, receive, unused] = [keys.send, keys.receive, keys.receive].map(|key| Key::new(keys.cipher, key));
        let next = receive.next();
        Seal {
            sending: send,
            number: 0,
            // There is no epoch before the first, and its entry is never read.
            receiving: [unused, receive, next],
            epoch: 0,
            replay: Replay::default(),
            key_life,
        }
    }

    /// Number of the next datagram to be sealed.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Appends a sealed datagram to `out`; `write` appends the text that is encrypted.
    pub(crate) fn seal(&mut self, to: Tag, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        write(out);
        out.extend_from_slice(&[0; AUTHENTICATION]);
        self.close(to, &mut out[start..]);
    }

    /// Appends a sealed datagram with a piece of a segment to `out`; `write` appends the text that
    /// is encrypted.
    pub(crate) fn seal_piece(&mut self, to: Tag, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        write(out);
        out.extend_from_slice(&[0; AUTHENTICATION]);
        self.close_marked(to, &mut out[start..], PIECE);
    }

    /// Seals a datagram in place. The text is already in the buffer; the header and the
    /// authentication tag are filled in.
    pub(crate) fn close(&mut self, to: Tag, datagram: &mut [u8]) {
        self.close_marked(to, datagram, 0);
    }

    fn close_marked(&mut self, to: Tag, datagram: &mut [u8], mark: u64) {
        if self.number > 0 && self.number.is_multiple_of(1 << self.key_life) {
            self.sending = self.sending.next();
        }
        let (head, rest) = datagram.split_at_mut(HEAD);
        let (text, authentication) = rest.split_at_mut(rest.len() - AUTHENTICATION);
        head[..8].copy_from_slice(&to.to_be_bytes());
        head[8..].copy_from_slice(&(self.number | mark).to_be_bytes());
        authentication.copy_from_slice(&self.sending.seal(self.number, head, text));
        self.number += 1;
    }

    /// True if no datagram with this number was received before, as far as the replay window can
    /// tell.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        self.replay.is_new(number)
    }

    /// True if the peer sealed the datagram. The check ignores whether the datagram was received
    /// before, and decrypts it, so that it cannot be opened afterwards.
    pub(crate) fn is_authentic(&self, datagram: &mut [u8]) -> bool {
        let Some(number) = number_of(datagram).filter(|_| datagram.len() >= HEAD + AUTHENTICATION) else {
            return false;
        };
        let (head, text) = datagram.split_at_mut(HEAD);
        self.key_of(number).is_some_and(|(key, _)| key.open(number, head, text).is_some())
    }

    /// Returns the key of the datagram with this number, and the key's index in `receiving`.
    fn key_of(&self, number: u64) -> Option<(&Key, u64)> {
        let epoch = number >> self.key_life;
        let index = (epoch + 1).checked_sub(self.epoch).filter(|index| *index < 3)?;
        Some((&self.receiving[index as usize], index))
    }

    /// Opens a datagram and returns its text. `None` if the peer did not seal it, or if it was
    /// received before.
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a mut [u8]> {
        if datagram.len() < HEAD + AUTHENTICATION {
            return None;
        }
        let number = number_of(datagram)?;
        let (head, text) = datagram.split_at_mut(HEAD);
        if !self.replay.is_new(number) {
            return None;
        }
        let (key, index) = self.key_of(number)?;
        let length = key.open(number, head, text)?;
        self.replay.see(number);
        if index == 2 {
            let next = self.receiving[2].next();
            self.receiving.rotate_left(1);
            self.receiving[2] = next;
            self.epoch += 1;
        }
        Some(&mut datagram[HEAD..HEAD + length])
    }
}

/// Most successive keys that a reader derives. No capture has more than 2^36 datagrams of one
/// direction.
const MOST_KEYS: u64 = 1 << 16;

/// Decrypts the datagrams of one direction in a capture, in any order and any number of times.
pub struct Reader {
    keys: Vec<Key>,
    key_life: u32,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

impl Reader {
    /// Creates a reader from the first key of the direction.
    pub fn new(cipher: Cipher, secret: [u8; 32]) -> Reader {
        Reader { keys: vec![Key::new(cipher, secret)], key_life: KEY_LIFE }
    }

    /// Sets the lifetime of the direction's keys: two to the power of `key_life` datagrams each.
    pub fn serving(self, key_life: u32) -> Reader {
        Reader { key_life, ..self }
    }

    /// Opens a datagram and returns its text. `None` if the datagram is too short or not authentic,
    /// or if its key is beyond [`MOST_KEYS`].
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a mut [u8]> {
        if datagram.len() < HEAD + AUTHENTICATION {
            return None;
        }
        let number = number_of(datagram)?;
        let (head, text) = datagram.split_at_mut(HEAD);
        let epoch = Some(number >> self.key_life).filter(|epoch| *epoch < MOST_KEYS)? as usize;
        while self.keys.len() <= epoch {
            let next = self.keys.last()?.next();
            self.keys.push(next);
        }
        let length = self.keys[epoch].open(number, head, text)?;
        Some(&mut datagram[HEAD..HEAD + length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIPHERS: [Cipher; 2] = [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];

    fn pair(cipher: Cipher, key_life: u32) -> [Seal; 2] {
        let (a, b) = ([1; 32], [2; 32]);
        let keys = [Keys { cipher, send: a, receive: b }, Keys { cipher, send: b, receive: a }];
        keys.map(|keys| Seal::new(&keys, key_life))
    }

    fn sealed(seal: &mut Seal, text: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        seal.seal(7, &mut out, |out| out.extend_from_slice(text));
        out.split_off(6)
    }

    #[test]
    fn what_is_sealed_is_opened_once_and_only_as_it_was() {
        for cipher in CIPHERS {
            let [mut a, mut b] = pair(cipher, 20);
            let datagram = sealed(&mut a, b"hello");
            assert_eq!(datagram[..16], [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(datagram.len(), HEAD + 5 + AUTHENTICATION);
            for bit in 0..datagram.len() * 8 {
                let mut forged = datagram.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(b.open(&mut forged), None, "bit {bit}");
            }
            for length in 0..datagram.len() {
                assert_eq!(b.open(&mut datagram[..length].to_vec()), None);
            }
            assert_eq!(a.open(&mut datagram.clone()), None, "sent back to whoever sealed it");
            assert_eq!(b.open(&mut datagram.clone()).unwrap(), b"hello");
            assert_eq!(b.open(&mut datagram.clone()), None, "a second time");
        }
    }

    #[test]
    fn keys_change_under_way_in_any_order_within_the_window() {
        for cipher in CIPHERS {
            let [mut a, mut b] = pair(cipher, 3);
            let datagrams: Vec<_> = (0..100u8).map(|i| sealed(&mut a, &[i])).collect();
            let mut order: Vec<usize> = (0..100).collect();
            order.chunks_mut(5).for_each(|chunk| chunk.reverse());
            for i in order {
                assert_eq!(b.open(&mut datagrams[i].clone()).unwrap(), [i as u8]);
            }
            // Both directions have keys of their own.
            let back = sealed(&mut b, b"back");
            assert_eq!(a.open(&mut back.clone()).unwrap(), b"back");
            // Somebody who misses a whole key's datagrams has lost the connection: the next one's key is not tried.
            let [mut a, mut b] = pair(cipher, 3);
            let late: Vec<_> = (0..20u8).map(|i| sealed(&mut a, &[i])).collect();
            assert_eq!(b.open(&mut late[17].clone()), None);
            assert_eq!(b.open(&mut late[15].clone()).unwrap(), [15]);
            assert_eq!(b.open(&mut late[17].clone()).unwrap(), [17]);
        }
    }

    #[test]
    fn a_reader_of_captures_follows_the_keys_in_any_order() {
        for cipher in CIPHERS {
            // The last datagram of the first key and the first of the next.
            let [mut a, _] = pair(cipher, KEY_LIFE);
            a.number = (1 << KEY_LIFE) - 1;
            let around = [&b"last"[..], b"first"].map(|text| sealed(&mut a, text));
            assert_eq!(around[1][8..16], (1u64 << 20).to_be_bytes());
            let mut reader = Reader::new(cipher, [1; 32]);
            for _ in 0..2 {
                assert_eq!(reader.open(&mut around[1].clone()).unwrap(), b"first");
                assert_eq!(reader.open(&mut around[0].clone()).unwrap(), b"last");
            }
            // A capture that begins late, backwards.
            let [mut a, _] = pair(cipher, 3);
            let datagrams: Vec<_> = (0..100u8).map(|i| sealed(&mut a, &[i])).collect();
            let mut reader = Reader::new(cipher, [1; 32]).serving(3);
            for i in (50..100).rev() {
                assert_eq!(reader.open(&mut datagrams[i].clone()).unwrap(), [i as u8]);
            }
            let mut of_the_other_direction = Reader::new(cipher, [2; 32]).serving(3);
            assert!(datagrams.iter().all(|datagram| of_the_other_direction.open(&mut datagram.clone()).is_none()));
        }
    }
}
