//! Key agreement by the Noise handshake (revision 34), which requests and acceptances carry. The
//! `snow` crate implements it.
//!
//! The pattern depends on the protection. The suite is `Noise_NN_25519_AESGCM_BLAKE2s` with a peer
//! that is not authenticated; `ChaChaPoly` stands in the place of `AESGCM` unless both ends have
//! instructions for AES. With `NN` an observer can neither read nor forge datagrams, but an
//! attacker who is between the two ends during the handshake can do both. `NNpsk0`, with a peer
//! that knows a shared secret, and `IK`, with the holder of a known key, exclude this attacker. The
//! pattern is IK and not KK because a listener with several known peers learns from the first
//! message of IK which peer is speaking. The prologue consists of the fields of the request. The
//! acceptance is repeated inside the second Noise message.

use super::cipher::Cipher;
use super::handshake::{Opening, Protection};
use super::host::{Randomness, random};
use super::seal::{AUTHENTICATION, Key, Keys};
use super::security::Security;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver};
use snow::{Builder, HandshakeState, types};
use std::io;

/// Longest Noise message of this handshake, bytes.
const MOST: usize = 256;

/// Length of a key, bytes. Every first message begins with a public key that was made for it alone.
const KEY: usize = 32;

/// Private key with which a first message is made. Each one is used for a single message.
pub(crate) type Secret = [u8; KEY];

/// Returns the public key with which a first message begins. The key is incomplete if the message
/// is shorter than a key.
pub fn key_of(message: &[u8]) -> &[u8] {
    &message[..message.len().min(KEY)]
}

/// State of the initiator between its message and the answer.
pub(crate) struct Asking(HandshakeState, Cipher);

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asking")
    }
}

fn broken(error: snow::Error) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("Noise: {error}"))
}

/// Noise's name of a cipher.
fn name(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::ChaCha20Poly1305 => "ChaChaPoly",
        Cipher::Aes256Gcm => "AESGCM",
    }
}

fn pattern(protection: Protection, cipher: Cipher) -> io::Result<snow::params::NoiseParams> {
    let pattern = match protection {
        Protection::Plain => return Err(io::ErrorKind::Unsupported.into()),
        Protection::Nn => "NN",
        Protection::NnPsk0 => "NNpsk0",
        Protection::Ik => "IK",
    };
    format!("Noise_{pattern}_25519_{}_BLAKE2s", name(cipher)).parse().map_err(broken)
}

/// Resolver that supplies the ciphers of `seal`, and the only random number that a handshake needs
/// at either end: the private key that was made for it.
struct Drawn([u8; 32]);

/// Random source that returns that number once.
struct Once(Option<[u8; 32]>);

impl types::Random for Once {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), snow::Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == into.len()).ok_or(snow::Error::Rng)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }
}

impl CryptoResolver for Drawn {
    fn resolve_rng(&self) -> Option<Box<dyn types::Random>> {
        Some(Box::new(Once(Some(self.0))))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn types::Dh>> {
        None
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn types::Hash>> {
        None
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn types::Cipher>> {
        let cipher = match choice {
            CipherChoice::ChaChaPoly => Cipher::ChaCha20Poly1305,
            CipherChoice::AESGCM => Cipher::Aes256Gcm,
        };
        Some(Box::new(Sealing { cipher, key: Key::new(cipher, [0; KEY]) }))
    }
}

/// Cipher of the messages of a handshake.
struct Sealing {
    cipher: Cipher,
    key: Key,
}

impl types::Cipher for Sealing {
    fn name(&self) -> &'static str {
        name(self.cipher)
    }

    fn set(&mut self, key: &[u8; KEY]) {
        self.key = Key::new(self.cipher, *key);
    }

    fn encrypt(&self, nonce: u64, head: &[u8], text: &[u8], out: &mut [u8]) -> usize {
        let (sealed, rest) = out.split_at_mut(text.len());
        sealed.copy_from_slice(text);
        rest[..AUTHENTICATION].copy_from_slice(&self.key.seal(nonce, head, sealed));
        text.len() + AUTHENTICATION
    }

    fn decrypt(&self, nonce: u64, head: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<usize, snow::Error> {
        // The buffer of the caller may have no room for the authentication tag.
        let mut text = sealed.to_vec();
        let length = self.key.open(nonce, head, &mut text).ok_or(snow::Error::Decrypt)?;
        out.get_mut(..length).ok_or(snow::Error::Decrypt)?.copy_from_slice(&text[..length]);
        Ok(length)
    }
}

fn builder<'a>(security: &'a Security, cipher: Cipher, prologue: &'a [u8], secret: Secret) -> io::Result<Builder<'a>> {
    let resolver = FallbackResolver::new(Box::new(Drawn(secret)), Box::new(DefaultResolver));
    let pattern = pattern(security.protection(), cipher)?;
    let builder = Builder::with_resolver(pattern, Box::new(resolver)).prologue(prologue).map_err(broken)?;
    match security {
        Security::Plain | Security::Opportunistic => Ok(builder),
        Security::Shared(secret) => builder.psk(0, secret).map_err(broken),
        Security::Keys { own, .. } => builder.local_private_key(own).map_err(broken),
    }
}

/// Makes the first Noise message of the request `opening`. The secret must not be used for another
/// message.
///
/// # Errors
///
/// A key is invalid, or the settings have keys but not exactly one peer.
pub(crate) fn ask(security: &Security, opening: &Opening, secret: Secret) -> io::Result<(Asking, Vec<u8>)> {
    let prologue = opening.prologue();
    let cipher = opening.suite.cipher;
    let mut builder = builder(security, cipher, &prologue, secret)?;
    if let Security::Keys { peers, .. } = security {
        let [peer] = &peers[..] else {
            let text = format!("{} keys of peers: whoever opens a connection needs to know one", peers.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        builder = builder.remote_public_key(peer).map_err(broken)?;
    }
    let mut state = builder.build_initiator().map_err(broken)?;
    let mut message = vec![0; MOST];
    let length = state.write_message(&[], &mut message).map_err(broken)?;
    message.truncate(length);
    Ok((Asking(state, cipher), message))
}

/// State of the responder between the first message and its answer.
pub(crate) struct Heard(HandshakeState, Cipher);

/// Reads `message`, the first Noise message, of the request `opening`.
///
/// # Errors
///
/// [`io::ErrorKind::PermissionDenied`] if the message was made with other keys.
pub(crate) fn hear(
    security: &Security,
    opening: &Opening,
    message: &[u8],
    randomness: &mut (impl Randomness + ?Sized),
) -> io::Result<Heard> {
    let prologue = opening.prologue();
    let cipher = opening.suite.cipher;
    let mut state = builder(security, cipher, &prologue, random(randomness)?)?.build_responder().map_err(broken)?;
    if state.read_message(message, &mut [0; MOST]).map_err(broken)? > 0 {
        // No peer puts a payload into this message, and without known keys the author of a payload
        // could not be identified.
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Heard(state, cipher))
}

impl Heard {
    /// Returns the public key of the peer, which has proved that it holds the private key. `None`
    /// if peers have no keys.
    pub(crate) fn peer(&self) -> Option<[u8; KEY]> {
        self.0.get_remote_static().and_then(|key| key.try_into().ok())
    }

    /// Answers with a second Noise message whose payload is `said`. Returns the keys and the
    /// message.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] if the keys do not permit an answer.
    pub(crate) fn answer(mut self, said: &[u8]) -> io::Result<(Keys, Vec<u8>)> {
        let mut message = vec![0; MOST];
        let length = self.0.write_message(said, &mut message).map_err(broken)?;
        message.truncate(length);
        let (receive, send) = self.0.dangerously_get_raw_split();
        Ok((Keys { cipher: self.1, send, receive }, message))
    }
}

impl Asking {
    /// Reads the second Noise message and returns the keys and the payload of the peer. After a
    /// success no other message is accepted.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] if `message` is not from the peer. A later message may
    /// still succeed.
    pub(crate) fn finish(&mut self, message: &[u8]) -> io::Result<(Keys, Vec<u8>)> {
        let mut said = vec![0; MOST];
        let length = self.0.read_message(message, &mut said).map_err(broken)?;
        said.truncate(length);
        let (send, receive) = self.0.dangerously_get_raw_split();
        Ok((Keys { cipher: self.1, send, receive }, said))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Suite;
    use super::super::handshake::{Kind, Terms};
    use super::*;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;
    use meshpace_transport::tpa::Segment;

    struct Seeded(Rng);

    impl Randomness for Seeded {
        fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
            bytes.fill_with(|| self.0.next_u64() as u8);
            Ok(())
        }
    }

    fn seeded() -> Seeded {
        Seeded(Rng::stream(1, Purpose::Test, 0))
    }

    fn opening(security: &Security, aes: bool) -> Opening {
        Opening {
            kind: Kind::Request,
            protection: security.protection(),
            suite: Suite::asking(aes),
            trains: false,
            terms: Terms::default(),
            opener: 5,
            acceptor: 0,
            cookie: [0; 16],
            segment: Segment::default(),
        }
    }

    fn shake(ours: &Security, theirs: &Security) -> io::Result<()> {
        shake_with(ours, theirs, false)?;
        shake_with(ours, theirs, true)
    }

    fn shake_with(ours: &Security, theirs: &Security, aes: bool) -> io::Result<()> {
        let opening = opening(ours, aes);
        let mut randomness = seeded();
        let secret = random(&mut randomness)?;
        let (mut asking, first) = ask(ours, &opening, secret)?;
        assert_eq!(key_of(&first), Security::public_key(&secret));
        let longer = [&first[..], &[0]].concat();
        assert!(hear(theirs, &opening, &longer, &mut randomness).is_err());
        let heard = hear(theirs, &opening, &first, &mut randomness)?;
        let own = if let Security::Keys { own, .. } = ours { Some(Security::public_key(own)) } else { None };
        assert_eq!(heard.peer(), own);
        let (accepted, second) = heard.answer(b"agreed")?;
        let mut forged = second.clone();
        forged[40] ^= 1;
        assert!(asking.finish(&forged).is_err());
        let (keys, said) = asking.finish(&second)?;
        assert_eq!(said, b"agreed");
        assert_eq!((keys.send, keys.receive), (accepted.receive, accepted.send));
        assert_eq!([keys.cipher, accepted.cipher], [opening.suite.cipher; 2]);
        assert_ne!(keys.send, keys.receive);
        Ok(())
    }

    #[test]
    fn both_ends_have_the_same_keys() {
        shake(&Security::Opportunistic, &Security::Opportunistic).unwrap();
        shake(&Security::Shared([7; 32]), &Security::Shared([7; 32])).unwrap();
        let [(a, of_a), (b, of_b), (_, of_c)] =
            [[1; 32], [2; 32], [3; 32]].map(|key| (key, Security::public_key(&key)));
        let known = |own: [u8; 32], peers: &[[u8; 32]]| Security::Keys { own, peers: peers.to_vec() };
        shake(&known(a, &[of_b]), &known(b, &[of_c, of_a])).unwrap();
        let refused = |ours, theirs| assert!(shake(&ours, &theirs).is_err());
        refused(Security::Shared([7; 32]), Security::Shared([8; 32]));
        refused(known(a, &[of_c]), known(b, &[of_a]));
        refused(known(a, &[of_b, of_c]), known(b, &[of_a]));
    }

    #[test]
    fn a_request_that_was_changed_under_way_gives_no_keys() {
        let security = Security::Opportunistic;
        let asked = opening(&security, true);
        let mut randomness = seeded();
        let (mut asking, first) = ask(&security, &asked, [3; KEY]).unwrap();
        // Other terms; an offer that was taken out, with the cipher or without.
        for seen in [
            Opening { terms: Terms { window: 9, ..asked.terms }, ..asked },
            Opening { suite: Suite::asking(false), ..asked },
            Opening { suite: asked.suite.agreed(false), ..asked },
        ] {
            let (_, second) = hear(&security, &seen, &first, &mut randomness).unwrap().answer(b"agreed").unwrap();
            assert!(asking.finish(&second).is_err(), "{seen:?}");
        }
        let (_, second) = hear(&security, &asked, &first, &mut randomness).unwrap().answer(b"changed").unwrap();
        assert_eq!(asking.finish(&second).unwrap().1, b"changed", "what is inside is the peer's own");
    }

    /// Handshake of NN and the first message of either direction after it, by the implementation of
    /// Noise in Haskell (cacophony): four pairs of a payload and its message, for each cipher. The
    /// prologue is "John Galt".
    const HASKELL: [(Cipher, [(&str, &str); 4]); 2] = [
        (
            Cipher::ChaCha20Poly1305,
            [
                (
                    "4c756477696720766f6e204d69736573",
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69736573",
                ),
                (
                    "4d757272617920526f746862617264",
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843ff34a6759d06e7733c83aeb5556c15bc762b664b3ba0556b1e7eaea4168bb6",
                ),
                ("462e20412e20486179656b", "79285da88da3535f52b07b70006c85706de7ddb1fd3dddac995b7e"),
                ("4361726c204d656e676572", "ffdad3a7f0db4c39077f223659c5c1d107666405566ecdf4ab53bf"),
            ],
        ),
        (
            Cipher::Aes256Gcm,
            [
                (
                    "4c756477696720766f6e204d69736573",
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69736573",
                ),
                (
                    "4d757272617920526f746862617264",
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088435637c95d5175db82241df5bb90db690493dacfa51454f80512c3e223de17f7",
                ),
                ("462e20412e20486179656b", "017e18dffa3706f97c3f08d9318fa68784302749e9389ff63a31b3"),
                ("4361726c204d656e676572", "ce88f443e45f17ada7021df6150b2dd590d985e2eae4ea17c47f5d"),
            ],
        ),
    ];

    /// Private keys of the handshakes of [`HASKELL`]: of the initiator and of the responder.
    const DRAWN: [&str; 2] = [
        "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
    ];

    fn of_hex(hex: &str) -> Vec<u8> {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
        hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    #[test]
    fn handshakes_and_messages_are_those_of_another_implementation() {
        for (cipher, messages) in HASKELL {
            let drawn = DRAWN.map(|secret| of_hex(secret).try_into().unwrap());
            let [first, second] = drawn.map(|secret| builder(&Security::Opportunistic, cipher, b"John Galt", secret));
            let mut ends = [first.unwrap().build_initiator().unwrap(), second.unwrap().build_responder().unwrap()];
            let messages = messages.map(|(payload, message)| (of_hex(payload), of_hex(message)));
            let (mut written, mut read) = ([0; MOST], [0; MOST]);
            for (turn, (payload, message)) in messages[..2].iter().enumerate() {
                let length = ends[turn].write_message(payload, &mut written).unwrap();
                assert_eq!(written[..length], message[..], "{cipher:?}");
                let length = ends[1 - turn].read_message(message, &mut read).unwrap();
                assert_eq!(read[..length], payload[..], "{cipher:?}");
            }
            let (send, receive) = ends[0].dangerously_get_raw_split();
            for (key, (payload, message)) in [send, receive].iter().zip(&messages[2..]) {
                let mut ours = payload.clone();
                let authentication = Key::new(cipher, *key).seal(0, &[], &mut ours);
                assert_eq!([&ours[..], &authentication].concat(), *message, "{cipher:?}");
            }
            // REKEY, as snow does it.
            let [initiator, _] = ends;
            let mut transport = initiator.into_transport_mode().unwrap();
            transport.rekey_outgoing();
            let length = transport.write_message(b"hello", &mut written).unwrap();
            let mut ours = b"hello".to_vec();
            let authentication = Key::new(cipher, send).next().seal(0, &[], &mut ours);
            assert_eq!([&ours[..], &authentication].concat(), written[..length], "{cipher:?}");
        }
    }
}
