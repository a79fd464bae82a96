//! Delayed ACK as Linux implements it: an ACK leaves after two segments or after 40 ms and more. At
//! the start, after a long gap and for segments with PSH, each segment is acknowledged.
//!
//! Source: Linux 6.18, `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_incr_quickack`,
//! `tcp_grow_window`, `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`), `tcp_output.c`
//! (`tcp_send_delayed_ack`) and `tcp.c` (`__tcp_cleanup_rbuf`). The rule is within RFC 1122,
//! section 4.2.3.2, and RFC 5681, section 4.2. For a receiver that has nothing to send, where
//! `quick` counts the segments that are still acknowledged one by one:
//!
//! ```text
//! an ACK leaves at once  if more than one full segment waits, or quick > 0, or the segment
//!                        has PSH and the application has read it
//! quick                  is set to 16 by the first segment, and by a segment whose distance from
//!                        the last one exceeds the RTO of this end;
//!                        each ACK lowers it by one, whatever caused the ACK;
//!                        each segment with which the receive window grows makes it odd
//! timer                  40 ms, at a tick of the clock
//! ```
//!
//! Source of the defaults: the RTO of an end that sends nothing rests on its handshake alone. It is
//! 200 ms plus the round trip of the handshake (some 30 ms over seven hops). The timer of a kernel
//! with 250 ticks a second took 40 to 48 ms in a capture, evenly spread, so the default is 44 ms.
//! In that capture the receive window grew with six segments.
//!
//! Departures. In Linux the wait adapts to the times between segments, but is never longer than the
//! round trip of the handshake or 40 ms, whichever is more. Here the wait is `timer`, which is the
//! same if that round trip is shorter. Here the application reads all data at once; in Linux a
//! segment with PSH waits until the application runs. Segments of this TCP have no PSH, so `push`
//! says how often they are treated as if they had it. In Linux duplicate data sets quick to 16;
//! here it is only acknowledged at once.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

parameters! {
    /// Parameters of Linux's delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Linux {
        /// longest time for which a segment waits for its ACK
        timer: Duration = Duration::from_millis(44) => TIMER, Basic, "Linux, TCP_DELACK_MIN and ticks of 4 ms";
        /// number of segments, at the start and after a long gap, of which each gets its own ACK
        quick: u32 = 16 => whole("segments", 0, 255), Expert, "Linux, TCP_MAX_QUICKACKS";
        /// number of segments at the start that enlarge the receive window; that many more get
        /// their own ACK
        growth: u32 = 6 => whole("segments", 0, 255), Expert, "Linux, tcp_grow_window; a capture";
        /// shortest gap that counts as long
        idle: Duration = Duration::from_millis(230) => TIME.above(0.0).to(60.0), Expert, "Linux, tcp_event_data_recv: the RTO";
        /// distance between segments that are treated as if they had PSH, in segments; 0: no
        /// segment is
        push: u32 = 0 => whole("segments", 0, 255), Expert, "Linux, tcp_measure_rcv_mss";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    /// Number of further ACKs that leave at once.
    quick: u32,
    /// Number of further segments with which the receive window grows.
    growth: u32,
    /// Arrival time of the last segment that was in order or filled a gap; `None` before the first
    /// one.
    arrived_at: Option<Time>,
}

impl State {
    /// Creates the state of a receiver that has received nothing.
    pub fn new(config: &Linux) -> State {
        State { quick: 0, growth: config.growth, arrived_at: None }
    }

    /// A segment arrived that is in order or fills a gap.
    pub fn on_progress(&mut self, now: Time, config: &Linux) {
        let before = self.arrived_at.replace(now);
        if before.is_none_or(|before| now.since(before) > config.idle) {
            self.quick = self.quick.max(config.quick);
        }
        if self.growth > 0 {
            self.growth -= 1;
            self.quick |= 1;
        }
    }

    /// Number of segments that an ACK waits for if the newest one is number `n`, counted from 1.
    pub fn segments(&self, n: u64, config: &Linux) -> u32 {
        if self.quick > 0 || (config.push > 0 && n.is_multiple_of(u64::from(config.push))) { 1 } else { 2 }
    }

    /// An ACK leaves, which lowers `quick` by one.
    pub fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }
}
