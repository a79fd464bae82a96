//! Tests of strangers that begin handshakes as fast as they can, from all their addresses, and
//! never finish one, while other clients want to connect.

use super::end::{End, Ending};
use super::plan::stream;
use crate::cipher::Suite;
use crate::handshake::{Cookie, Kind, Opening, Protection, Terms};
use crate::settings;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::tpa::{Flags, Segment};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Delay of a datagram of the client that wants to connect. Datagrams of strangers have no delay.
const DELAY: Duration = Duration::from_millis(100);

/// Number of handshakes that the strangers begin per millisecond.
const EACH_STEP: usize = 10;

/// Strangers that share a list of addresses.
struct Strangers {
    addresses: Vec<IpAddr>,
    next: usize,
    rng: Rng,
}

impl Strangers {
    /// Sends a request to the listener, repeats it with the cookie of the challenge, and ignores
    /// the acceptance.
    fn begin(&mut self, now: Time, listener: &mut End) {
        let ip = self.addresses[self.next % self.addresses.len()];
        self.next += 1;
        let from = SocketAddr::new(ip, 1024 + self.rng.below(60_000) as u16);
        let config = settings::plain().transport;
        let request = Opening {
            kind: Kind::Request,
            protection: Protection::Plain,
            suite: Suite::default(),
            trains: false,
            terms: Terms::of(&config),
            opener: self.rng.next_u64().max(1),
            acceptor: 0,
            cookie: Cookie::default(),
            segment: Segment { block: 5, window: 255, flags: Flags::SYN, ..Segment::default() },
        };
        listener.receive(now, from, &mut request.encode(&[], 0));
        let challenge = listener.leaving().into_iter().find_map(|(to, bytes)| {
            let (opening, _) = Opening::decode(&bytes)?;
            (to == from && opening.kind == Kind::Challenge).then_some(opening)
        });
        let shown = challenge.map(|challenge| Opening { cookie: challenge.cookie, terms: challenge.terms, ..request });
        if let Some(shown) = shown {
            listener.receive(now, from, &mut shown.encode(&[], 0));
        }
    }
}

/// Lets ten clients, one after the other, open a connection and transfer 1000 bytes. Returns the
/// longest time that one of them needs.
fn longest(addresses: Vec<IpAddr>, client: impl Fn(u8) -> IpAddr) -> Duration {
    let server = SocketAddr::from((Ipv6Addr::from([0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), 4000));
    let mut now = Time(1);
    let mut strangers = Strangers { addresses, next: 0, rng: stream(7, 0) };
    let mut listener = End::new(now, server, settings::plain(), (7, 1), true, (0, now));
    let mut longest = Duration::ZERO;
    for number in 0..10 {
        let from = SocketAddr::new(client(number), 5000);
        let mut opener = End::new(now, from, settings::plain(), (7, 10 + u64::from(number)), false, (1000, now));
        let mut under_way: Vec<(Time, bool, Vec<u8>)> = Vec::new();
        let began = now;
        opener.open(now, server);
        while opener.applications().any(|one| one.ending == Ending::None) {
            assert!(now < began + Duration::from_secs(60), "{from} is kept out");
            now += Duration::from_millis(1);
            let leaving = opener.leaving();
            under_way.extend(leaving.into_iter().map(|(_, bytes)| (now + DELAY, true, bytes)));
            let (due, later) = under_way.into_iter().partition(|(at, ..)| *at <= now);
            under_way = later;
            for (_, to_listener, mut bytes) in due {
                if to_listener {
                    listener.receive(now, from, &mut bytes);
                } else {
                    opener.receive(now, server, &mut bytes);
                }
            }
            listener.wake(now);
            opener.wake(now);
            let answers = listener.leaving().into_iter().filter(|(to, _)| *to == from);
            under_way.extend(answers.map(|(_, bytes)| (now + DELAY, false, bytes)));
            (0..EACH_STEP).for_each(|_| strangers.begin(now, &mut listener));
        }
        longest = longest.max(now.since(began));
    }
    longest
}

#[test]
fn who_floods_from_a_few_addresses_keeps_nobody_waiting() {
    for count in [1, 5, 8] {
        let addresses = (1..=count).map(|host| IpAddr::from([10, 0, 0, host])).collect();
        let took = longest(addresses, |number| IpAddr::from([10, 0, 0, 100 + number]));
        // Two round trips to open, and two to send and close.
        assert!(took < Duration::from_secs(1), "{took:?} beside {count} addresses");
    }
}

#[test]
fn who_floods_from_a_network_of_ipv6_keeps_nobody_waiting() {
    // A /58: 64 networks of 64 bits.
    let address = |net: u16, host: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 7, net, 0, 0, 0, host));
    let took = longest((0..64).map(|net| address(net, 1)).collect(), |number| address(0x100 + u16::from(number), 1));
    assert!(took < Duration::from_secs(1), "{took:?}");
}
