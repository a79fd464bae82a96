//! Congestion control: limits the outstanding segments to cwnd_max, or to 1 after timeouts or a
//! route failure.
//!
//! TPA, sections 3.3 and 3.5. There is no growth phase. With ELFN there are two abnormal states:
//!
//! - *Congested*: entered after th_CONG timeouts in a row (lost ACKs), left after th_ACK ACKs in a
//!   row.
//! - *Frozen*: entered when the network reports that the route broke, or after th_ROUTE timeouts in
//!   a row if that is more than th_CONG. Left at the ACK for the latest segment sent, or when the
//!   network reports the route as recovered.
//!
//! Without ELFN the two states cannot be told apart and are one: entered after th_ROUTE timeouts in
//! a row, left after th_ACK ACKs in a row.
//!
//! While the sender is frozen, expired timers keep sending segments as probes. Each expiry of a
//! segment *sent while frozen* doubles the RTO. The segments that were sent before, with the window
//! still open, expire together; doubling the RTO at each of them would contradict the trace of
//! appendix B. Where the network reports recovery, the sender is silent until it does. In case that
//! notice is lost, a probe is sent after the longest RTO.

use meshpace_core::parameter::require;
use meshpace_core::{parameters, words};

/// Notices about routes that the network gives to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notices {
    /// No notices, or the sender ignores them.
    None,
    /// Notices of route failures (ELFN).
    Failure,
    /// Notices of route failures and of recovered routes.
    FailureAndRecovery,
}

words! { Notices: "none" = None, "failure" = Failure, "failure-and-recovery" = FailureAndRecovery }

parameters! {
    /// Parameters of the congestion control.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// cwnd_max, largest window in segments
        window: u8 = 2 => whole("segments", 1, 12), Basic, "TPA, table 1: 2 or 3";
        /// notices about routes that the sender receives
        notices: Notices = Notices::None => choice(Notices::WORDS), Expert, "TPA, section 3.5; ELFN";
    }
    others {
        /// th_ROUTE: timeouts in a row that freeze, 1 or more. Default 1 (TPA, table 1). With ELFN it counts only if it is more
        /// than th_CONG.
        route_timeouts: u32 = 1;
        /// th_CONG, with ELFN: timeouts in a row that mean congestion, 1 or more. Default 1 (TPA, section 3.5: at least 1).
        congestion_timeouts: u32 = 1;
        /// th_ACK: ACKs in a row that end it, 1 or more. Default 1 (TPA, table 1).
        acks: u32 = 1;
    }
    also |config| require(config.route_timeouts >= 1, "route_timeouts", config.route_timeouts, "1 or more")
        .and(require(config.congestion_timeouts >= 1, "congestion_timeouts", config.congestion_timeouts, "1 or more"))
        .and(require(config.acks >= 1, "acks", config.acks, "1 or more"));
}

/// State of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Neither congested nor frozen.
    Normal,
    /// Congested; only with ELFN.
    Congested,
    /// Frozen; without ELFN also congested.
    Frozen,
}

/// The congestion control of one sender.
#[derive(Clone, Debug)]
pub struct Congestion {
    config: Config,
    state: State,
    /// Timeouts in a row.
    timeouts: u32,
    /// ACKs in a row.
    acks: u32,
    /// Factor by which the RTO is multiplied.
    backoff: u64,
}

/// Largest factor of the RTO. The RTO itself reaches its upper bound long before.
const MAX_BACKOFF: u64 = 1 << 32;

impl Congestion {
    /// Creates a congestion control in the normal state.
    pub fn new(config: &Config) -> Congestion {
        Congestion { state: State::Normal, timeouts: 0, acks: 0, backoff: 1, config: config.clone() }
    }

    /// The timer of a segment expired; `probe` if the segment was sent while frozen.
    pub fn on_timeout(&mut self, probe: bool) {
        self.timeouts = self.timeouts.saturating_add(1);
        self.acks = 0;
        if probe && self.state == State::Frozen {
            self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        }
        match (self.config.notices, self.state) {
            (Notices::None, _) if self.timeouts >= self.config.route_timeouts => self.state = State::Frozen,
            (Notices::Failure | Notices::FailureAndRecovery, State::Normal)
                if self.timeouts >= self.config.congestion_timeouts =>
            {
                self.state = State::Congested;
            }
            (_, State::Congested)
                if self.config.route_timeouts > self.config.congestion_timeouts
                    && self.timeouts >= self.config.route_timeouts =>
            {
                self.state = State::Frozen;
            }
            _ => {}
        }
    }

    /// An ACK of the current block brought new information; `latest` if the latest segment sent is
    /// acknowledged now. Returns whether a route is available again after a failure.
    pub fn on_ack(&mut self, latest: bool) -> bool {
        self.timeouts = 0;
        self.acks = self.acks.saturating_add(1);
        match self.state {
            State::Normal => false,
            State::Congested => {
                if self.acks >= self.config.acks {
                    self.state = State::Normal;
                }
                false
            }
            State::Frozen => {
                let over = match self.config.notices {
                    Notices::None => self.acks >= self.config.acks,
                    Notices::Failure | Notices::FailureAndRecovery => latest,
                };
                if over {
                    self.thaw();
                }
                over
            }
        }
    }

    /// The network reports that the route broke. Returns whether this freezes the sender.
    pub fn on_route_failure(&mut self) -> bool {
        let heard = self.config.notices != Notices::None && self.state != State::Frozen;
        if heard {
            self.state = State::Frozen;
            self.acks = 0;
        }
        heard
    }

    /// The network reports that the route is back. Returns whether this ends the frozen state.
    pub fn on_route_recovered(&mut self) -> bool {
        let heard = self.config.notices == Notices::FailureAndRecovery && self.state == State::Frozen;
        if heard {
            self.thaw();
        }
        heard
    }

    /// The peer has another address. Segments were sent to the old address, so that their timeouts
    /// say nothing about the path to the new one. Returns whether this ends the congested or frozen
    /// state.
    pub fn on_peer_moved(&mut self) -> bool {
        let was_held = self.state != State::Normal;
        if was_held {
            self.thaw();
        }
        was_held
    }

    fn thaw(&mut self) {
        self.state = State::Normal;
        self.backoff = 1;
        self.timeouts = 0;
    }

    /// Limit of outstanding segments in the current state; `normal` is the limit in the normal
    /// state.
    #[inline]
    pub fn window(&self, normal: u8) -> u8 {
        if self.state == State::Normal { normal } else { 1 }
    }

    /// Current state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Factor by which the RTO is multiplied.
    pub fn backoff(&self) -> u64 {
        self.backoff
    }

    /// True if the sender waits for a notice of recovery instead of probing.
    pub fn is_silent(&self) -> bool {
        self.state == State::Frozen && self.config.notices == Notices::FailureAndRecovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congestion(notices: Notices, route_timeouts: u32, congestion_timeouts: u32, acks: u32) -> Congestion {
        Congestion::new(&Config { notices, route_timeouts, congestion_timeouts, acks, ..Config::default() })
    }

    /// TPA, section 3.5: th_CONG timeouts in a row begin the congested state, and th_ACK ACKs in a
    /// row end it.
    #[test]
    fn congestion_begins_and_ends_at_its_thresholds() {
        for threshold in 1..=3 {
            let mut ours = congestion(Notices::Failure, 1, threshold, threshold);
            for _ in 1..threshold {
                ours.on_timeout(false);
            }
            assert_eq!(ours.state(), State::Normal, "{threshold}");
            ours.on_ack(true);
            // The ACK came between: counting begins anew.
            for _ in 0..threshold {
                assert_eq!((ours.state(), ours.window(3)), (State::Normal, 3), "{threshold}");
                ours.on_timeout(false);
            }
            assert_eq!((ours.state(), ours.window(3)), (State::Congested, 1), "{threshold}");
            for _ in 1..threshold {
                ours.on_ack(true);
            }
            // So does a timeout between ACKs.
            ours.on_timeout(false);
            for _ in 0..threshold {
                assert_eq!(ours.state(), State::Congested, "{threshold}");
                ours.on_ack(true);
            }
            assert_eq!(ours.state(), State::Normal, "{threshold}");
        }
    }

    /// TPA, section 3.5: without ELFN the two states are one, entered after th_ROUTE timeouts and
    /// left after th_ACK ACKs.
    #[test]
    fn without_notices_there_is_one_condition() {
        let mut ours = congestion(Notices::None, 2, 1, 2);
        ours.on_timeout(false);
        assert_eq!(ours.state(), State::Normal);
        ours.on_timeout(false);
        assert_eq!(ours.state(), State::Frozen);
        ours.on_timeout(true);
        assert_eq!(ours.backoff(), 2, "a probe that expires doubles the RTO");
        assert!(!ours.on_ack(true));
        assert_eq!(ours.state(), State::Frozen);
        assert!(ours.on_ack(true));
        assert_eq!((ours.state(), ours.backoff()), (State::Normal, 1));
        assert!(!ours.on_route_failure(), "nobody listens to notices");
    }
}
