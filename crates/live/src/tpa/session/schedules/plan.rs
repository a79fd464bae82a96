//! A schedule: everything about two ends and the wire between them, drawn from one seed.

use crate::tpa::session::path::Fixed;
use crate::tpa::session::security::Security;
use crate::tpa::session::settings::{Limits, Settings, tests};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_transport::tpa::ack;
use meshpace_transport::{PathInfo, train};
use std::sync::Arc;

/// Mishap of one of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mishap {
    /// Nothing.
    None,
    /// Its process ends and begins anew, without a word.
    Restart(usize, Time),
    /// Its application lets go of its connection, whatever has not arrived.
    Abort(usize, Time),
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed that it was drawn from.
    pub seed: u64,
    /// Settings of both ends, equal but for the keys of each.
    pub settings: [Settings; 2],
    /// Bytes that each end writes, who opens first.
    pub bytes: [u64; 2],
    /// Until when each application does not read.
    pub reads_at: [Time; 2],
    /// Until when the wire is hostile.
    pub hostile_until: Time,
    /// Probability that a hostile wire loses a datagram, and that it doubles one.
    pub loss: f64,
    pub doubling: f64,
    /// Delay of a datagram, and the most that a hostile wire adds to it.
    pub delay: Duration,
    pub jitter: Duration,
    /// When the wire carries nothing.
    pub blackout: (Time, Time),
    /// The longest IP packet that the wire carries, bytes.
    pub mtu: usize,
    /// Probability that a datagram is followed by one that its sender did not send.
    pub forging: f64,
    /// True if strangers open connections that they do not finish.
    pub strangers: bool,
    pub mishap: Mishap,
}

/// A random stream of a schedule; what is drawn from one does not change another.
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
        // Where segments have to become smaller, loss is what it is told by.
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

    /// True if everything has to arrive in the end. Where strangers take the few places there are, a handshake may have to give way when
    /// its peer takes it for finished.
    pub fn is_to_arrive(&self) -> bool {
        self.mishap == Mishap::None && !(self.strangers && self.settings[1].limits.half_open < 4)
    }
}

/// Settings of both ends: the same transport, and keys that fit. Long segments where the path is `narrow`.
fn settings(rng: &mut Rng, narrow: bool) -> [Settings; 2] {
    let mut settings = tests::plain();
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
    // Whoever listens asks for segments of which three blocks fit.
    let least = 3 * 64 * usize::from(settings.transport.block_segments);
    settings.receive_buffer = least + rng.below(8000) as usize;
    settings.send_buffer = 64 + rng.below(8000) as usize;
    // A key for 64 datagrams at the least: who misses as many in a row has lost the connection.
    settings.key_life = 6 + rng.below(3) as u32;
    // Longer than the wire is hostile for, with as much again for the next repetition.
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
