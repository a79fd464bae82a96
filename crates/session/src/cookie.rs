//! Cookies: a listener answers a request for a connection with a cookie instead of remembering the
//! request.
//!
//! A cookie is SipHash-2-4 with 128 bits under a random key. It covers both addresses, the whole
//! request, and the public key with which Noise's first message begins. So an attacker who reads a
//! request cannot show its cookie with a message of his own.
//!
//! Keys are replaced every 8 s and are valid for twice as long. The cookies of connections and of
//! unfinished handshakes are remembered as long as their key, so that a replayed request opens
//! nothing. Memory is bounded: when a key's share is full, the next key comes early.

use super::addresses::Addresses;
use super::handshake::{Cookie, Opening};
use meshpace_core::{Duration, Time};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::net::IpAddr;

/// Shortest time for which a cookie is valid, unless very many are used. The longest time is twice
/// this.
pub const COOKIE_LIFE: Duration = Duration::from_secs(8);

/// Maximum number of used cookies that are remembered per key.
const MOST_USED: usize = 1 << 16;

/// A key, and the used cookies that were made with it. Half of each cookie is stored, which is
/// enough to tell them apart.
#[derive(Clone, Default)]
struct Key {
    secret: [u8; 16],
    used: BTreeSet<u64>,
}

/// Makes and recognises cookies. Stores nothing about cookies that have not been used.
#[derive(Clone)]
pub struct CookieKeys {
    keys: [Key; 2],
    since: Time,
}

impl std::fmt::Debug for CookieKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieKeys")
    }
}

fn half(cookie: &Cookie) -> u64 {
    cookie.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

impl CookieKeys {
    /// Creates the cookie keys at `now` from two secret keys.
    pub fn new(now: Time, secrets: [[u8; 16]; 2]) -> CookieKeys {
        CookieKeys { keys: secrets.map(|secret| Key { secret, ..Key::default() }), since: now }
    }

    /// True if the next key is due. The caller then passes it to [`CookieKeys::rotate`].
    pub fn is_due(&self, now: Time) -> bool {
        now.since(self.since) >= COOKIE_LIFE || self.keys[0].used.len() >= MOST_USED
    }

    /// Starts another key and forgets the oldest one. After a long pause all earlier keys are
    /// forgotten.
    pub fn rotate(&mut self, now: Time, secrets: [[u8; 16]; 2]) {
        let [fresh, other] = secrets.map(|secret| Key { secret, ..Key::default() });
        let last = std::mem::replace(&mut self.keys[0], fresh);
        self.keys[1] = if now.since(self.since) >= COOKIE_LIFE * 2 { other } else { last };
        self.since = now;
    }

    fn bake(secret: &[u8; 16], (between, port): (Addresses, u16), opening: &Opening, key: &[u8]) -> Cookie {
        // SipHash-2-4 is a keyed function made for short messages: without the key nobody can
        // predict its next value.
        let mut hasher = SipHasher24::new_with_key(secret);
        let mut address = |address: IpAddr, port: u16| {
            match address {
                IpAddr::V4(address) => hasher.write(&address.to_ipv6_mapped().octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
            hasher.write_u16(port);
        };
        address(between.peer.ip(), between.peer.port());
        address(between.own.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)), port);
        hasher.write(&opening.prologue());
        // The transport is hashed separately because it is not part of the prologue. If it were,
        // earlier builds and this one could not agree on the prologue.
        hasher.write_u8(opening.inner() as u8);
        hasher.write(key);
        hasher.finish128().as_bytes()
    }

    /// Cookie for the request `opening` that arrived between these addresses at this port of ours.
    /// `key` is the public key with which Noise's message begins.
    pub fn cookie(&self, at: (Addresses, u16), opening: &Opening, key: &[u8]) -> Cookie {
        CookieKeys::bake(&self.keys[0].secret, at, opening, key)
    }

    /// True if the request shows a cookie that was made for it recently. The cookie is then used
    /// up.
    pub fn spend(&mut self, at: (Addresses, u16), opening: &Opening, key: &[u8]) -> bool {
        if opening.cookie == Cookie::default() {
            // The request shows no cookie. Floods consist of such requests, so they must cost as
            // little as possible.
            return false;
        }
        let fits = |secret: &&mut Key| CookieKeys::bake(&secret.secret, at, opening, key) == opening.cookie;
        self.keys.iter_mut().find(fits).is_some_and(|key| key.used.insert(half(&opening.cookie)))
    }

    /// Makes a cookie valid again whose request has led to nothing. The peer gets no other cookie
    /// before the next key.
    pub fn give_back(&mut self, cookie: &Cookie) {
        for key in &mut self.keys {
            key.used.remove(&half(cookie));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Suite;
    use super::super::handshake::{Kind, Protection, Terms};
    use super::*;
    use meshpace_transport::tpa::Segment;

    fn opening() -> Opening {
        let terms = Terms { window: 3, ack_every: 2, segment: 0x5b4, block_segments: 12 };
        Opening {
            kind: Kind::Request,
            protection: Protection::Nn,
            suite: Suite::asking(true),
            trains: false,
            terms,
            opener: 5,
            acceptor: 0,
            cookie: [0; 16],
            segment: Segment { block: 7, ..Segment::default() },
        }
    }

    fn between(peer: &str, own: &str) -> Addresses {
        Addresses { peer: peer.parse().unwrap(), own: Some(own.parse().unwrap()) }
    }

    #[test]
    fn a_cookie_is_good_for_its_request_alone_once_and_not_for_long() {
        let ends = between("10.0.0.1:4000", "10.0.0.9");
        let fresh = || CookieKeys::new(Time(0), [[1; 16], [2; 16]]);
        let shown = Opening { cookie: fresh().cookie((ends, 9), &opening(), &[4; 32]), ..opening() };
        let mut ours = fresh();
        assert!(ours.spend((ends, 9), &shown, &[4; 32]));
        assert!(!ours.spend((ends, 9), &shown, &[4; 32]), "a second time");
        ours.give_back(&shown.cookie);
        assert!(
            ours.spend((ends, 9), &shown, &[4; 32]) && !ours.spend((ends, 9), &shown, &[4; 32]),
            "once more after it was given back"
        );
        let refused = |why: &str, ends: Addresses, port: u16, shown: &Opening| {
            assert!(!fresh().spend((ends, port), shown, &[4; 32]), "{why}");
        };
        refused("another port", between("10.0.0.1:4001", "10.0.0.9"), 9, &shown);
        refused("another address", between("10.0.0.2:4000", "10.0.0.9"), 9, &shown);
        refused("another address of ours", between("10.0.0.1:4000", "10.0.0.8"), 9, &shown);
        refused("another port of ours", ends, 8, &shown);
        refused("another tag", ends, 9, &Opening { opener: 6, ..shown });
        refused("another block", ends, 9, &Opening { segment: Segment { block: 8, ..shown.segment }, ..shown });
        refused("other terms", ends, 9, &Opening { terms: Terms { segment: 9, ..shown.terms }, ..shown });
        let trains = Opening { trains: true, ..opening() };
        let trains = Opening { cookie: fresh().cookie((ends, 9), &trains, &[4; 32]), ..trains };
        assert!(fresh().spend((ends, 9), &trains, &[4; 32]));
        refused("BBR", ends, 9, &Opening { segment: Segment { congested: true, ..trains.segment }, ..trains });
        refused("none", ends, 9, &opening());
        assert!(!fresh().spend((ends, 9), &shown, &[5; 32]), "another key of Noise's");
        assert!(!fresh().spend((ends, 9), &shown, &[]), "none");
        assert!(!CookieKeys::new(Time(0), [[3; 16], [4; 16]]).spend((ends, 9), &shown, &[4; 32]), "another key");
    }

    #[test]
    fn keys_are_replaced() {
        let ends = between("[fe80::1]:4000", "fe80::2");
        let mut cookie_keys = CookieKeys::new(Time(0), [[1; 16], [2; 16]]);
        let shown = Opening { cookie: cookie_keys.cookie((ends, 9), &opening(), &[4; 32]), ..opening() };
        assert!(!cookie_keys.is_due(Time(COOKIE_LIFE.0 - 1)) && cookie_keys.is_due(Time(COOKIE_LIFE.0)));
        cookie_keys.rotate(Time(COOKIE_LIFE.0), [[3; 16], [4; 16]]);
        assert!(cookie_keys.clone().spend((ends, 9), &shown, &[4; 32]), "one key later");
        assert!(
            cookie_keys.spend((ends, 9), &shown, &[4; 32]) && !cookie_keys.spend((ends, 9), &shown, &[4; 32]),
            "remembered with its key"
        );
        let mut late = cookie_keys.clone();
        cookie_keys.rotate(Time(2 * COOKIE_LIFE.0), [[5; 16], [6; 16]]);
        assert!(!cookie_keys.spend((ends, 9), &shown, &[4; 32]), "too old");
        let other = Opening { opener: 6, ..opening() };
        let other = Opening { cookie: late.cookie((ends, 9), &other, &[4; 32]), ..other };
        late.rotate(Time(9 * COOKIE_LIFE.0), [[7; 16], [8; 16]]);
        assert!(!late.spend((ends, 9), &other, &[4; 32]), "after a long pause");
    }
}
