//! Delayed ACK as Linux has it: two segments or a timer of 40 ms and more, but each segment at first, after a long gap and where it has PSH.
//!
//! Source: Linux 6.18, `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_incr_quickack`, `tcp_grow_window`, `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`),
//! `tcp_output.c` (`tcp_send_delayed_ack`) and `tcp.c` (`__tcp_cleanup_rbuf`), within RFC 1122, section 4.2.3.2, and RFC 5681, section 4.2. In words, for
//! a receiver that has nothing to send:
//!
//! ```text
//! at once        if more than one full segment waits, or quick > 0, or the segment has PSH and the application has taken it
//! quick          = 16 with the first segment, and with one that comes later after the last than the RTO of this end;
//!                one less with each ACK, whatever brought it about; made odd by each segment with which the receive window grows
//! timer          40 ms, at a tick of the clock
//! ```
//!
//! Where the numbers come from: the RTO of an end that sends nothing rests on its handshake alone, 200 ms and that round trip (some 30 ms over seven
//! hops). A timer of a kernel with 250 ticks a second took 40 to 48 ms in a capture, evenly spread: 44 ms. The receive window grew with six segments there.
//!
//! Departures. The wait adapts to the times between segments there, but is never longer than the round trip of the handshake or 40 ms, whichever is more: here it
//! is `timer`, which is the same where that round trip is shorter. The application takes all at once; there a segment with PSH waits until it runs. Segments
//! of this TCP have no PSH: `push` says how often they are taken to have it. Data that comes twice makes quick 16 there, and is only acknowledged at once here.

use super::delayed::TIMER;
use meshpace_core::{Duration, Time, parameters};

parameters! {
    /// Parameters of Linux's delayed ACK.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Linux {
        /// the longest wait
        timer: Duration = Duration::from_millis(44) => TIMER, Basic, "Linux, TCP_DELACK_MIN and ticks of 4 ms";
        /// segments at first and after a long gap that are acknowledged each
        quick: u32 = 16 => whole("segments", 0, 255), Expert, "Linux, TCP_MAX_QUICKACKS";
        /// segments at first with which the receive window grows: as many more are acknowledged each
        growth: u32 = 6 => whole("segments", 0, 255), Expert, "Linux, tcp_grow_window; a capture";
        /// the gap that is long
        idle: Duration = Duration::from_millis(230) => TIME.above(0.0).to(60.0), Expert, "Linux, tcp_event_data_recv: the RTO";
        /// segments from one with PSH to the next; 0: none has it
        push: u32 = 0 => whole("segments", 0, 255), Expert, "Linux, tcp_measure_rcv_mss";
    }
}

/// State of a receiver.
#[derive(Clone, Debug)]
pub struct State {
    /// ACKs that are still to leave at once.
    quick: u32,
    /// Segments with which the window will have grown.
    growth: u32,
    /// Time at which the last segment in order, or that filled a gap, arrived.
    arrived_at: Option<Time>,
}

impl State {
    /// Nothing has arrived.
    pub fn new(config: &Linux) -> State {
        State { quick: 0, growth: config.growth, arrived_at: None }
    }

    /// A segment arrives that is in order or fills a gap.
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

    /// Segments that an ACK waits for if the newest is number `n`, from 1.
    pub fn segments(&self, n: u64, config: &Linux) -> u32 {
        if self.quick > 0 || (config.push > 0 && n.is_multiple_of(u64::from(config.push))) { 1 } else { 2 }
    }

    /// An ACK leaves.
    pub fn on_ack_sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
    }
}
