//! Fuzz target: a function of the bytes of a capture that panics if the code has an error.
//!
//! It is built only by fuzzers (`--cfg fuzzing`, as `cargo fuzz` sets it; the target is in `fuzz/`)
//! and by the tests of this crate. The tests run it on the inputs in `fuzz/corpus` and on
//! variations of them.

use crate::rewrite::{Done, Keys, MAGIC, rewrite};
use pcap_file::pcapng::PcapNgWriter;
use std::io;

/// Keys for datagrams that begin with an even byte. The content of the datagram decides the length
/// of the result, which may be shorter or zero.
struct Even(bool);

impl Keys for Even {
    fn know(&self, datagram: &[u8]) -> bool {
        self.0 && datagram.first().is_some_and(|first| first & 1 == 0)
    }

    fn open(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let last = *datagram.last().filter(|last| **last != 7)?;
        Some(datagram.iter().copied().take(usize::from(last)).collect())
    }
}

/// Copies the capture, and returns the counts and the bytes written.
fn written(data: &[u8], keys: bool) -> io::Result<(Done, Vec<u8>)> {
    let magic: [u8; MAGIC] = *data.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let mut writer = PcapNgWriter::new(Vec::new()).map_err(crate::rewrite::as_io)?;
    let done = rewrite(magic, data, &mut Even(keys), &mut writer)?;
    Ok((done, writer.into_inner()))
}

/// Copies a capture of unknown origin: it is either read or refused, and the copy can be read
/// again.
///
/// # Panics
///
/// If the code violates this.
pub fn captures(data: &[u8]) {
    for keys in [false, true] {
        match written(data, keys) {
            Ok((done, plain)) => {
                assert!(done.opened + done.broken <= done.packets * data.len() as u64);
                assert!(keys || done.opened == 0);
                let again = written(&plain, false);
                let packets = again.map(|(done, _)| done.packets).map_err(|error| error.to_string());
                assert!(packets.is_ok_and(|packets| packets + done.broken >= done.packets), "{done:?}");
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_capture_is_read_or_refused() {
        drive("captures", super::captures);
    }
}
