//! Decryption of captured datagrams of encrypted connections, with keys from a key log.

use crate::tpa::runtime::keylog::word;
use crate::tpa::runtime::keys;
use meshpace_session::cipher::Cipher;
use meshpace_session::handshake::{Tag, tag_of};
use meshpace_session::seal::{Reader, is_piece};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const CIPHERS: [Cipher; 2] = [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];

/// Keys from a [key log](crate::tpa::keylog).
#[derive(Debug, Default)]
pub struct Secrets(BTreeMap<Tag, Reader>);

impl Secrets {
    /// Reads the keys from the key log at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or one of its lines does not have the format of a key log. The
    /// error names the line.
    pub fn read(path: &Path) -> io::Result<Secrets> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(explain)?;
        Secrets::of(&text).map_err(|why| explain(io::Error::new(io::ErrorKind::InvalidInput, why)))
    }

    /// Parses the text of a key log. The error describes the first line that does not have the
    /// format of a key log.
    pub(crate) fn of(text: &str) -> Result<Secrets, String> {
        let mut secrets = Secrets::default();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first().is_none_or(|first| first.starts_with('#')) {
                continue;
            }
            let parsed = match words[..] {
                [first, tag, key] if tag.len() == 16 => {
                    let cipher = CIPHERS.into_iter().find(|cipher| word(*cipher) == first);
                    cipher.zip(Tag::from_str_radix(tag, 16).ok().zip(keys::parse(key)))
                }
                _ => None,
            };
            let Some((cipher, (tag, key))) = parsed else {
                let names = CIPHERS.map(word).join(" or ");
                return Err(format!("line {}: expected {names}, a tag of 16 digits and a key of 64", number + 1));
            };
            secrets.0.insert(tag, Reader::new(cipher, key));
        }
        Ok(secrets)
    }

    /// Number of keys. Each decrypts one direction of one connection.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if there is a key for the tag with which this datagram begins.
    pub fn know(&self, datagram: &[u8]) -> bool {
        tag_of(datagram).is_some_and(|tag| self.0.contains_key(&tag))
    }

    /// Returns the datagram as it would be without encryption. `None` if there is no key for it, or
    /// if it is incomplete or corrupted.
    pub fn open(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let tag = tag_of(datagram)?;
        if is_piece(datagram) {
            // This is a piece of a segment; the other pieces are in other datagrams.
            return None;
        }
        let mut copy = datagram.to_vec();
        let content = self.0.get_mut(&tag)?.open(&mut copy)?;
        Some([&tag.to_be_bytes()[..], content].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpa::runtime::keylog::KeyLog;
    use meshpace_session::engine::AnySegment;
    use meshpace_session::framing::Framing;
    use meshpace_session::handshake::InnerTransport;
    use meshpace_session::seal::{KEY_LIFE, Keys};
    use meshpace_transport::tpa::{Segment, wire};

    #[test]
    fn what_is_logged_opens_what_was_sealed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let [keys, other] = CIPHERS.map(|cipher| Keys { cipher, send: [1; 32], receive: [2; 32] });
        KeyLog::append(&path).unwrap().note(keys.cipher, [(0x0102, &keys.receive), (0x0304, &keys.send)]);
        // A second connection adds to it.
        KeyLog::append(&path).unwrap().note(other.cipher, [(0x0506, &other.receive), (0x0708, &other.send)]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with('#') && text.contains(&format!("\nTPA_KEY 0000000000000102 {}\n", "02".repeat(32))),
            "{text}"
        );
        assert!(text.contains(&format!("\nTPA_KEY_AES 0000000000000506 {}\n", "02".repeat(32))), "{text}");
        let mut secrets = Secrets::read(&path).unwrap();
        assert_eq!(secrets.len(), 4);
        let mut datagram = Vec::new();
        Framing::new(0x0708, Some(&other), KEY_LIFE, InnerTransport::Tpa).write(
            &mut datagram,
            &AnySegment::Tpa(Segment::default()),
            b"AES",
            b"",
        );
        assert!(secrets.open(&datagram).is_some_and(|opened| opened.ends_with(b"AES")));
        // What this end sends is sealed with its sending key and begins with the peer's tag.
        let mut framing = Framing::new(0x0304, Some(&keys), KEY_LIFE, InnerTransport::Tpa);
        let segment = Segment { block: 7, place: 1, ..Segment::default() };
        let mut datagram = Vec::new();
        framing.write(&mut datagram, &AnySegment::Tpa(segment), b"over ", b"the hills");
        let opened = secrets.open(&datagram).unwrap();
        let expected = [&0x0304u64.to_be_bytes()[..], &wire::encode_inside_udp(&segment), b"over the hills"].concat();
        assert_eq!(opened, expected);
        // Again, as a capture may have it twice; not with a bit changed, and not with another tag.
        assert!(secrets.open(&datagram).is_some());
        datagram[20] ^= 1;
        assert!(secrets.open(&datagram).is_none() && secrets.know(&datagram));
        datagram[0] = 9;
        assert!(!secrets.know(&datagram) && secrets.open(&datagram).is_none());
    }

    #[test]
    fn lines_that_are_none_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for bad in ["TPA_KEY 12 34", "TPA_KEY", "CLIENT_RANDOM 1 2"] {
            std::fs::write(&path, format!("# ours\n\n{bad}\n")).unwrap();
            let error = Secrets::read(&path).unwrap_err().to_string();
            assert!(error.contains("line 3: expected TPA_KEY"), "{error}");
        }
        assert!(Secrets::read(&directory.path().join("none")).is_err());
    }
}
