//! Strangers that begin handshakes and do not finish them.

use super::codec::{Kind, Opening, write};
use super::wire::Datagram;
use super::world::{LISTENER, World};
use meshpace_core::Duration;
use std::net::SocketAddr;

impl World<'_> {
    /// Sends a copy of the first request of another end, with the tag and the address of a
    /// stranger.
    pub(super) fn flood(&mut self) {
        let Some(mut bytes) = self.template.clone() else { return };
        let from = SocketAddr::from(([11, 0, 0, 1 + self.rng.below(8) as u8], 7000));
        write(&mut bytes[12..20], self.rng.next_u64());
        self.wire.put(self.now, Duration::from_micros(100), Datagram { from, to: self.addresses[LISTENER], bytes });
    }

    /// Handles a datagram to a stranger. Strangers answer challenges, and nothing else.
    pub(super) fn strangers_get(&mut self, datagram: &Datagram) {
        let (Some(template), [11, ..]) = (&self.template, octets(datagram.to)) else { return };
        let Ok(challenge) = Opening::read(&datagram.bytes) else { return };
        if challenge.kind != Kind::Challenge {
            return;
        }
        let mut bytes = template.clone();
        // Protection, tag, terms and cookie of the challenge, in a request as long as the datagram
        // of a full segment.
        for (from, to) in [(10, 20), (28, 48)] {
            bytes[from..to].copy_from_slice(&datagram.bytes[from..to]);
        }
        let added = if challenge.is_encrypted() { 32 } else { 8 };
        bytes.resize(usize::from(challenge.segment) + 12 + added, 0);
        let request = Datagram { from: datagram.to, to: datagram.from, bytes };
        self.wire.put(self.now, Duration::from_micros(100), request);
    }
}

fn octets(address: SocketAddr) -> [u8; 4] {
    match address.ip() {
        std::net::IpAddr::V4(address) => address.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    }
}
