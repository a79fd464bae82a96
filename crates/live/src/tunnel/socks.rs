//! SOCKS version 5 (RFC 1928), as far as a tunnel needs it: CONNECT, without a word on who one is.
//!
//! By hand: of the crates that have it some are under the GPL, and the others bring an asynchronous runtime.

use super::Refusal;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 5;
/// Methods of its section 3: nothing asked, and none of those offered.
const NOTHING_ASKED: u8 = 0;
const NONE_OF_THOSE: u8 = 0xff;
const CONNECT: u8 = 1;

/// Answers of its section 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    Refused = 5,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        match refusal {
            Refusal::Forbidden => Reply::NotAllowed,
            Refusal::Unreachable => Reply::HostUnreachable,
            Refusal::Refused => Reply::Refused,
            Refusal::Malformed | Refusal::Crowded => Reply::Failed,
        }
    }
}

/// Reads where a client wants to go: `host:port`. What cannot be served is answered.
///
/// # Errors
///
/// The stream's; [`io::ErrorKind::InvalidData`] for what is no request, or none that is served.
pub(super) fn request(stream: &mut (impl Read + Write)) -> io::Result<String> {
    let count = byte_after(VERSION, stream)?;
    let methods = counted(stream, count)?;
    if !methods.contains(&NOTHING_ASKED) {
        stream.write_all(&[VERSION, NONE_OF_THOSE])?;
        return Err(invalid("SOCKS: the client insists on a password"));
    }
    stream.write_all(&[VERSION, NOTHING_ASKED])?;
    let command = byte_after(VERSION, stream)?;
    let [_, kind] = read(stream)?;
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(stream)?).to_string(),
        4 => format!("[{}]", Ipv6Addr::from(read::<16>(stream)?)),
        3 => {
            let [length] = read(stream)?;
            let name = String::from_utf8(counted(stream, length)?).ok();
            name.filter(|name| !name.is_empty() && !name.contains([':', '[', ']'])).unwrap_or_default()
        }
        _ => {
            reply(stream, Reply::NoSuchAddress)?;
            return Err(invalid("SOCKS: an address of an unknown kind"));
        }
    };
    let port = u16::from_be_bytes(read(stream)?);
    if command != CONNECT {
        reply(stream, Reply::NoSuchCommand)?;
        return Err(invalid("SOCKS: only CONNECT is served"));
    }
    if host.is_empty() {
        reply(stream, Reply::Failed)?;
        return Err(invalid("SOCKS: no name of a host"));
    }
    Ok(format!("{host}:{port}"))
}

/// Tells the client what has come of its request. The address is not told: it is at the far end.
///
/// # Errors
///
/// The stream's.
pub(super) fn reply(stream: &mut impl Write, reply: Reply) -> io::Result<()> {
    stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0])
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn read<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn counted(stream: &mut impl Read, count: u8) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(count)];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn byte_after(version: u8, stream: &mut impl Read) -> io::Result<u8> {
    match read(stream)? {
        [first, byte] if first == version => Ok(byte),
        [first, _] => Err(invalid(&format!("SOCKS: version {first}, and only 5 is served"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn asked(said: &[u8]) -> (Option<String>, Vec<u8>) {
        let mut client = Client(said, Vec::new());
        (request(&mut client).ok(), client.1)
    }

    #[test]
    fn requests_of_rfc_1928() {
        let served = |said: &[u8], target: &str| assert_eq!(asked(said), (Some(target.to_owned()), vec![5, 0]));
        served(b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x07\x1f\x90", "10.0.0.7:8080");
        served(b"\x05\x02\x02\x00\x05\x01\x00\x03\x04host\x00\x50", "host:80");
        served(&[&b"\x05\x01\x00\x05\x01\x00\x04"[..], &[0; 15], &[1, 0, 22]].concat(), "[::1]:22");
    }

    #[test]
    fn what_is_not_served_is_answered() {
        let answered = |said: &[u8], answer: &[u8]| assert_eq!(asked(said), (None, answer.to_vec()), "{said:?}");
        // Only with a password; version 4; BIND; an unknown kind of address; no name; half a request.
        answered(b"\x05\x01\x02", &[5, 0xff]);
        answered(b"\x04\x01\x00\x50\x0a\x00\x00\x07\x00", &[]);
        answered(b"\x05\x01\x00\x05\x02\x00\x01\x0a\x00\x00\x07\x00\x50", &[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]);
        answered(b"\x05\x01\x00\x05\x01\x00\x09\x0a\x00", &[5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0]);
        answered(b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
        answered(b"\x05\x01\x00\x05\x01\x00\x03\x03a:b\x00\x50", &[5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
        answered(b"\x05\x01\x00\x05\x01\x00", &[5, 0]);
        answered(b"", &[]);
    }
}
