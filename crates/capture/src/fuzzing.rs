//! The body for fuzzers: a function of the bytes of a capture that panics when something is wrong.
//!
//! Built by fuzzers alone (`--cfg fuzzing`, as `cargo fuzz` does it; `fuzz/` has the target), and by this crate's tests, which run it on the inputs in
//! `fuzz/corpus` and on changes of them.

use crate::rewrite::{Done, Keys, MAGIC, rewrite};
use pcap_file::pcapng::PcapNgWriter;
use std::io;

/// Keys for what begins with an even byte; what is opened is longer, shorter or nothing, as its bytes say.
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

/// The capture as it is written.
fn written(data: &[u8], keys: bool) -> io::Result<(Done, Vec<u8>)> {
    let magic: [u8; MAGIC] = *data.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let mut writer = PcapNgWriter::new(Vec::new()).map_err(crate::rewrite::as_io)?;
    let done = rewrite(magic, data, &mut Even(keys), &mut writer)?;
    Ok((done, writer.into_inner()))
}

/// A capture that somebody has made: it is read, or refused; what is written of it can be read.
///
/// # Panics
///
/// If it is otherwise.
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
