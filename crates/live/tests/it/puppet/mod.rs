//! A peer of TPA over UDP whose datagrams the test writes itself, without encryption. It can send
//! anything.
#![allow(dead_code, reason = "each test uses its part")]

use crate::common::{ms, quick};
use meshpace_core::Duration;
use meshpace_live::tpa::cipher::Suite;
use meshpace_live::tpa::framing::decode_plain;
use meshpace_live::tpa::handshake::{Cookie, Kind, Opening, Protection, Tag, Terms};
use meshpace_live::tpa::{Options, Security};
use meshpace_transport::tpa::{self, Flags, Segment, wire};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tag of the next puppet. Each has its own tag: with the same tag, a request from a port that an
/// earlier puppet had would contain a cookie that is used up.
static OPENER: AtomicU64 = AtomicU64::new(0x0102_0304_0506_0708);

/// Options without encryption, with timers short enough for a test. A puppet does not answer the
/// end of a stream, so the linger time is short.
pub fn plain() -> Options {
    Options { security: Security::Plain, linger: Duration::from_secs(3), ..quick() }
}

/// The peer.
pub struct Puppet {
    pub socket: UdpSocket,
    pub opening: Opening,
    /// Its first block and the first block of the other end.
    pub block: u16,
    pub other: u16,
    /// Tag of the other end.
    pub other_tag: Tag,
}

impl Puppet {
    pub fn new(server: SocketAddr) -> Puppet {
        Puppet::from("127.0.0.1:0", server)
    }

    pub fn from(local: &str, server: SocketAddr) -> Puppet {
        let socket = UdpSocket::bind(local).unwrap();
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(ms(5000))).unwrap();
        let block = 100;
        let opening = Opening {
            kind: Kind::Request,
            protection: Protection::Plain,
            suite: Suite::default(),
            trains: false,
            terms: Terms { segment: 1452, ..Terms::of(&tpa::Config::default()) },
            opener: OPENER.fetch_add(1, Ordering::Relaxed),
            acceptor: 0,
            cookie: Cookie::default(),
            segment: Segment { block, window: 255, flags: Flags::SYN, ..Segment::default() },
        };
        Puppet { socket, opening, block, other: 0, other_tag: 0x1112_1314_1516_1718 }
    }

    /// A datagram with the other end's tag.
    pub fn datagram(&self, segment: Segment, payload: &[u8]) -> Vec<u8> {
        [&self.other_tag.to_be_bytes()[..], &wire::encode_inside_udp(&segment), payload].concat()
    }

    pub fn say(&self, segment: Segment, payload: &[u8]) {
        self.socket.send(&self.datagram(segment, payload)).unwrap();
    }

    pub fn hear(&self) -> Option<(Segment, Vec<u8>)> {
        let mut buffer = [0; 2048];
        let length = self.socket.recv(&mut buffer).ok()?;
        let (tag, segment, payload) = decode_plain(&buffer[..length]).expect("a datagram with a tag");
        assert_eq!(tag, self.opening.opener);
        Some((segment, payload.to_vec()))
    }

    /// The next datagram. `None` if none arrives, `Some(None)` if it is not a segment.
    pub fn hear_any(&self) -> Option<Option<Segment>> {
        let mut buffer = [0; 2048];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(decode_plain(&buffer[..length]).map(|(_, segment, _)| segment))
    }

    pub fn request(&self) {
        self.socket.send(&self.opening.encode(&[], 0)).unwrap();
    }

    /// Answer to a request; `None` if there is none. Answers to earlier requests, which may be
    /// repeated, are skipped.
    pub fn answer(&self) -> Option<Opening> {
        let mut buffer = [0; 2048];
        loop {
            let length = self.socket.recv(&mut buffer).ok()?;
            let answer = Opening::decode(&buffer[..length]).map(|(opening, _)| opening);
            if answer.is_none_or(|answer| answer.opener == self.opening.opener) {
                return answer;
            }
        }
    }

    /// Requests a cookie.
    pub fn ask(&mut self) {
        self.request();
        let challenge = self.answer().expect("a challenge");
        assert!(challenge.segment.flags.has(Flags::SYN.with(Flags::ACK)) && challenge.segment.ack_block == self.block);
        assert_eq!((challenge.kind, challenge.opener), (Kind::Challenge, self.opening.opener));
        (self.opening.cookie, self.opening.terms) = (challenge.cookie, challenge.terms);
    }

    /// Has its request accepted, and sends nothing after that.
    pub fn half_open(mut self) -> Puppet {
        self.ask();
        self.request();
        let answer = self.answer().expect("an acceptance");
        assert_eq!(answer.kind, Kind::Acceptance);
        (self.other, self.other_tag) = (answer.segment.block, answer.acceptor);
        self
    }

    /// Opens a connection.
    pub fn open(self) -> Puppet {
        let puppet = self.half_open();
        puppet.say(Segment { ack_block: puppet.other, window: 255, flags: Flags::ACK, ..Segment::default() }, &[]);
        puppet
    }
}
