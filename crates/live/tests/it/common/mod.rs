//! Shared code of the tests of TPA over UDP.
#![allow(dead_code, reason = "each test uses its part")]

use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_live::tpa::{Options, TpaListener, TpaPort, TpaStream};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// Random bytes, in which no part repeats that a transport could confuse with another.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = Rng::stream(seed, Purpose::Test, 0);
    (0..length.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(length).collect()
}

/// A listener on a free port of the loopback.
pub fn listener(options: Options) -> TpaListener {
    let listener = TpaPort::with_options("127.0.0.1:0", options).unwrap().listen(16).unwrap();
    // A test that fails elsewhere must not wait here for ever.
    listener.set_timeout(Some(ms(20_000))).unwrap();
    listener
}

/// An open connection: the end that opened it, and the other end.
pub fn pair(options: Options) -> (TpaStream, TpaStream) {
    let listener = listener(options.clone());
    let client = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    let stream = client.connect(listener.local_addr().unwrap()).unwrap();
    (stream, listener.accept().unwrap().0)
}

/// Sends `there` and `back` at the same time, closes, and checks that each arrives complete.
pub fn exchange(client: TpaStream, server: TpaStream, there: &[u8], back: &[u8]) {
    thread::scope(|scope| {
        let side = |stream: TpaStream, own: Vec<u8>, other: Vec<u8>| {
            scope.spawn(move || {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        (&stream).write_all(&own).unwrap();
                        stream.shutdown(std::net::Shutdown::Write).unwrap();
                    });
                    let mut got = Vec::new();
                    (&stream).read_to_end(&mut got).unwrap();
                    assert!(got == other, "{} bytes arrived, {} were sent", got.len(), other.len());
                });
                // A busy machine needs longer than the default of 30 s.
                stream.set_linger(std::time::Duration::from_secs(300)).unwrap();
                stream.close().unwrap();
            })
        };
        let ends = [side(client, there.to_vec(), back.to_vec()), side(server, back.to_vec(), there.to_vec())];
        for end in ends {
            end.join().unwrap();
        }
    });
}

/// An address where no socket listens, and where none will by chance.
pub fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], meshpace_testing::ports::spare_port()).into()
}

/// Options whose timers are short enough for a test.
pub fn quick() -> Options {
    let mut options = Options::default();
    options.transport.rto.initial = meshpace_core::Duration::from_millis(200);
    options
}

/// A duration in milliseconds.
pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
