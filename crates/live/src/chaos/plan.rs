//! Plan of a run: everything about the two ends, the wire between them and the faults, derived from
//! one seed.
//!
//! Faults are scheduled. Consecutive seeds go through every fault at every moment of the protocol
//! at which it makes sense (`faults::cells`), so that rare combinations are tested as often as
//! others. If a moment needs another fault in order to occur, that fault is scheduled as well.

use super::faults::{Fault, Moment, Mood, Protected, cells};
use crate::tpa::{Options, Security};
use crate::tunnel::session::{MOST, QUEUE};
use crate::tunnel::{self, Class};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_session::handshake::{InnerTransport, Terms};
use meshpace_session::path::Fixed;
use meshpace_session::settings::{Limits, Settings};
use meshpace_transport::tpa::{self, ack};
use meshpace_transport::{PathInfo, train};
use std::sync::Arc;

/// Bytes before the content of a flow's datagram: the name of flow and direction, and the
/// datagram's number.
pub(crate) const HEAD: usize = 16;

/// Subject of a run: one connection, or a session of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One connection with this inner transport, which carries one stream.
    Stream(InnerTransport),
    /// A session of a tunnel with many streams, whose bulk carrier has this inner transport.
    Tunnel(InnerTransport),
}

/// A scheduled fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aim {
    /// Moment at which the fault occurs.
    pub moment: Moment,
    /// The fault.
    pub fault: Fault,
    /// Number of datagrams at this moment before the fault occurs.
    pub after: u32,
}

/// Data that the application of an end, or of a stream at one end, writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Habits {
    /// Times, in order, with the total number of bytes that may have been written by then.
    pub bursts: Vec<(Time, u64)>,
}

impl Habits {
    /// Returns the same habits, but with at most `most` bytes in total.
    pub fn at_most(&self, most: u64) -> Habits {
        Habits { bursts: self.bursts.iter().map(|(at, bytes)| (*at, most.min(*bytes))).collect() }
    }

    /// Total number of bytes that are written.
    pub fn all(&self) -> u64 {
        self.bursts.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Number of bytes that may have been written by `now`.
    pub fn by(&self, now: Time) -> u64 {
        self.bursts.iter().rev().find(|(at, _)| *at <= now).map_or(0, |(_, bytes)| *bytes)
    }

    /// Time of the next write after `now`; [`Time::NEVER`] if there is none.
    pub fn after(&self, now: Time) -> Time {
        self.bursts.iter().map(|(at, _)| *at).find(|at| *at > now).unwrap_or(Time::NEVER)
    }
}

/// Plan of a tunnel's stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamPlan {
    /// Time at which the stream is opened.
    pub at: Time,
    /// Data that the connecting end writes, and data that the accepting end writes.
    pub habits: [Habits; 2],
    /// The end that resets the stream, and the number of bytes that it has read before. `None` if
    /// neither resets it.
    pub breaks: Option<(usize, u64)>,
}

/// Datagrams that are sent at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// Time of sending.
    pub at: Time,
    /// Number of datagrams.
    pub count: u64,
    /// Length of each datagram in bytes.
    pub length: usize,
}

/// Plan of a tunnel's flow of datagrams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowPlan {
    /// Time at which the flow is opened.
    pub at: Time,
    /// Rule for datagrams that wait to be sent.
    pub class: Class,
    /// Datagrams of the connecting end, and those of the accepting end, in order of time.
    pub bursts: [Vec<Burst>; 2],
    /// The end that leaves the flow, the number of datagrams it has received before, and its code.
    /// `None` if neither leaves it.
    pub leaves: Option<(usize, u64, u8)>,
}

impl FlowPlan {
    /// Time at which an end sends the datagram of this number, and its length in bytes. `None`
    /// after the last datagram.
    pub fn datagram(&self, end: usize, number: u64) -> Option<(Time, usize)> {
        let mut before = 0;
        let burst = self.bursts[end].iter().find(|burst| {
            before += burst.count;
            number < before
        });
        burst.map(|burst| (burst.at, burst.length))
    }
}

/// Plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed from which the plan is derived.
    pub seed: u64,
    /// Subject of the run: one connection, or a session of a tunnel.
    pub kind: Kind,
    /// Kinds of faults that are allowed.
    pub mood: Mood,
    /// Settings of the opening end and of the listening end. They differ in the keys, in the use of
    /// AES, and in whether BBR is requested.
    pub settings: [Settings; 2],
    /// Data that each end writes, if the connection carries one stream.
    pub habits: [Habits; 2],
    /// Streams of a tunnel.
    pub streams: Vec<StreamPlan>,
    /// Flows of datagrams of a tunnel.
    pub flows: Vec<FlowPlan>,
    /// Time until which the wire is hostile.
    pub hostile_until: Time,
    /// Probability that the hostile wire loses a datagram.
    pub loss: f64,
    /// Probability that the hostile wire duplicates a datagram.
    pub doubling: f64,
    /// Delay of a datagram.
    pub delay: Duration,
    /// Largest additional delay on the hostile wire.
    pub jitter: Duration,
    /// True if an observer sends false error messages about every datagram.
    pub observed: bool,
    /// Scheduled faults.
    pub aims: Vec<Aim>,
}

/// Random stream of a run. The streams of different indexes are independent.
pub fn stream(seed: u64, index: u64) -> Rng {
    Rng::stream(seed, Purpose::Test, 1000 + index)
}

fn milliseconds(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration((rng.uniform_in(least, most) * 1e6) as u64)
}

/// Fault that makes a moment occur, with the moment at which that fault is scheduled. `None` if the
/// moment occurs without a fault.
fn aid(moment: Moment) -> Option<(Moment, Fault)> {
    Some(match moment {
        Moment::Refusal => (Moment::Request, Fault::Unlisten),
        Moment::Stray => (Moment::Data, Fault::CrashPeer),
        Moment::Gap => (Moment::Data, Fault::Drop),
        Moment::ZeroWindow => (Moment::Data, Fault::SlowReader),
        Moment::Path => (Moment::Data, Fault::Move),
        Moment::Reset => (Moment::Data, Fault::Abort),
        Moment::Late => (Moment::End, Fault::Drop),
        _ => return None,
    })
}

impl Plan {
    /// Derives the plan of `seed`.
    pub fn of(seed: u64) -> Plan {
        let mut rng = stream(seed, 0);
        let rng = &mut rng;
        let count = cells().count() as u64;
        let (moment, fault) = cells().nth((seed % count) as usize).unwrap_or((Moment::Data, Fault::Drop));
        let aid = aid(moment);
        // Security and mood are drawn again until they allow the scheduled faults.
        let needs_seal = matches!(moment, Moment::LastOfKey | Moment::FirstOfKey | Moment::Path);
        let (security, protected, mood) = loop {
            let (security, protected) = protection(rng);
            let mood = [Mood::Weather, Mood::Weather, Mood::Observer, Mood::Rough][rng.below(4) as usize];
            let has_room = aid.into_iter().chain([(moment, fault)]).all(|(at, what)| what.may(at, mood, protected));
            if has_room && (protected.sealed || (mood != Mood::Observer && !needs_seal)) {
                break (security, protected, mood);
            }
        };
        let kind = match rng.below(8) {
            0 | 1 if !moment.is_of_tunnel() => Kind::Stream(InnerTransport::Tpa),
            2 | 3 if !moment.is_of_tunnel() => Kind::Stream(InnerTransport::Trains),
            4 if !moment.is_of_tunnel() => Kind::Stream(InnerTransport::Bbr),
            5 => Kind::Tunnel(InnerTransport::Bbr),
            _ => Kind::Tunnel(InnerTransport::Trains),
        };
        let settings = settings(rng, kind, mood, security);
        let hostile_until = Time((rng.uniform_in(20.0, 60.0) * 1e9) as u64);
        let last = hostile_until.0;
        let rests = moment == Moment::Question;
        let most = match kind {
            Kind::Stream(InnerTransport::Tpa) => 80_000,
            // Quiet trains send a segment in less than a round trip, which is at most 160 ms. The
            // limit therefore ensures that no run takes longer than its time limits. The segments
            // are no longer than the listener agrees to, and three blocks of them fit into the
            // listener's buffer.
            Kind::Stream(InnerTransport::Trains) => 200_000.min(1000 * u64::from(agreed_segment(&settings[1]))),
            Kind::Stream(InnerTransport::Bbr) | Kind::Tunnel(_) => 200_000,
        };
        let habits = [0, 1].map(|_| habits(rng, 0, last, most, rests));
        let streams = if matches!(kind, Kind::Tunnel(_)) { streams(rng, last) } else { Vec::new() };
        // Flows have their own random stream, so that runs of a seed with and without flows have
        // the same streams.
        let flows = if matches!(kind, Kind::Tunnel(_)) { flows(&mut stream(seed, 3), last) } else { Vec::new() };
        let most_lost = match mood {
            Mood::Weather | Mood::Rough | Mood::Hostile => [0.02, 0.1, 0.3][rng.below(3) as usize],
            Mood::Observer => 0.03,
        };
        let most_late = [1.0, 30.0, 200.0][rng.below(if mood == Mood::Observer { 2 } else { 3 }) as usize];
        let mut aims: Vec<Aim> = Vec::new();
        if let Some((moment, fault)) = aid {
            aims.push(Aim { moment, fault, after: rng.below(6) as u32 });
        }
        // Some moments occur only once or twice in a run, so the fault does not wait for the third
        // occurrence.
        let after = if moment == Moment::Data { rng.below(60) } else { rng.below(3) / 2 };
        aims.push(Aim { moment, fault, after: after as u32 });
        Plan {
            seed,
            kind,
            mood,
            settings,
            habits,
            streams,
            flows,
            hostile_until,
            loss: rng.uniform_in(0.0, most_lost),
            doubling: rng.uniform_in(0.0, 0.1),
            delay: milliseconds(rng, 0.1, 80.0),
            jitter: milliseconds(rng, 0.1, most_late),
            observed: mood == Mood::Observer && protected.sealed && rng.below(2) == 0,
            aims,
        }
    }

    /// Sets the path that the ends are told, if they are told any, to the real path between them.
    pub(crate) fn tell_path(&mut self, hops: u8, rate: Rate) {
        let path = PathInfo { hops, rate, received_power_dbm: None };
        for settings in &mut self.settings {
            if settings.path.is_some() {
                settings.path = Some(Arc::new(Fixed(path)));
            }
        }
    }

    /// Longest time that quiet trains need for everything that an end sends, in segments with
    /// `payload` bytes each. By their control law, a segment is sent at least once per round trip
    /// (docs/quiet-trains.md: I = 1.034 tau if nothing is late, and tau is shorter than the round
    /// trip).
    pub(crate) fn carrying(&self, payload: u64) -> Duration {
        let said = |end: usize| {
            let streams = self.streams.iter().map(|stream| &stream.habits[end]);
            let datagrams =
                self.flows.iter().flat_map(|flow| &flow.bursts[end]).map(|burst| burst.count * burst.length as u64);
            match self.kind {
                Kind::Stream(_) => self.habits[end].all(),
                Kind::Tunnel(_) => streams.map(Habits::all).chain(datagrams).sum(),
            }
        };
        self.delay * 2 * said(0).max(said(1)).div_ceil(payload)
    }

    /// Protection of the run's datagrams.
    pub fn protected(&self) -> Protected {
        let security = &self.settings[0].security;
        Protected { sealed: *security != Security::Plain, known: security.knows_peer() }
    }
}

/// Matching keys of the opening end and of the accepting end.
fn protection(rng: &mut Rng) -> ([Security; 2], Protected) {
    let keys = [[1; 32], [2; 32]];
    let secret = [1 + rng.below(255) as u8; 32];
    let both = |security: Security| [security.clone(), security];
    let (securities, sealed, known) = match rng.below(8) {
        0 | 1 => {
            let [ours, other] = keys.map(|key| Security::public_key(&key));
            let of = |own, peer: [u8; 32]| Security::Keys { own, peers: vec![peer] };
            ([of(keys[0], other), of(keys[1], ours)], true, true)
        }
        2..=4 => (both(Security::Shared(secret)), true, true),
        5 | 6 => (both(Security::Opportunistic), true, false),
        _ => (both(Security::Plain), false, false),
    };
    (securities, Protected { sealed, known })
}

/// Settings of both ends, derived from the options of a connection or of a tunnel.
fn settings(rng: &mut Rng, kind: Kind, mood: Mood, securities: [Security; 2]) -> [Settings; 2] {
    let mut transport = tpa::Config { ack_block_end: true, fin_follows: true, ..tpa::Config::default() };
    transport.congestion.window = 1 + rng.below(12) as u8;
    transport.ack = if rng.below(2) == 0 { ack::Rule::EveryOther } else { ack::Rule::EveryWindow };
    if let Kind::Stream(_) = kind {
        transport.segment = 64 + rng.below(600) as u32;
        transport.block_segments = 1 + rng.below(12) as u8;
    }
    let inner = match kind {
        Kind::Stream(inner) | Kind::Tunnel(inner) => inner,
    };
    let mut options = match kind {
        Kind::Stream(_) => Options::of(transport),
        Kind::Tunnel(_) => tunnel::options(transport),
    };
    let hops = 1 + rng.below(4) as u8;
    options.trains = (inner != InnerTransport::Tpa).then(train::Config::default);
    options.bbr = inner == InnerTransport::Bbr;
    options.takes_tpa = matches!(kind, Kind::Tunnel(_));
    options.path = options.trains.as_ref().map(|_| {
        let path = PathInfo { hops, rate: Rate::from_mbps(2 + rng.below(50)), received_power_dbm: None };
        Arc::new(Fixed(path)) as Arc<_>
    });
    // Longer than the time in which the wire is hostile, plus the same time again for the next
    // retransmission.
    options.connect_timeout = Duration::from_secs(150);
    if let Kind::Stream(_) = kind {
        // The listener agrees to segments of which three blocks fit into its buffer.
        let block = 64 * usize::from(options.transport.block_segments);
        options.receive_buffer = 3 * block + rng.below(16_000) as usize;
        options.send_buffer = 2 * block + rng.below(16_000) as usize;
    }
    let half_open = [8, 16, 1024][rng.below(3) as usize];
    options.limits = Limits { half_open, half_open_per_source: half_open, ..options.limits };
    let mut settings = Settings::clone(&options.service().settings);
    // An end that misses all datagrams of one key in a row loses the connection. The values are
    // large enough that, where the wire can be silent, fewer datagrams are in flight.
    settings.key_life = match (inner, mood) {
        (InnerTransport::Tpa, _) | (_, Mood::Observer) => 6 + rng.below(2) as u32,
        (InnerTransport::Trains, _) => 9,
        (InnerTransport::Bbr, _) => 12,
    };
    if mood == Mood::Weather {
        // Consecutive losses, each of which doubles a timer, may last longer than the silence that
        // a connection tolerates. In this mood all data have to arrive.
        settings.silence_timeout = Duration::from_secs(300);
    }
    let mut theirs = settings.clone();
    theirs.aes = rng.below(2) == 0;
    theirs.beside.bbr = false;
    [settings.security, theirs.security] = securities;
    [settings, theirs]
}

/// Segment size in bytes, including TPA's header, that a listener with these settings agrees to.
fn agreed_segment(listener: &Settings) -> u16 {
    Terms::of(&listener.transport).within(listener.receive_buffer).segment
}

/// Data that an application writes between two times.
fn habits(rng: &mut Rng, first: u64, last: u64, most: u64, rests: bool) -> Habits {
    let count = if rests { 2 } else { 1 + rng.below(6) };
    let mut times: Vec<u64> = (0..count).map(|_| first + rng.below(last.saturating_sub(first))).collect();
    times[0] = first;
    times.sort_unstable();
    if rests {
        // This is longer than a peer may be silent without being probed.
        times[1] = first + 45_000_000_000;
    }
    let mut bytes = 0;
    let bursts = times.into_iter().map(|at| {
        bytes += rng.below(most / count);
        (Time(at), bytes)
    });
    Habits { bursts: bursts.collect() }
}

fn streams(rng: &mut Rng, last: u64) -> Vec<StreamPlan> {
    let count = 2 + rng.below(8);
    let one = |number: u64| {
        let at = if number == 0 { 0 } else { rng.below(last) };
        let most = [2_000, 20_000, 100_000][rng.below(3) as usize];
        let habits = [0, 1].map(|_| habits(rng, at, last.max(at + 1), most, false));
        let breaks = (rng.below(5) == 0).then(|| (rng.below(2) as usize, rng.below(most)));
        StreamPlan { at: Time(at), habits, breaks }
    };
    (0..count).map(one).collect()
}

/// Flows of a tunnel. Half of the runs have none.
fn flows(rng: &mut Rng, last: u64) -> Vec<FlowPlan> {
    let count = if rng.below(2) == 0 { 0 } else { 1 + rng.below(3) };
    let one = |number: u64| {
        let at = if number == 0 { 0 } else { rng.below(last) };
        let life = Duration::from_millis([50, 200, 1000, 10_000][rng.below(4) as usize]);
        let class = [Class::Reliable, Class::Latest, Class::Expiring(life)][rng.below(3) as usize];
        let bursts = [0, 1].map(|_| bursts(rng, at, last.max(at + 1)));
        let leaves = (rng.below(4) == 0).then(|| (rng.below(2) as usize, rng.below(10), rng.below(6) as u8));
        FlowPlan { at: Time(at), class, bursts, leaves }
    };
    (0..count).map(one).collect()
}

/// Datagrams that an end of a flow sends: mostly a few at a time, and occasionally more than may
/// wait.
fn bursts(rng: &mut Rng, first: u64, last: u64) -> Vec<Burst> {
    let mut times: Vec<u64> = (0..rng.below(6)).map(|_| first + rng.below(last - first)).collect();
    times.sort_unstable();
    let one = |at: u64| {
        let (count, length) = match rng.below(16) {
            0 => (MOST as u64 + 100, HEAD + rng.below(16) as usize),
            1 => (1 + QUEUE as u64 / 60_000, 60_000),
            _ => (1 + rng.below(10), HEAD + rng.below(1400) as usize),
        };
        Burst { at: Time(at), count, length }
    };
    times.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::world::LONGEST;
    use meshpace_session::engine::MORE;

    #[test]
    fn trains_are_given_no_more_than_they_can_carry() {
        // By their law a segment leaves at least once in a round trip (docs/quiet-trains.md: I = 1.034 tau where nothing is late, and tau is shorter).
        let round_trip = Duration::from_millis(2 * 80);
        let mut trains = 0;
        for plan in (0..5000).map(Plan::of).filter(|plan| plan.kind == Kind::Stream(InnerTransport::Trains)) {
            let payload = u64::from(agreed_segment(&plan.settings[1])) - u64::from(MORE);
            let most = plan.habits.iter().map(Habits::all).max().unwrap_or(0);
            assert!(round_trip * most.div_ceil(payload) < LONGEST, "seed {}: {most} bytes in {payload}", plan.seed);
            trains += 1;
        }
        assert!(trains > 500, "{trains}");
    }
}
