//! Test functions for fuzzers of the code that parses datagrams. Each takes bytes of an untrusted
//! sender and panics if something is wrong.
//!
//! They are built only for fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; the targets are in
//! `fuzz/`) and for this crate's tests.

use crate::addresses::Addresses;
use crate::cipher::{Cipher, Suite};
use crate::counters::Counters;
use crate::endpoint::{Endpoint, Route};
use crate::framing::{Content, Framing, decode_plain};
use crate::handshake::{Cookie, InnerTransport, Kind, Opening, Protection, Tag, Terms, tag_of, understand_stray};
use crate::host::{Host, Randomness};
use crate::noise;
use crate::outbox::Outbox;
use crate::path_frame::PathFrame;
use crate::seal::{Keys, Reader};
use crate::security::Security;
use crate::settings::{Limits, Settings, plain};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::tpa::{Flags, Segment};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Reader of the input bytes. Returns zeros after the end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Parses a datagram of an open connection with each framing. A datagram that is parsed and written
/// again has the same meaning, and a datagram that was not sealed by the peer is rejected.
///
/// # Panics
///
/// If one of these conditions is violated.
pub fn datagram(data: &[u8]) {
    for inner in [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr] {
        let mut framing = Framing::new(7, None, 20, inner);
        let mut bytes = data.to_vec();
        if let Some(Content::Segment(segment, payload)) = framing.open(&mut bytes) {
            let length = framing.length(&segment, payload.len());
            let mut written = Vec::new();
            framing.write(&mut written, &segment, payload, &[]);
            assert_eq!(written.len(), length, "{inner:?}: the length that is announced is that which is written");
            // The bytes need not be equal, because bits without a meaning are not kept. The meaning
            // is equal.
            let again = framing.open(&mut written).expect("what was written can be read");
            assert_eq!(format!("{again:?}"), format!("{:?}", Content::Segment(segment, payload)), "{inner:?}");
        }
    }
    if let Some((tag, _, payload)) = decode_plain(data) {
        assert!(tag != 0 && payload.len() < data.len());
    }
    if let Some(frame) = PathFrame::read(data) {
        assert_eq!(frame.bytes(), *data);
    }
    for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm] {
        let keys = Keys { cipher, send: [1; 32], receive: [2; 32] };
        let theirs = Keys { cipher, send: keys.receive, receive: keys.send };
        let [mut ours, mut peer] = [&keys, &theirs].map(|keys| Framing::new(7, Some(keys), 4, InnerTransport::Tpa));
        assert!(ours.open(&mut data.to_vec()).is_none(), "nobody sealed it");
        assert!(!ours.is_authentic(&mut data.to_vec()));
        assert!(ours.number(data).is_none_or(|(_, is_new)| is_new), "nothing was here");
        let mut reader = Reader::new(cipher, keys.receive).serving(4);
        assert!(reader.open(&mut data.to_vec()).is_none());
        // Rejected datagrams change nothing: a datagram that the peer seals is accepted once.
        let mut sealed = Vec::new();
        let segment = crate::engine::AnySegment::Tpa(Segment { flags: Flags::ACK, ..Segment::default() });
        peer.write(&mut sealed, &segment, &[], &[]);
        assert!(reader.open(&mut sealed.clone()).is_some());
        assert!(ours.open(&mut sealed.clone()).is_some() && ours.open(&mut sealed).is_none());
    }
}

/// Parses a datagram that opens a connection. A datagram that is parsed and written again is the
/// same, and the separate parsers of its parts agree.
///
/// # Panics
///
/// If one of these conditions is violated.
pub fn opening(data: &[u8]) {
    if let Some((opening, noise)) = Opening::decode(data) {
        let written = opening.encode(noise, 0);
        assert_eq!(Opening::decode(&written), Some((opening, noise)));
        assert_eq!(Opening::decode_repeated(&opening.repeated()), Some(opening), "as inside Noise's message");
        let opener = Opening::decode_head(data).map(|(_, tag)| tag);
        assert_eq!(opener, (opening.kind == Kind::Request).then_some(opening.opener));
        let asked = Opening { kind: Kind::Request, acceptor: 0, cookie: Cookie::default(), ..opening };
        assert_eq!(asked.prologue(), opening.prologue(), "answers have the prologue of their request");
        assert_eq!(tag_of(data), Some(0));
    }
    if let Some(tag) = understand_stray(data) {
        assert_eq!(crate::handshake::stray(tag), *data);
    }
}

/// Host of the listener, with reproducible random numbers.
struct Runner(Rng);

impl Randomness for Runner {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.fill_with(|| self.0.next_u64() as u8);
        Ok(())
    }
}

impl Host for Runner {
    fn listens(&mut self) -> bool {
        true
    }

    fn has_room(&mut self, _: IpAddr) -> bool {
        true
    }

    fn note_keys(&mut self, _: Cipher, _: [(Tag, &[u8; 32]); 2]) {}
}

/// Number of unfinished handshakes for which the listener has places.
const PLACES: usize = 4;

fn security(kind: u8) -> Security {
    match kind % 4 {
        0 => Security::Plain,
        1 => Security::Opportunistic,
        2 => Security::Shared([7; 32]),
        _ => Security::Keys { own: [1; 32], peers: vec![Security::public_key(&[1; 32])] },
    }
}

/// Sends a list of datagrams to a listener: arbitrary bytes, valid requests, requests with the
/// cookie that was returned, and each of these with a changed byte.
///
/// The listener sends no answer that is longer than the datagram it answers, until a valid cookie
/// is shown. Its only state is the places for handshakes, and it uses no more of them than it has.
///
/// # Panics
///
/// If one of these conditions is violated.
pub fn listener(data: &[u8]) {
    let mut input = Input(data);
    let security = security(input.byte());
    let limits = Limits { half_open: PLACES, half_open_per_source: PLACES, ..Limits::default() };
    let settings = Arc::new(Settings { security: security.clone(), limits, ..plain() });
    let mut host = Runner(Rng::stream(1, Purpose::Test, 0));
    let local: SocketAddr = ([10, 0, 0, 9], 4000).into();
    let counters = Arc::new(Counters::default());
    let mut endpoint = Endpoint::new(Time::ZERO, local, settings.clone(), counters, &mut host).expect("numbers");
    let mut now = Time::ZERO;
    let terms = Terms::of(&settings.transport);
    let suite = if security == Security::Plain { Suite::default() } else { Suite::asking(true) };
    let segment = Segment { block: 5, flags: Flags::SYN, ..Segment::default() };
    let (protection, opener) = (security.protection(), 77);
    let mut request = Opening {
        kind: Kind::Request,
        protection,
        suite,
        trains: false,
        terms,
        opener,
        acceptor: 0,
        cookie: Cookie::default(),
        segment,
    };
    let key = if protection == Protection::Plain { Vec::new() } else { Security::public_key(&[3; 32]).to_vec() };
    let mut tag = 1;
    while !input.0.is_empty() {
        let (what, peer) = (input.byte(), ([10, 0, 0, 1 + input.byte() % 3], 5000));
        let addresses = Addresses { peer: peer.into(), own: None };
        let mut bytes = match what % 8 {
            0 => {
                now = now.saturating_add(Duration::from_millis(100 * u64::from(input.byte())));
                continue;
            }
            1 => {
                request.opener = Tag::from(input.byte());
                request.cookie = Cookie::default();
                request.encode(&key, 0)
            }
            2 => match noise::ask(&security, &request, [3; 32]) {
                Ok((_, message)) if protection != Protection::Plain => request.encode(&message, 0),
                _ => request.encode(&[], 0),
            },
            3 => [&u64::to_be_bytes(tag)[..], input.take(40)].concat(),
            4 => [&[0; 8][..], input.take(80)].concat(),
            _ => {
                let length = usize::from(input.byte());
                input.take(length).to_vec()
            }
        };
        if what & 0x80 != 0 && !bytes.is_empty() {
            let at = usize::from(input.byte()) % bytes.len();
            bytes[at] ^= input.byte();
        }
        let shows = Opening::decode(&bytes).is_some_and(|(opening, _)| opening.cookie != Cookie::default());
        let (length, mut out) = (bytes.len(), Outbox::default());
        if let Route::Accepted(accepted) = endpoint.on_datagram(now, addresses, &mut bytes, &mut host, &mut out) {
            let number = accepted.number;
            endpoint.finish(number, None);
        }
        out.seal();
        for message in out.full.iter().chain(&out.answers) {
            let (to, answer, _) = message.content().expect("sealed ones have something");
            assert_eq!(to.peer, addresses.peer, "an answer goes to who asked, or to whom it was promised");
            match Opening::decode(answer) {
                Some((opening, _)) if opening.kind == Kind::Acceptance => {
                    tag = opening.acceptor;
                }
                Some((opening, _)) => {
                    assert!(answer.len() <= length, "{} bytes are answered by {}", length, answer.len());
                    if opening.kind == Kind::Challenge {
                        (request.cookie, request.terms, request.suite) = (opening.cookie, opening.terms, opening.suite);
                    }
                }
                None => assert!(answer.len() <= length && understand_stray(answer).is_some()),
            }
        }
        assert!(shows || endpoint.unfinished() <= PLACES);
        assert!(endpoint.unfinished() <= PLACES && endpoint.in_use().0 <= PLACES);
        let mut out = Outbox::default();
        endpoint.wake(now, &mut out);
    }
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_datagram_is_a_segment_or_is_passed_over() {
        drive("datagram", super::datagram);
    }

    #[test]
    fn any_request_is_answered_by_no_more_than_it_was() {
        drive("listener", super::listener);
    }

    #[test]
    fn any_opening_is_read_as_it_would_be_written() {
        drive("opening", super::opening);
    }
}
