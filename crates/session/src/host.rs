//! Interface of a session to the program that runs it. It covers everything besides the time and
//! the datagrams, which the program passes to the session directly.

use super::cipher::Cipher;
use super::handshake::Tag;
use std::io;
use std::net::IpAddr;

/// Source of unpredictable numbers.
pub trait Randomness {
    /// Fills `bytes` with unpredictable bytes.
    ///
    /// # Errors
    ///
    /// No random numbers are available.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()>;
}

/// Program that runs an endpoint and its connections.
pub trait Host: Randomness {
    /// True if an application accepts connections at this port.
    fn listens(&mut self) -> bool;

    /// True if there is room for another connection with `address` that waits to be accepted.
    fn has_room(&mut self, address: IpAddr) -> bool;

    /// Records the keys of a connection. There is one key for each direction, together with the tag
    /// with which the datagrams of that direction begin.
    fn note_keys(&mut self, cipher: Cipher, directions: [(Tag, &[u8; 32]); 2]);
}

/// Returns `N` unpredictable bytes.
///
/// # Errors
///
/// No random numbers are available.
pub fn random<const N: usize>(randomness: &mut (impl Randomness + ?Sized)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    randomness.fill(&mut bytes)?;
    Ok(bytes)
}
