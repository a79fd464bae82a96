//! What reads the bytes of a tunnel's clients and of its far end: bodies for fuzzers.

use super::session::{Carrier, fuzzing};
use super::socks;
use std::io::{self, Read, Write};

/// A client that has said everything at once.
struct Client<'a>(&'a [u8], Vec<u8>);

impl Read for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.1.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request by SOCKS: it names a host and a port, or it is refused, by answers of known lengths.
///
/// # Panics
///
/// If it is otherwise.
pub fn socks(data: &[u8]) {
    let mut client = Client(data, Vec::new());
    let asked = socks::request(&mut client);
    let Client(rest, answered) = client;
    assert!(matches!(answered.len(), 0 | 2 | 12), "{answered:?}");
    if let Ok(target) = asked {
        assert_eq!(answered, [5, 0]);
        let (host, port) = target.rsplit_once(':').expect("a port");
        assert!(port.parse::<u16>().is_ok() && !host.is_empty() && target.len() <= 255 + 6, "{target:?}");
        let (is_bracketed, has_colon) = (host.starts_with('['), host.contains(':'));
        assert_eq!(is_bracketed, has_colon, "{target:?}: addresses of IPv6 alone have colons");
        // What follows the request belongs to the target.
        assert!(data.ends_with(rest));
    }
}

/// Bytes of a far end, by either carrier, in pieces of any size.
///
/// # Panics
///
/// If the pieces matter, if what is kept is more than was promised, or if a frame is not read as it would be written.
pub fn session(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let carrier = if how & 1 == 0 { Carrier::Express } else { Carrier::Bulk };
    fuzzing::session(how & 2 == 0, carrier, usize::from(how >> 2) + 1, bytes);
}
