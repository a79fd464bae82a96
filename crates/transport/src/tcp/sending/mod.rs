//! The sending half: it sends what the window and the pacing allow, repairs losses and ends with a
//! FIN.
//!
//! RFC 5681/6582 for recovery and RFC 6298 for the timer, with the departures that `recovery`,
//! `rtt` and `window` name. An idle connection starts again with one segment (RFC 5681, section
//! 4.1; one segment as in ns-2). There is no Nagle algorithm: written data leaves as soon as the
//! window allows. The head of each file of this folder says what it contains.

mod acknowledged;
mod timing;

use super::flight::Flight;
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::segment::{Extension, Segment, stamp};
use super::timers::{Shared, Timer};
use super::window::Window;
use super::{Config, Profile, ecn};
use crate::closing::PATIENCE;
use crate::flags::Flags;
use crate::pacing::{Pacer, Release, Supply};
use crate::path::{ENDLESS, PathInfo};
use meshpace_core::{Duration, Rate, Time};
use timing::Timing;

/// Longest interval between two probes of a closed window by a host. A peer that answers is kept
/// (RFC 9293, section 3.8.6.1). With this interval a few lost answers within [`PATIENCE`] do not
/// make the peer look dead.
const PROBE_INTERVAL: Duration = Duration(PATIENCE.0 / 10);

/// State of this half of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The handshake is not complete.
    Opening,
    /// Data may flow.
    Established,
    /// Everything is acknowledged, the FIN included.
    Finished,
}

/// A segment that leaves before all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urgent {
    /// No segment has precedence.
    Nothing,
    /// The first missing segment, which is sent again.
    Retransmission,
    /// A probe of the peer's closed window.
    Probe,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    state: State,
    flight: Flight,
    window: Window,
    recovery: Recovery,
    timing: Timing,
    pacer: Pacer,
    marks: ecn::Reaction,
    path: PathInfo,
    urgent: Urgent,
    /// Time at which a segment was last sent or acknowledged, for the restart after idle time.
    active_at: Time,
}

impl Sender {
    /// Creates a sender to which nothing has been written.
    pub fn new(config: &Config) -> Sender {
        let window = config.window.build(config.max_window, config.initial_ssthresh.unwrap_or(u32::MAX));
        let window = match config.byte_counting {
            Some(limit) => window.counting_bytes(limit),
            None => window,
        };
        let capacity = window.limit().min(256) as usize + 2;
        Sender {
            state: State::Opening,
            flight: Flight::new(config.segment, capacity),
            window,
            recovery: Recovery::new(config.sack, config.limited_transmit),
            timing: Timing::new(&config.rto),
            pacer: Pacer::new(&config.pacing, config.segment),
            marks: ecn::Reaction::new(config.ecn),
            path: PathInfo::UNKNOWN,
            urgent: Urgent::Nothing,
            active_at: Time::ZERO,
            config: config.clone(),
        }
    }

    /// Takes the agreement of the options of both SYNs: payload bytes of a full segment, time
    /// stamps, selective acknowledgements. To be called before the handshake is over.
    pub fn agree(&mut self, shared: &mut Shared, segment: u32, timestamps: bool, sack: bool) {
        if self.config.sack && !sack {
            self.config.sack = false;
            self.recovery = Recovery::new(false, self.config.limited_transmit);
        }
        self.timing.agree(timestamps);
        if segment < self.config.segment {
            self.config.segment = segment;
            self.flight.set_segment(segment);
            self.pacer = Pacer::new(&self.config.pacing, segment);
            self.pacer.on_path(&self.path);
            self.pacer.on_open(shared.now, &mut shared.stats);
        }
    }

    /// The SYN leaves. Returns the flags by which the SYN asks for ECN.
    pub fn on_syn(&mut self, shared: &mut Shared) -> Flags {
        self.active_at = shared.now;
        self.pacer.on_open(shared.now, &mut shared.stats);
        self.config.ecn.syn_flags()
    }

    fn is_host(&self) -> bool {
        self.config.profile == Profile::Host
    }

    /// The SYN has not been answered in time.
    pub fn on_syn_timeout(&mut self) {
        self.window.on_timeout(0);
        self.timing.rtt.on_timeout();
        self.pacer.on_timeout();
    }

    /// The handshake is over, and the peer's window is `peer_window` bytes. Our SYN or SYN-ACK was
    /// sent `times` times. `sent_at` is the time of its first transmission if the answer is to be
    /// an RTT sample.
    pub fn establish(&mut self, shared: &mut Shared, peer_window: u32, times: u32, sent_at: Option<Time>) {
        self.state = State::Established;
        self.flight.set_peer_window(peer_window);
        self.active_at = shared.now;
        shared.timers.stop(Timer::Retransmission);
        // A lost SYN is a sign of congestion, so the window starts with one segment (RFC 5681,
        // section 3.1).
        self.window.restart(if times > 1 { 1 } else { self.config.initial_window });
        if times > 1 && self.is_host() {
            self.timing.rtt.on_lost_syn();
        } else if let Some(sent_at) = sent_at.filter(|_| times == 1) {
            self.timing.on_handshake(sent_at, shared.now);
        }
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if !self.flight.is_open() || bytes == 0 {
            return;
        }
        let idle = !self.flight.outstanding() && self.flight.is_all_segmented() && self.state == State::Established;
        if idle && now.since(self.active_at) > self.timing.rtt.rto() {
            self.window.restart(1);
        }
        self.flight.write(bytes);
        self.recovery.lift_allowance();
    }

    /// The application always has more to send.
    pub fn write_endless(&mut self, now: Time) {
        self.write(now, ENDLESS);
    }

    /// The application will write no more.
    pub fn close(&mut self) {
        self.flight.close();
        self.recovery.lift_allowance();
    }

    /// The path to the peer has become known or has changed. A path with rate 0 is ignored.
    pub fn on_path(&mut self, path: PathInfo) {
        if path.rate == Rate(0) {
            return;
        }
        self.path = path;
        self.pacer.on_path(&path);
        self.window.on_hops(path.hops);
    }

    /// A frame of the peer arrived with this power in dBm; `None` if the radio does not report it.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        self.pacer.on_frame(power_dbm);
    }

    /// Handles the timers of pacing and retransmission if they are due.
    pub fn on_timer(&mut self, shared: &mut Shared) {
        self.pacer.on_timer(shared.now, &mut shared.stats);
        if shared.timers.is_due(Timer::Retransmission, shared.now) {
            shared.timers.stop(Timer::Retransmission);
            self.on_retransmission_timer(shared);
        }
    }

    fn on_retransmission_timer(&mut self, shared: &mut Shared) {
        if self.state != State::Established {
            return;
        }
        if self.flight.outstanding() {
            shared.stats.timeouts += 1;
            let keeps_duplicates = self.pacer.on_timeout();
            self.recovery.on_timeout(&mut self.flight, !keeps_duplicates, &mut self.window);
            self.timing.rtt.on_timeout();
            self.timing.forget();
            self.marks.on_reduction(self.flight.sent_end());
            self.flight.go_back();
            // The first segment leaves at once, even if the peer's window is closed.
            self.urgent = Urgent::Retransmission;
            self.restart_timer(shared);
        } else if self.flight.has_released() {
            // The window has released segments that were not sent: the agent that the authors of
            // TCP-AP released has dropped them from its FIFO or has stopped its timer. In ns-2 the
            // retransmission timer also runs without outstanding data, and its expiry ends this
            // state. It starts over with one segment and counts no loss.
            self.window.restart(1);
            self.flight.go_back();
            self.pacer.on_timeout();
            self.recovery.lift_allowance();
        } else if self.flight.blocked_by_peer() {
            self.timing.rtt.on_timeout();
            self.urgent = Urgent::Probe;
            self.restart_timer(shared);
        }
    }

    /// The next segment that may leave. The caller fills in the acknowledgement.
    pub fn next_segment(&mut self, shared: &mut Shared) -> Option<Segment> {
        if self.state != State::Established {
            return None;
        }
        let segment = self.next_of_window(shared).or_else(|| self.next_probe(shared.now));
        if segment.is_some() {
            self.active_at = shared.now;
        }
        segment
    }

    fn next_of_window(&mut self, shared: &mut Shared) -> Option<Segment> {
        let now = shared.now;
        if self.urgent == Urgent::Retransmission && self.pacer.release_again(now) == Release::Now {
            self.urgent = Urgent::Nothing;
            let first = self.flight.first();
            if self.flight.next() == first {
                // Go-back-N starts with the segment that is sent here, so the window does not
                // release it again.
                self.flight.skip();
                self.recovery.spend_allowance();
            }
            if let Some(segment) = self.send(shared, first) {
                return Some(segment);
            }
        }
        loop {
            let mut allowed =
                Allowed { flight: &mut self.flight, recovery: &mut self.recovery, window: &self.window, now };
            let number = self.pacer.next(now, &mut allowed, &mut shared.stats)?;
            if let Some(segment) = self.send(shared, number) {
                return Some(segment);
            }
        }
    }

    fn next_probe(&mut self, now: Time) -> Option<Segment> {
        if self.urgent != Urgent::Probe {
            return None;
        }
        self.urgent = Urgent::Nothing;
        // A sequence number before the window makes the receiver answer with its window (RFC 9293,
        // 3.8.6.1).
        Some(bare(now, self.flight.una().wrapping_sub(1), Flags::ACK))
    }

    /// Sends segment `number`; `None` if it has been acknowledged meanwhile.
    fn send(&mut self, shared: &mut Shared, number: u64) -> Option<Segment> {
        let idle = !self.flight.outstanding();
        let (cut, again) = self.flight.on_sent(shared.now, number)?;
        if cut.payload > 0 {
            shared.stats.segments_sent += 1;
            shared.stats.retransmissions += u64::from(again);
        }
        if !again {
            self.timing.on_sent(number, shared.now);
        }
        if idle || !shared.timers.runs(Timer::Retransmission) {
            self.restart_timer(shared);
        }
        self.pacer.on_sent(shared.now, &mut shared.stats);
        let mut flags = if cut.fin { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        let mut extension = Extension::None;
        if self.marks.is_on() && !again && cut.payload > 0 {
            extension = Extension::EcnCapable;
            flags = flags.with(self.marks.data_flags());
        }
        Some(Segment { payload: cut.payload, extension, ..bare(shared.now, cut.offset, flags) })
    }

    /// Sets the timers for everything that waits. To be called after all other changes of the
    /// state.
    pub fn settle(&mut self, shared: &mut Shared) {
        match self.state {
            // A free-running pacing timer has started with the SYN.
            State::Opening => return shared.timers.set(Timer::Pacing, self.pacer.wakeup(shared.now, || false)),
            State::Finished => return shared.timers.stop(Timer::Pacing),
            State::Established => {}
        }
        // Without outstanding data the retransmission timer is the persist timer. It also recovers
        // segments that a pacing FIFO holds or has dropped.
        if !shared.timers.runs(Timer::Retransmission) && (self.flight.has_released() || self.flight.blocked_by_peer()) {
            self.restart_timer(shared);
        }
        let waits = || self.urgent == Urgent::Retransmission || self.recovery.wants_to_send(&self.flight, &self.window);
        shared.timers.set(Timer::Pacing, self.pacer.wakeup(shared.now, waits));
    }

    fn restart_timer(&self, shared: &mut Shared) {
        let rto = self.timing.rtt.rto();
        let probes = self.is_host() && self.flight.blocked_by_peer();
        let after = if probes { rto.min(PROBE_INTERVAL) } else { rto };
        shared.timers.set(Timer::Retransmission, shared.now.saturating_add(after));
    }

    /// The current RTO, after which a SYN is sent again.
    pub fn rto(&self) -> Duration {
        self.timing.rtt.rto()
    }

    /// True if the first segment of the stream is about to leave. It carries the ACK of the
    /// handshake.
    pub fn begins(&self) -> bool {
        self.flight.highest() == 0 && self.flight.has_data() && !self.flight.blocked_by_peer()
    }

    /// True if the peer owes an answer: to data, to a FIN or to a probe.
    pub fn awaits_answer(&self) -> bool {
        self.state == State::Established && (self.flight.outstanding() || self.flight.blocked_by_peer())
    }

    /// True if the handshake has been completed.
    pub fn is_established(&self) -> bool {
        self.state != State::Opening
    }

    /// True if everything is acknowledged, the FIN included.
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// The stream: which part of it was written, sent and acknowledged.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// The congestion window of the sender.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The retransmission timer's estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.timing.rtt
    }

    /// The pacing of the sender.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

/// The segments that window and recovery allow, as a source for the pacing.
struct Allowed<'a> {
    flight: &'a mut Flight,
    recovery: &'a mut Recovery,
    window: &'a Window,
    now: Time,
}

impl Supply for Allowed<'_> {
    fn take(&mut self, spaced: bool) -> Option<u64> {
        self.recovery.take(self.flight, self.window, self.now, spaced)
    }
}

/// Creates a segment without payload and without acknowledgement.
pub fn bare(now: Time, seq: u64, flags: Flags) -> Segment {
    Segment { seq, ts_val: stamp(now), flags, ..Segment::default() }
}
