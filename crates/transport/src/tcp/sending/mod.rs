//! The sending half: sends what the window and the pacing allow, repairs losses, ends with a FIN.
//!
//! RFC 5681/6582 for recovery, RFC 6298 for the timer, with the departures named in `recovery`, `rtt` and `window`. An idle
//! connection starts again with one segment (RFC 5681, section 4.1; one segment as in ns-2). There is no Nagle algorithm: what is
//! written leaves as the window allows. The head of each file of this folder says which part it has.

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

/// A host probes a closed window at least so often: a peer that answers is kept (RFC 9293, section 3.8.6.1), and one lost answer
/// in [`PATIENCE`], or a few, do not make it look like one that is gone.
const PROBE_INTERVAL: Duration = Duration(PATIENCE.0 / 10);

/// State of this half of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The handshake is not over.
    Opening,
    /// Data may flow.
    Established,
    /// Everything is acknowledged, the FIN included.
    Finished,
}

/// A segment that leaves before all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urgent {
    /// Nothing does.
    Nothing,
    /// The first missing segment is sent again.
    Retransmission,
    /// The peer's closed window is probed.
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
    /// Time at which something was last sent or acknowledged, for the idle restart.
    active_at: Time,
}

impl Sender {
    /// Nothing written yet.
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

    /// Takes the agreement of the two SYNs' options: payload bytes of a full segment, time stamps, selective acknowledgements.
    /// To be told before the handshake is over.
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

    /// The SYN leaves. Returns what it says of congestion marks.
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

    /// The handshake is over: the peer takes `peer_window` bytes. Our SYN or SYN-ACK was sent `times` times, and first at
    /// `sent_at` if the answer is to be timed.
    pub fn establish(&mut self, shared: &mut Shared, peer_window: u32, times: u32, sent_at: Option<Time>) {
        self.state = State::Established;
        self.flight.set_peer_window(peer_window);
        self.active_at = shared.now;
        shared.timers.stop(Timer::Retransmission);
        // A SYN that was lost is a sign of congestion: start with one segment (RFC 5681, section 3.1).
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

    /// The application always has more.
    pub fn write_endless(&mut self, now: Time) {
        self.write(now, ENDLESS);
    }

    /// The application will write no more.
    pub fn close(&mut self) {
        self.flight.close();
        self.recovery.lift_allowance();
    }

    /// The path is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        if path.rate == Rate(0) {
            return;
        }
        self.path = path;
        self.pacer.on_path(&path);
        self.window.on_hops(path.hops);
    }

    /// A frame of the peer arrived, received with this power by the radio.
    pub fn on_frame(&mut self, power_dbm: Option<f32>) {
        self.pacer.on_frame(power_dbm);
    }

    /// Timers may be due.
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
            // The first segment leaves at once; a closed peer window does not stop it.
            self.urgent = Urgent::Retransmission;
            self.restart_timer(shared);
        } else if self.flight.has_released() {
            // Released by the window and not sent: the released agent has dropped it from its FIFO or has stopped its
            // timer. ns-2's retransmission timer, which runs without outstanding data too, is what frees it: it starts
            // over with one segment and counts no loss.
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

    /// The next segment that may leave; what it acknowledges is for the caller to say.
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
                // Go-back-N starts with it.
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
        // A sequence number before the window makes the receiver answer with its window (RFC 9293, 3.8.6.1).
        Some(bare(now, self.flight.una().wrapping_sub(1), Flags::ACK))
    }

    /// Sends segment `number`, unless it has been acknowledged meanwhile.
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

    /// After everything else: sets the timers of what waits.
    pub fn settle(&mut self, shared: &mut Shared) {
        match self.state {
            // A free-running timer has started with the SYN.
            State::Opening => return shared.timers.set(Timer::Pacing, self.pacer.wakeup(shared.now, || false)),
            State::Finished => return shared.timers.stop(Timer::Pacing),
            State::Established => {}
        }
        // Without outstanding data the timer serves as persist timer, and frees what a FIFO holds or has dropped.
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

    /// The time after which a SYN is sent again.
    pub fn rto(&self) -> Duration {
        self.timing.rtt.rto()
    }

    /// True if data waits for its turn, of which nothing has been sent yet: the ACK of the handshake rides on it.
    pub fn begins(&self) -> bool {
        self.flight.highest() == 0 && self.flight.has_data() && !self.flight.blocked_by_peer()
    }

    /// True if an answer of the peer is awaited: to data, to a FIN or to a probe.
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

    /// Where each byte of the stream stands.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// The congestion window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The retransmission timer's estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.timing.rtt
    }

    /// The pacing.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

/// The segments that window and recovery allow, as the pacing sees them.
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

/// A segment without payload that acknowledges nothing yet.
pub fn bare(now: Time, seq: u64, flags: Flags) -> Segment {
    Segment { seq, ts_val: stamp(now), flags, ..Segment::default() }
}
