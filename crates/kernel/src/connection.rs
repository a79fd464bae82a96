//! Reports of the eBPF programs about a connection.

use meshpace_core::{Duration, Rate};
use std::net::{IpAddr, SocketAddr};

/// A connection that has chosen the congestion control.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// Address and port on this machine.
    pub local: SocketAddr,
    /// Address and port of the other end.
    pub remote: SocketAddr,
    /// Network namespace of the connection, by the number that `readlink /proc/self/ns/net` shows.
    pub namespace: u32,
    /// Interval between two full segments; zero before the first RTT sample.
    pub interval: Duration,
    /// Smoothed delay from which the interval is computed. With quiet trains: the queueing delay.
    pub delay: Duration,
    /// Time between the two segments of a pair; zero without quiet trains.
    pub gap: Duration,
    /// Number of segments of the train; 0 without quiet trains.
    pub train: u32,
    /// True if the connection is paced: see [`Path::always`](crate::Path::always).
    pub paced: bool,
    /// Coefficient of variation of the last RTTs.
    pub cov: f64,
    /// Number of RTT samples taken. With quiet trains: number of the samples that counted.
    pub samples: u64,
    /// h, number of hops to the other end; 0 before the first RTT sample.
    pub hops: u32,
    /// b, data rate of the channel.
    pub channel: Rate,
    /// Payload of a full segment, bytes.
    pub payload: u32,
    /// Ceiling of the pacing rate, bytes/s. With quiet trains: the rate that gave the last wait.
    pub rate: u32,
}

/// Size of the programs' `struct report`.
const REPORT: usize = 104;
/// Binary digits of `cov` after the point.
const COV_DIGITS: i32 = 20;

impl Connection {
    /// Reads all connections from the output of the pinned iterator. An incomplete report at the
    /// end is ignored.
    pub fn decode(bytes: &[u8]) -> Vec<Connection> {
        bytes.chunks_exact(REPORT).map(Connection::decode_one).collect()
    }

    fn decode_one(bytes: &[u8]) -> Connection {
        let array = |at: usize| -> [u8; 16] { *bytes[at..].first_chunk().expect("a whole report") };
        let long = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("a whole report"));
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a whole report"));
        let short = |at: usize| *bytes[at..].first_chunk::<2>().expect("a whole report");
        let end = |at: usize, port: u16| {
            let address = IpAddr::from(array(at)).to_canonical();
            SocketAddr::new(address, port)
        };
        Connection {
            local: end(0, u16::from_ne_bytes(short(100))),
            remote: end(16, u16::from_be_bytes(short(102))),
            interval: Duration(long(32)),
            delay: Duration(long(40)),
            samples: long(48),
            channel: Rate::from_bps(long(56)),
            gap: Duration(long(64)),
            namespace: word(72),
            cov: f64::from(word(76)) / 2f64.powi(COV_DIGITS),
            hops: word(80),
            payload: word(84),
            rate: word(88),
            train: word(92),
            paced: word(96) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let mut bytes = vec![0; REPORT + 5];
        bytes[10..16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        bytes[16] = 0xfd;
        bytes[31] = 7;
        bytes[32..40].copy_from_slice(&5_000_000u64.to_ne_bytes());
        bytes[76..80].copy_from_slice(&(1u32 << 19).to_ne_bytes());
        bytes[80..84].copy_from_slice(&4u32.to_ne_bytes());
        bytes[100..102].copy_from_slice(&4711u16.to_ne_bytes());
        bytes[102..104].copy_from_slice(&80u16.to_be_bytes());
        let connections = Connection::decode(&bytes);
        assert_eq!(connections.len(), 1, "the unfinished one is left out");
        let one = &connections[0];
        assert_eq!((one.local.to_string(), one.remote.to_string()), ("10.0.0.1:4711".into(), "[fd00::7]:80".into()));
        assert_eq!((one.interval, one.cov, one.hops), (Duration::from_millis(5), 0.5, 4));
    }
}
