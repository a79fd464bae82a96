//! Reading what has to be said within a time, however it comes: a byte now and then is not enough.

use crate::Clock;
use meshpace_core::{Duration, Time};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A stream whose reads may be limited.
pub(super) trait Limited {
    /// How long one read may take; none for ever.
    ///
    /// # Errors
    ///
    /// The stream's.
    fn limit(&self, limit: Option<std::time::Duration>) -> io::Result<()>;
}

impl Limited for TcpStream {
    fn limit(&self, limit: Option<std::time::Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)
    }
}

/// A stream that is read until a time, and not beyond.
pub(super) struct Within<'a, S> {
    stream: &'a S,
    until: Time,
}

impl<'a, S: Limited> Within<'a, S> {
    /// All reads together may take `patience`. The stream keeps the limit of the last one until another is set.
    pub(super) fn new(stream: &'a S, patience: Duration) -> Within<'a, S> {
        Within { stream, until: Clock.now() + patience }
    }
}

impl<'a, S: Limited> Read for Within<'a, S>
where
    &'a S: Read,
{
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.since(Clock.now());
        if left == Duration::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.limit(Some(std::time::Duration::from_nanos(left.0)))?;
        self.stream.read(into)
    }
}

impl<'a, S> Write for Within<'a, S>
where
    &'a S: Write,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the bytes come in real time")]
    fn a_byte_now_and_then_is_not_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut dribbling = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        let dribbles = std::thread::spawn(move || {
            // Every read would have its byte in time; all of them take 3 s at least.
            (0..30).all(|_| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                dribbling.write_all(&[1]).is_ok()
            })
        });
        let error = Within::new(&stream, Duration::from_millis(500)).read_exact(&mut [0; 30]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        // What comes in time is taken.
        Within::new(&stream, Duration::from_secs(20)).read_exact(&mut [0]).unwrap();
        drop(stream);
        dribbles.join().unwrap();
    }
}
