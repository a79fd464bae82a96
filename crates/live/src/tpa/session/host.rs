//! Interface of a session to whoever runs it, besides the time and the datagrams that it is told of.

use super::cipher::Cipher;
use super::handshake::Tag;
use std::io;
use std::net::IpAddr;

/// Where unpredictable numbers come from.
pub trait Randomness {
    /// Fills `bytes` with unpredictable ones.
    ///
    /// # Errors
    ///
    /// There are none.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()>;
}

/// Whoever runs an endpoint and its connections.
pub trait Host: Randomness {
    /// True if somebody accepts connections at this port.
    fn listens(&mut self) -> bool;

    /// True if another connection with `address` may wait to be accepted.
    fn has_room(&mut self, address: IpAddr) -> bool;

    /// A connection has these keys: those of both directions, each with the tag that its datagrams begin with.
    fn note_keys(&mut self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]);
}

/// As many unpredictable bytes.
///
/// # Errors
///
/// There are none.
pub fn random<const N: usize>(randomness: &mut (impl Randomness + ?Sized)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    randomness.fill(&mut bytes)?;
    Ok(bytes)
}
