//! Random numbers of the machine.

use crate::tpa::session::host::Randomness;
use std::io;

/// The machine's source of unpredictable numbers.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Randomness for Machine {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        random(bytes)
    }
}

/// Fills `bytes` with unpredictable ones.
///
/// # Errors
///
/// The machine gives none.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
