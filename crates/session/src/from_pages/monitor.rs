//! Checks of every datagram that leaves a port. Each failure is reported with the sentence of the
//! pages that was broken.

use super::codec::{
    BBR_DATA, BBR_REPORT, Keys, Kind, OPENING, Opening, PATH, PIECE_HEADER, STRAY, TPA_HEADER, TRAIN_HEADER,
    TpaSegment, challenge, is_piece, number, tag,
};
use super::plan::{Plan, Protection};
use crate::cipher::Cipher;
use crate::handshake::InnerTransport;
use meshpace_core::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Bytes that a port has exchanged with an address.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    received: u64,
    sent: u64,
}

/// Times of the last events of one kind, for limits such as "N a second at most".
#[derive(Default, Debug)]
struct Rate(VecDeque<Time>);

impl Rate {
    /// Counts one more event at `now`. Returns the number of events in the second before `now`,
    /// this one included.
    fn count(&mut self, now: Time) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

/// State of the checks of one run.
#[derive(Debug)]
pub(super) struct Monitor {
    carried: InnerTransport,
    is_encrypted: bool,
    /// True if somebody may have changed the transport that the ends have agreed on: "reads all,
    /// forges anything".
    is_transport_forged: bool,
    key_life: u32,
    keys: BTreeMap<u64, Keys>,
    /// Numbers of datagrams that have been used, by the tag of their direction.
    numbers: BTreeMap<u64, BTreeSet<u64>>,
    accounts: BTreeMap<(usize, SocketAddr), Account>,
    /// Addresses that have shown that they receive what a port sends there.
    answered: BTreeSet<(usize, SocketAddr)>,
    cookies: BTreeSet<(usize, SocketAddr, [u8; 16])>,
    /// Path challenges that a port has sent.
    pub(super) asked: BTreeSet<(usize, SocketAddr, u64)>,
    /// Path challenges that a port has received.
    heard: BTreeSet<(usize, SocketAddr, u64)>,
    challenges: BTreeMap<(usize, u64, SocketAddr), Rate>,
    strays: BTreeMap<usize, Rate>,
    /// Least number of the next BBR segment, by the tag of its direction.
    bbr: BTreeMap<u64, u64>,
    /// Promises of the pages that were broken, and how.
    pub(super) broken: Vec<String>,
    /// Number of datagrams that were checked.
    pub(super) datagrams: u64,
    /// Bytes of content in the datagrams that were decrypted with their key.
    pub(super) opened: u64,
}

impl Monitor {
    pub(super) fn new(plan: &Plan) -> Monitor {
        Monitor {
            carried: plan.carried,
            is_encrypted: plan.protection != Protection::Plain,
            is_transport_forged: plan.protection == Protection::Plain && plan.observer.altered_openings > 0,
            key_life: plan.key_life,
            keys: BTreeMap::new(),
            numbers: BTreeMap::new(),
            accounts: BTreeMap::new(),
            answered: BTreeSet::new(),
            cookies: BTreeSet::new(),
            asked: BTreeSet::new(),
            heard: BTreeSet::new(),
            challenges: BTreeMap::new(),
            strays: BTreeMap::new(),
            bbr: BTreeMap::new(),
            broken: Vec::new(),
            datagrams: 0,
            opened: 0,
        }
    }

    fn breaks(&mut self, sentence: &str, what: impl std::fmt::Display) {
        self.broken.push(format!("\"{sentence}\": {what}"));
    }

    /// The keys of the direction whose datagrams begin with `tag`.
    pub(super) fn keys(&mut self, tag: u64, first: (Cipher, [u8; 32])) -> &mut Keys {
        let life = self.key_life;
        let keys = self.keys.entry(tag).or_insert_with(|| Keys::new(first, life));
        if keys.first() != first.1 {
            *keys = Keys::new(first, life);
        }
        keys
    }

    /// Notes that the application at a port opens a connection to this address. The address then
    /// counts as one that has answered.
    pub(super) fn connects(&mut self, port: usize, to: SocketAddr) {
        self.answered.insert((port, to));
    }

    /// Forgets the cookies of a port whose process has restarted.
    pub(super) fn restarts(&mut self, port: usize) {
        self.cookies.retain(|(at, ..)| *at != port);
    }

    /// Notes a datagram that arrives at a port.
    pub(super) fn arrives(&mut self, port: usize, from: SocketAddr, bytes: &[u8], key: Option<(Cipher, [u8; 32])>) {
        self.accounts.entry((port, from)).or_default().received += bytes.len() as u64;
        if let Some(Ok(opening)) = (tag(bytes) == Some(0)).then(|| Opening::read(bytes)) {
            if opening.kind == Kind::Request && self.cookies.contains(&(port, from, opening.cookie)) {
                self.answered.insert((port, from));
            }
            return;
        }
        let is_piece = is_piece(bytes);
        let (Some(to), Some(key), true) = (tag(bytes), key, is_piece || bytes.len() == 41) else { return };
        let Some((_, mut content)) = self.keys(to, key).open(bytes) else { return };
        if is_piece {
            let Some(challenge) = challenge(&content).map(<[u8]>::to_vec) else { return };
            content = challenge;
        }
        match (content.len(), content[0]) {
            (PATH, 1) => {
                self.heard.insert((port, from, number(&content[1..])));
            }
            (PATH, 2) if self.asked.contains(&(port, from, number(&content[1..]))) => {
                self.answered.insert((port, from));
            }
            _ => {}
        }
    }

    /// Checks a datagram that leaves a port, as its protocol wants to send it.
    pub(super) fn leaves(
        &mut self,
        now: Time,
        port: usize,
        to: SocketAddr,
        bytes: &[u8],
        key: Option<(Cipher, [u8; 32])>,
    ) {
        self.datagrams += 1;
        let account = self.accounts.entry((port, to)).or_default();
        account.sent += bytes.len() as u64;
        let account = *account;
        if account.sent > 2 * account.received && !self.answered.contains(&(port, to)) {
            let sentence = "Nothing else is sent to an address that has not answered, so that it never gets more than \
                            twice the bytes that came from it";
            self.breaks(sentence, format_args!("{to} got {} bytes for {}", account.sent, account.received));
        }
        if bytes.len() + 28 > 1500 {
            self.breaks("Over IPv4 and an MTU of 1500 bytes, 1452 (plain) or 1428 (encrypted) are left", bytes.len());
        }
        match tag(bytes) {
            None => self.breaks("bytes 0 to 7: tag of the receiver", format_args!("{} bytes", bytes.len())),
            Some(0) => match Opening::read(bytes) {
                Ok(opening) => self.opening(now, port, to, bytes, &opening),
                Err(sentence) => self.breaks(sentence, format_args!("{bytes:02x?}")),
            },
            Some(tag) if self.is_encrypted => self.sealed(now, (port, to), (tag, bytes), key),
            Some(tag) => self.segment(tag, &bytes[8..]),
        }
    }

    fn opening(&mut self, now: Time, port: usize, to: SocketAddr, bytes: &[u8], opening: &Opening) {
        if opening.kind == Kind::Stray {
            let count = self.strays.entry(port).or_default().count(now);
            if bytes.len() != STRAY {
                self.breaks("A stray (20 bytes: version, kind and, at 12 to 19, the tag)", bytes.len());
            }
            if count > 2000 {
                self.breaks("the answer is a stray; at most 1000 are sent per second", count);
            }
            return;
        }
        if opening.opener == 0 || !opening.header.has_zeros {
            self.breaks("12 to 19: tag of the opener; 48 to 59: TPA's header", format_args!("{opening:?}"));
        }
        if opening.padding.iter().any(|byte| *byte != 0) {
            self.breaks("then padding", format_args!("{opening:?}"));
        }
        let key = if self.is_encrypted { 32 } else { 0 };
        let (cookie, flags) = (opening.cookie != [0; 16], opening.header.flags);
        let answer = TpaSegment::SYN | TpaSegment::ACK;
        let is_right = match opening.kind {
            Kind::Request if !cookie => {
                // An escort shows no public key.
                let is_escort = opening.noise.is_empty();
                opening.padding.is_empty() && (is_escort || opening.noise.len() == key) && flags == TpaSegment::SYN
            }
            Kind::Request => {
                let added = if self.is_encrypted { 32 } else { 8 };
                bytes.len() == usize::from(opening.segment) + TPA_HEADER + added && flags == TpaSegment::SYN
            }
            Kind::Challenge => {
                self.cookies.insert((port, to, opening.cookie));
                bytes.len() == OPENING && cookie && flags == answer
            }
            Kind::Acceptance => {
                let has_noise = opening.noise.is_empty() != opening.is_encrypted();
                bytes.len() == OPENING + opening.noise.len() && opening.acceptor > 1 && has_noise && flags == answer
            }
            Kind::Refusal => bytes.len() == OPENING && opening.acceptor <= 1,
            Kind::Stray => true,
        };
        if !is_right {
            let sentence = "Opening: 1 request (62 bytes, with encryption 32 more), 2 challenge (62), 3 request as long as \
                            the datagram of a full segment, 4 acceptance";
            self.breaks(sentence, format_args!("{} bytes: {opening:?}", bytes.len()));
        }
        if opening.is_encrypted() != self.is_encrypted && opening.kind != Kind::Refusal {
            self.breaks("byte 10: protection", opening.protection);
        }
    }

    fn sealed(
        &mut self,
        now: Time,
        (port, to): (usize, SocketAddr),
        (tag, bytes): (u64, &[u8]),
        key: Option<(Cipher, [u8; 32])>,
    ) {
        let opened = key.and_then(|key| self.keys(tag, key).open(bytes));
        let Some((number, content)) = opened else {
            return self.breaks(
                "then TPA's header and payload, encrypted; authentication of the whole datagram",
                "does not open",
            );
        };
        self.opened += content.len() as u64;
        if content.len() >= 16 && bytes.windows(content.len()).any(|bytes| bytes == content) {
            self.breaks("no payload that was to be encrypted leaves in the clear", number);
        }
        if !self.numbers.entry(tag).or_default().insert(number) {
            self.breaks("number of the datagram in its direction, from 0", format_args!("{number} serves twice"));
        }
        if is_piece(bytes) {
            self.piece(now, (port, to), tag, &content);
        } else if content.len() == PATH {
            self.path(now, (port, to), tag, &content);
        } else {
            self.segment(tag, &content);
        }
    }

    fn piece(&mut self, now: Time, at: (usize, SocketAddr), tag: u64, content: &[u8]) {
        if let Some(challenge) = challenge(content) {
            if content[PIECE_HEADER + PATH..].iter().any(|byte| *byte != 0) {
                self.breaks("in a probe, a path challenge and zeros", content.len());
            }
            return self.path(now, at, tag, challenge);
        }
        let is_right = content.len() > PIECE_HEADER && content[2] < content[3] && (2..=64).contains(&content[3]);
        if !is_right {
            self.breaks(
                "index of this piece in the segment, number of pieces of the segment, 2 to 64",
                format_args!("{:?}", content.get(..4)),
            );
        }
    }

    fn path(&mut self, now: Time, (port, to): (usize, SocketAddr), tag: u64, content: &[u8]) {
        let random = number(&content[1..]);
        match content[0] {
            1 => {
                self.asked.insert((port, to, random));
                let count = self.challenges.entry((port, tag, to)).or_default().count(now);
                if count > 10 {
                    self.breaks(
                        "only when a datagram has come from that address, and at most ten times a second",
                        count,
                    );
                }
            }
            2 if self.heard.contains(&(port, to, random)) => {}
            2 => self.breaks("response: the same number, to the address that the challenge came from", to),
            other => self.breaks("Byte 0: 1 challenge, 2 response", other),
        }
    }

    fn segment(&mut self, tag: u64, content: &[u8]) {
        if self.is_transport_forged {
            return;
        }
        let broken = match self.carried {
            InnerTransport::Tpa => tpa(content, self.is_encrypted),
            InnerTransport::Trains => train(content),
            InnerTransport::Bbr => self.bbr(tag, content),
        };
        if let Err(sentence) = broken {
            let header = &content[..content.len().min(TRAIN_HEADER)];
            self.breaks(sentence, format_args!("{} bytes: {header:02x?}", content.len()));
        }
    }

    fn bbr(&mut self, tag: u64, content: &[u8]) -> Result<(), &'static str> {
        if content.len() < BBR_DATA {
            return Err("numbers and offsets have six bytes: a header has 13 at least");
        }
        let is_question_or_reset = content[0] & 6 != 0 && content.len() == BBR_DATA;
        if is_question_or_reset {
            let is_zero = content[1..].iter().all(|byte| *byte == 0);
            return if is_zero {
                Ok(())
            } else {
                Err("A SYN or RST has no number, offset or payload: both fields are 0")
            };
        }
        if content[0] & 16 == 0 {
            let number = number(&content[1..7]);
            let next = self.bbr.entry(tag).or_default();
            let is_new = number >= *next;
            *next = (*next).max(number + 1);
            return if is_new { Ok(()) } else { Err("a retransmission has a new number") };
        }
        let ranges = content.len().checked_sub(BBR_REPORT).ok_or("a report has 22 bytes and its ranges")?;
        if ranges % 4 != 0 || ranges > 64 {
            return Err("ranges of numbers, 16 at most: two bytes for how many are missing, two for how many arrived");
        }
        if ranges > 0 && content[BBR_REPORT..BBR_REPORT + 2] != [0, 0] {
            return Err("two bytes for how many are missing above the range, 0 for the first");
        }
        Ok(())
    }
}

/// Checks a segment of TPA.
fn tpa(content: &[u8], is_encrypted: bool) -> Result<(), &'static str> {
    let segment = TpaSegment::read(content).ok_or("the paper's 12 bytes of header")?;
    let payload = content.len() - TPA_HEADER;
    let places = segment.bitmap.count_ones();
    if !segment.has_zeros {
        return Err("the bits of the figure that are zero");
    }
    if payload > 0 && places != 1 && !segment.has(TpaSegment::SYN) {
        return Err("A segment with payload has exactly one bit in BitmapData, unless it is a SYN");
    }
    if segment.has(TpaSegment::FIN) && (payload > 0 || segment.bitmap != 1) {
        return Err("A FIN occupies position 0 of a block of its own, without payload");
    }
    if is_encrypted && payload > 0 && segment.transmission == 0 {
        return Err(
            "An encrypted sender begins the TxSeqNumbers of each block at an unpredictable number, and leaves out 0",
        );
    }
    Ok(())
}

/// Checks a segment of quiet trains.
fn train(content: &[u8]) -> Result<(), &'static str> {
    if content.len() < TRAIN_HEADER {
        return Err("A segment has this header, followed by its payload: 38 bytes");
    }
    // A RST carries no data.
    let (flags, payload) = (content[0], content.len() - TRAIN_HEADER);
    if flags & 0x04 != 0 && payload > 0 {
        return Err("flags as in TCP (RFC 9293, section 3.1)");
    }
    Ok(())
}
