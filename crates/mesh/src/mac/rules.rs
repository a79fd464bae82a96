//! The rules in which MACs differ, as rows of constants. The machine in [`super::dcf`] asks for a rule and never for the name of a profile.
//!
//! | Row | Profile | Source |
//! |---|---|---|
//! | [`Rules::NS2`] | `ns2` | ns-2.35 as measured |
//! | [`Rules::IEEE`] | `ieee` with the rates of 802.11b | IEEE Std 802.11-1999 |
//! | [`Rules::OFDM`] | `ieee` with those of 802.11a | IEEE Std 802.11-2016 |
//! | [`Rules::HT`] | `ht` | IEEE Std 802.11-2016 |
//!
//! The numbers behind a field are sections: of the edition of 1999, where no other is named.

use crate::radio::ofdm::CCA_TIME;
use meshpace_core::Duration;

/// When a frame leaves without a backoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmediateAccess {
    /// Never.
    Never,
    /// If the medium has been idle for the whole interframe space when the packet comes (9.2.5.1).
    AfterSpace,
    /// If the medium is idle when the packet comes; the interframe space passes first (802.11-2016, 10.22.2.2 a).
    WhileIdle,
}

/// Rules of a MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Bytes that a data frame adds to a packet: MAC header and FCS (7.2.2), with OFDM LLC and SNAP (IEEE Std 802.2), QoS control (802.11-2016, 9.2.4.5).
    pub data_overhead: u32,
    /// Bytes added to the length of an MPDU before it is compared with the RTS threshold, which it must exceed (9.2.6). ns-2 counts 24 bytes of PLCP, and an
    /// MPDU as long as the threshold is enough.
    pub rts_extra: u32,
    /// Addition to a duration before it is cut to whole microseconds, ns: the standard rounds up (7.1.3.2), ns-2 to the nearest.
    pub duration_rounding_ns: u64,
    /// Time before its own transmission in which a station no longer senses that the medium became busy: aCCATime (15.3.3, 802.11-2016, table 17-21); zero: it always
    /// does.
    pub cca_time: Duration,
    /// Margin of a time-out for propagation and sensing, beyond SIFS and the answer; None: one slot (802.11-2016, 10.3.2.9).
    pub answer_margin: Option<Duration>,
    /// True if an answer is waited for until it should have begun, and to its end if it has (802.11-2016, 10.3.2.9), instead of until it should have ended.
    pub awaits_start_of_answer: bool,
    /// True if the sender of a CTS waits for the data, instead of being free at once.
    pub awaits_data: bool,
    /// True if any other valid frame ends the wait for an answer (9.2.5.7, 9.2.8).
    pub other_frame_ends_wait: bool,
    /// True if data that RTS/CTS must precede is taken only as the answer to the station's own CTS, as in ns-2.
    pub data_follows_cts: bool,
    /// True if a station answers an RTS only if it senses no carrier; the standard asks for the NAV alone (9.2.5.7).
    pub cts_needs_idle_medium: bool,
    /// True if a frame whose backoff has ended senses the medium once more, and backs off with a doubled window if it is busy, as in ns-2.
    pub senses_before_sending: bool,
    /// True if a backoff may be as long as the contention window (9.2.4), instead of one slot less.
    pub backoff_reaches_window: bool,
    /// When a frame leaves without a backoff.
    pub immediate_access: ImmediateAccess,
    /// True if the space that must have passed for that is counted from the end of the NAV, too (9.2.5.1: idle is what both carrier senses say).
    pub nav_is_busy: bool,
    /// True if a backoff that is interrupted has counted the slot in which the medium becomes busy (802.11-2016, 10.22.2.4), instead of only slots that were idle
    /// to their end (9.2.5.2).
    pub busy_slot_counts: bool,
    /// True if a backoff follows a packet that was given up as one that was acknowledged (9.2.5.2, 9.2.4: the window is reset; 802.11-2016, 10.3.4.3).
    pub backoff_after_giving_up: bool,
    /// True if there is one limit for the failures of all frames.
    pub one_retry_limit: bool,
    /// True if a frame is a duplicate only if its retry bit is set (9.2.9), and not by its sequence number alone.
    pub duplicate_needs_retry: bool,
    /// True if a frame that is lost sets the NAV for EIFS and DIFS follows, as in ns-2, instead of EIFS in place of DIFS (9.2.3.4).
    pub error_sets_nav: bool,
    /// True if a frame too weak to disturb the one that is received sets the NAV for its air time and EIFS, as in ns-2.
    pub ignored_sets_nav: bool,
    /// True if the NAV of an RTS that no frame follows is reset (9.2.5.4).
    pub rts_nav_resets: bool,
    /// True if the packet in the MAC is one of those that the queue is limited to, as in ns-2.
    pub queue_counts_current: bool,
    /// True if it has the rates of 802.11a.
    pub has_ofdm: bool,
}

impl Rules {
    /// ns-2.35.
    pub const NS2: Rules = Rules {
        data_overhead: 34,
        rts_extra: 25,
        duration_rounding_ns: 500,
        cca_time: Duration::ZERO,
        // 2 us a direction.
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

    /// IEEE Std 802.11-1999.
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

    /// The same over the radio of 802.11a.
    pub const OFDM: Rules = Rules {
        data_overhead: Rules::IEEE.data_overhead + 8,
        cca_time: CCA_TIME,
        awaits_start_of_answer: true,
        awaits_data: false,
        ..Rules::IEEE
    };

    /// 802.11n. What its keys say replaces `immediate_access`, which aggregates do not have by default, and `busy_slot_counts`.
    pub const HT: Rules = Rules {
        data_overhead: Rules::OFDM.data_overhead + 2,
        one_retry_limit: true,
        immediate_access: ImmediateAccess::WhileIdle,
        busy_slot_counts: true,
        ..Rules::OFDM
    };
}
