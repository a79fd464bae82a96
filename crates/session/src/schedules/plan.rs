//! A schedule: all properties of two ends and the wire between them, drawn from one seed.

use crate::path::Fixed;
use crate::security::Security;
use crate::settings::{Limits, Settings, plain};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_transport::tpa::ack;
use meshpace_transport::{PathInfo, train};
use std::sync::Arc;

/// Fault of one of the two ends, given by its index and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mishap {
    /// No fault.
    None,
    /// The process of this end terminates and starts again without telling its peer.
    Restart(usize, Time),
    /// The application of this end drops its connection, whatever has not arrived.
    Abort(usize, Time),
}

/// A schedule of a test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed from which the schedule was drawn.
    pub seed: u64,
    /// Settings of both ends. They are equal except for the keys, the support of AES, and the
    /// request for BBR.
    pub settings: [Settings; 2],
    /// Number of bytes that each end writes. The end that opens the connection is the first.
    pub bytes: [u64; 2],
    /// Time before which each application does not read.
    pub reads_at: [Time; 2],
    /// Time until which the wire is hostile.
    pub hostile_until: Time,
    /// Probability that a hostile wire loses a datagram.
    pub loss: f64,
    /// Probability that a hostile wire duplicates a datagram.
    pub doubling: f64,
    /// Delay of a datagram.
    pub delay: Duration,
    /// Most delay that a hostile wire adds to a datagram.
    pub jitter: Duration,
    /// Start and end of the blackout, during which the wire carries nothing. They are equal if
    /// there is none.
    pub blackout: (Time, Time),
    /// Longest IP packet that the wire carries, bytes.
    pub mtu: usize,
    /// Probability that a datagram is followed by one that its sender did not send.
    pub forging: f64,
    /// True if strangers request connections and do not finish the handshakes.
    pub strangers: bool,
    pub mishap: Mishap,
}

/// A random stream of a schedule. Drawing from one stream does not change another.
pub fn stream(seed: u64, index: u64) -> Rng {
    Rng::stream(seed, Purpose::Test, index)
}

fn seconds(rng: &mut Rng, most: f64) -> Time {
    Time((rng.uniform_in(0.0, most) * 1e9) as u64)
}

fn milliseconds(rng: &mut Rng, most: f64) -> Duration {
    Duration((rng.uniform_in(0.1, most) * 1e6) as u64)
}

impl Plan {
    /// The schedule of `seed`.
    pub fn of(seed: u64) -> Plan {
        let mut rng = stream(seed, 0);
        let rng = &mut rng;
        let narrow = rng.below(12) == 0;
        let mut settings = settings(rng, narrow);
        settings[0].beside.bbr = settings[0].trains.is_some() && stream(seed, 9).below(2) == 0;
        let most = if rng.below(16) == 0 { 20_000 } else { 3000 };
        let bytes = [rng.below(most), if rng.below(3) == 0 { 0 } else { rng.below(most) }];
        let reads_at = [0, 1].map(|_| if rng.below(4) == 0 { seconds(rng, 20.0) } else { Time::ZERO });
        let hostile_until = seconds(rng, 30.0);
        // If segments have to become smaller, an end learns this from losses. Other losses must
        // therefore be few.
        let most_lost = if narrow { 0.1 } else { [0.05, 0.2, 0.5][rng.below(3) as usize] };
        let loss = rng.uniform_in(0.0, most_lost);
        let doubling = rng.uniform_in(0.0, 0.2);
        let most_late = [1.0, 30.0, 300.0][rng.below(3) as usize];
        let (delay, jitter) = (milliseconds(rng, 50.0), milliseconds(rng, most_late));
        let latest = [1.0, 10.0][rng.below(2) as usize];
        let start = seconds(rng, latest);
        let blackout =
            if rng.below(4) == 0 { (start, start + Duration::from_secs(1 + rng.below(9))) } else { (start, start) };
        let forging = if rng.below(2) == 0 { rng.uniform_in(0.0, 0.3) } else { 0.0 };
        let latest = [0.5, 5.0][rng.below(2) as usize];
        let (end, at) = (rng.below(2) as usize, seconds(rng, latest));
        let mishap = match rng.below(8) {
            0 => Mishap::Restart(end, at),
            1 => Mishap::Abort(end, at),
            _ => Mishap::None,
        };
        Plan {
            seed,
            settings,
            bytes,
            reads_at,
            hostile_until,
            loss,
            doubling,
            delay,
            jitter,
            blackout,
            mtu: if narrow { [600, 1300][rng.below(2) as usize] } else { 1500 },
            forging,
            strangers: rng.below(4) == 0,
            mishap,
        }
    }

    /// True if datagrams are encrypted.
    pub fn is_sealed(&self) -> bool {
        self.settings[0].security != Security::Plain
    }

    /// True if everything must arrive in the end. This is not certain if strangers compete for very
    /// few places of unfinished handshakes: a handshake may then lose its place when its peer
    /// already considers it finished.
    pub fn is_to_arrive(&self) -> bool {
        self.mishap == Mishap::None && !(self.strangers && self.settings[1].limits.half_open < 4)
    }
}

/// Draws the settings of both ends: the same transport, and keys that match. Segments are long if
/// the path is `narrow`.
fn settings(rng: &mut Rng, narrow: bool) -> [Settings; 2] {
    let mut settings = plain();
    let transport = &mut settings.transport;
    transport.segment = if narrow { 1400 } else { 64 + rng.below(337) as u32 };
    transport.block_segments = 1 + rng.below(12) as u8;
    transport.congestion.window = 1 + rng.below(12) as u8;
    transport.ack = if rng.below(2) == 0 { ack::Rule::EveryOther } else { ack::Rule::EveryWindow };
    if rng.below(8) == 0 {
        let path = PathInfo { hops: 1 + rng.below(4) as u8, rate: Rate::from_mbps(2), received_power_dbm: None };
        settings.trains = Some(train::Config::default());
        settings.path = Some(Arc::new(Fixed(path)));
    }
    // The listener asks for segments so small that three blocks fit into its buffer.
    let least = 3 * 64 * usize::from(settings.transport.block_segments);
    settings.receive_buffer = least + rng.below(8000) as usize;
    settings.send_buffer = 64 + rng.below(8000) as usize;
    // A key serves at least 64 datagrams, because an end that misses that many in a row loses the
    // connection.
    settings.key_life = 6 + rng.below(3) as u32;
    // Longer than the wire is hostile, plus the same time for the next retransmission of the
    // request.
    settings.connect_timeout = Duration::from_secs(120);
    if rng.below(4) == 0 {
        settings.limits = Limits { half_open: 2, half_open_per_source: 2, ..settings.limits };
    }
    let mut theirs = settings.clone();
    theirs.aes = rng.below(2) == 0;
    let secret = [rng.below(256) as u8; 32];
    (settings.security, theirs.security) = match rng.below(8) {
        0 => {
            let keys = [[1; 32], [2; 32]];
            let [ours, other] = keys.map(|key| Security::public_key(&key));
            let known = |own, peer: [u8; 32]| Security::Keys { own, peers: vec![peer] };
            (known(keys[0], other), known(keys[1], ours))
        }
        1 => (Security::Shared(secret), Security::Shared(secret)),
        2 => (Security::Opportunistic, Security::Opportunistic),
        _ => (Security::Plain, Security::Plain),
    };
    [settings, theirs]
}
