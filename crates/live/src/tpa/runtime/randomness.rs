//! Random numbers of the operating system.

use meshpace_session::Randomness;
use std::io;

/// Random source of the operating system, for cryptographic use.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Randomness for Machine {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        random(bytes)
    }
}

/// Fills `bytes` with random bytes for cryptographic use.
///
/// # Errors
///
/// The system provides no random bytes.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
