//! Reproducible random numbers for tests.

use super::handshake::{InnerTransport, Tag};
use super::host::Randomness;
use super::port::Port;
use super::settings::Settings;
use meshpace_core::{Rng, Time};
use std::io;
use std::net::SocketAddr;

/// Random numbers that follow from a seed. Whoever knows the seed knows the keys.
#[derive(Clone, Debug)]
pub struct Seeded(pub Rng);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.0.next_u64().to_le_bytes()[..chunk.len()]));
        Ok(())
    }
}

impl<A> Port<A> {
    /// Creates a port that takes its random numbers from `rng`.
    pub fn seeded(now: Time, address: SocketAddr, settings: Settings, rng: Rng, listens: bool) -> Port<A> {
        // `Seeded` never fails.
        Port::new(now, address, settings, listens, Seeded(rng)).expect("random numbers")
    }

    /// Opens a connection like [`Port::open_with`], on a port whose random numbers never fail.
    pub fn open_seeded(
        &mut self,
        now: Time,
        peer: SocketAddr,
        inner: InnerTransport,
        application: impl FnOnce(Tag) -> A,
    ) -> u64 {
        self.open_with(now, peer, inner, application).expect("random numbers")
    }
}
