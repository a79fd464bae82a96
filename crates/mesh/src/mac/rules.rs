//! Rules in which MAC profiles differ, as rows of constants. The state machine in [`super::dcf`]
//! tests a rule, never the name of a profile.
//!
//! | Row | Profile | Source |
//! |---|---|---|
//! | [`Rules::NS2`] | `ns2` | ns-2.35 as measured |
//! | [`Rules::IEEE`] | `ieee` with the rates of 802.11b | IEEE Std 802.11-1999 |
//! | [`Rules::OFDM`] | `ieee` with the rates of 802.11a | IEEE Std 802.11-2016 |
//! | [`Rules::HT`] | `ht` | IEEE Std 802.11-2016 |
//!
//! Numbers at the fields are sections of the standard. They refer to the edition of 1999 unless
//! another one is named.

use crate::radio::ofdm::CCA_TIME;
use meshpace_core::Duration;

/// Condition under which a frame is transmitted without a backoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmediateAccess {
    /// A backoff always precedes a frame.
    Never,
    /// No backoff is needed if the medium has been idle for the whole interframe space when the
    /// packet arrives (9.2.5.1).
    AfterSpace,
    /// No backoff is needed if the medium is idle when the packet arrives; the interframe space
    /// passes first (802.11-2016, 10.22.2.2 a).
    WhileIdle,
}

/// Rules of a MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Bytes that a data frame adds to a packet: MAC header and FCS (7.2.2); with OFDM also LLC and
    /// SNAP (IEEE Std 802.2); with 802.11n also QoS control (802.11-2016, 9.2.4.5).
    pub data_overhead: u32,
    /// Bytes added to the size of an MPDU before the comparison with the RTS threshold, which the
    /// sum must exceed (9.2.6). ns-2 adds 24 bytes of PLCP, and uses RTS also if the sum equals the
    /// threshold; the 25th byte expresses that.
    pub rts_extra: u32,
    /// Amount in ns that is added to a duration before it is truncated to whole microseconds. The
    /// standard rounds up (7.1.3.2), ns-2 to the nearest.
    pub duration_rounding_ns: u64,
    /// Time before its own transmission in which a station no longer senses that the medium became
    /// busy: aCCATime (15.3.3; 802.11-2016, table 17-21). Zero: the station always senses it.
    pub cca_time: Duration,
    /// Slack of a response time-out for propagation and sensing, in addition to SIFS and the
    /// answer. `None`: one slot (802.11-2016, 10.3.2.9).
    pub answer_margin: Option<Duration>,
    /// True if a station waits for an answer until the answer should have begun, and to the end of
    /// a frame that has begun (802.11-2016, 10.3.2.9). Otherwise it waits until the answer should
    /// have ended.
    pub awaits_start_of_answer: bool,
    /// True if the sender of a CTS waits for the data. Otherwise it is free at once.
    pub awaits_data: bool,
    /// True if any other valid frame ends the wait for an answer (9.2.5.7, 9.2.8).
    pub other_frame_ends_wait: bool,
    /// True if data that must be preceded by RTS/CTS is accepted only after the station's own CTS,
    /// as in ns-2.
    pub data_follows_cts: bool,
    /// True if a station answers an RTS only if it senses no carrier. The standard requires only
    /// that the NAV is not set (9.2.5.7).
    pub cts_needs_idle_medium: bool,
    /// True if a station senses the medium again when its backoff has ended, and backs off with a
    /// doubled window if the medium is busy, as in ns-2.
    pub senses_before_sending: bool,
    /// True if a backoff may be as long as the contention window (9.2.4). Otherwise it is at least
    /// one slot shorter.
    pub backoff_reaches_window: bool,
    /// Condition under which a frame is transmitted without a backoff.
    pub immediate_access: ImmediateAccess,
    /// True if the interframe space of `immediate_access` also begins only at the end of the NAV
    /// (9.2.5.1: the medium is idle if both carrier senses are idle).
    pub nav_is_busy: bool,
    /// True if an interrupted backoff counts the slot in which the medium becomes busy
    /// (802.11-2016, 10.22.2.4). Otherwise it counts only slots that were idle to their end
    /// (9.2.5.2).
    pub busy_slot_counts: bool,
    /// True if a backoff follows a packet that was given up, as it follows an acknowledged one
    /// (9.2.5.2, 9.2.4: the window is reset; 802.11-2016, 10.3.4.3).
    pub backoff_after_giving_up: bool,
    /// True if one retry limit applies to the failures of all frames.
    pub one_retry_limit: bool,
    /// True if a frame counts as a duplicate only if its retry bit is set (9.2.9), and not by its
    /// sequence number alone.
    pub duplicate_needs_retry: bool,
    /// True if a lost frame sets the NAV for EIFS, and DIFS follows, as in ns-2. Otherwise EIFS
    /// replaces DIFS (9.2.3.4).
    pub error_sets_nav: bool,
    /// True if a frame that is too weak to disturb the frame being received sets the NAV for its
    /// air time and EIFS, as in ns-2.
    pub ignored_sets_nav: bool,
    /// True if the NAV of an RTS is reset if no frame follows the RTS (9.2.5.4).
    pub rts_nav_resets: bool,
    /// True if the packet in the MAC counts towards the limit of the queue, as in ns-2.
    pub queue_counts_current: bool,
    /// True if the profile supports the rates of 802.11a.
    pub has_ofdm: bool,
}

impl Rules {
    /// Rules of ns-2.35.
    pub const NS2: Rules = Rules {
        data_overhead: 34,
        rts_extra: 25,
        duration_rounding_ns: 500,
        cca_time: Duration::ZERO,
        // The slack is 2 us in each direction.
        answer_margin: Some(Duration::from_micros(4)),
        awaits_start_of_answer: false,
        awaits_data: true,
        other_frame_ends_wait: false,
        data_follows_cts: true,
        cts_needs_idle_medium: true,
        senses_before_sending: true,
        backoff_reaches_window: false,
        immediate_access: ImmediateAccess::Never,
        nav_is_busy: false,
        busy_slot_counts: false,
        backoff_after_giving_up: false,
        one_retry_limit: false,
        duplicate_needs_retry: false,
        error_sets_nav: true,
        ignored_sets_nav: true,
        rts_nav_resets: false,
        queue_counts_current: true,
        has_ofdm: false,
    };

    /// Rules of IEEE Std 802.11-1999.
    pub const IEEE: Rules = Rules {
        data_overhead: 28,
        rts_extra: 0,
        duration_rounding_ns: 999,
        cca_time: Duration::from_micros(15),
        answer_margin: None,
        awaits_start_of_answer: false,
        awaits_data: true,
        other_frame_ends_wait: true,
        data_follows_cts: false,
        cts_needs_idle_medium: false,
        senses_before_sending: false,
        backoff_reaches_window: true,
        immediate_access: ImmediateAccess::AfterSpace,
        nav_is_busy: true,
        busy_slot_counts: false,
        backoff_after_giving_up: true,
        one_retry_limit: false,
        duplicate_needs_retry: true,
        error_sets_nav: false,
        ignored_sets_nav: false,
        rts_nav_resets: true,
        queue_counts_current: false,
        has_ofdm: true,
    };

    /// Rules of the standard over the radio of 802.11a.
    pub const OFDM: Rules = Rules {
        data_overhead: Rules::IEEE.data_overhead + 8,
        cca_time: CCA_TIME,
        awaits_start_of_answer: true,
        awaits_data: false,
        ..Rules::IEEE
    };

    /// Rules of 802.11n. The configuration replaces `immediate_access`, which is off by default
    /// with aggregates, and `busy_slot_counts`.
    pub const HT: Rules = Rules {
        data_overhead: Rules::OFDM.data_overhead + 2,
        one_retry_limit: true,
        immediate_access: ImmediateAccess::WhileIdle,
        busy_slot_counts: true,
        ..Rules::OFDM
    };
}
