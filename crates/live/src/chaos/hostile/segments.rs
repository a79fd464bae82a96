//! Segments that a hostile peer invents, based on what it has read in the datagrams of its
//! connection.

use meshpace_core::Rng;
use meshpace_session::engine::AnySegment;
use meshpace_session::handshake::InnerTransport;
use meshpace_transport::flags::Flags;
use meshpace_transport::train::segment::Feedback;
use meshpace_transport::{bbr, tpa, train};

/// Knowledge about one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Offset after the last payload.
    pub(super) offset: u64,
    /// Highest number of a BBR segment.
    number: u64,
    /// TPA block of the last segment, and the number of the block's transmission.
    block: u16,
    tx: u8,
    /// Time stamp of the last segment of quiet trains.
    stamp: u32,
    /// Time stamp of the last segment of quiet trains with payload.
    data_stamp: Option<u32>,
    /// Largest limit (flow control) in a BBR segment.
    limit: u64,
    /// Count of numbers that an observer could predict: BBR segments without a gap, or TPA blocks
    /// whose transmissions begin at 1.
    foreseen: u32,
    /// True if a number arrived that could not be predicted.
    was_surprised: bool,
}

/// Count of BBR segments after which an unpredictable number must have arrived. BBR skips one
/// number among its first 16.
const FORESEEN_BBR: u32 = 64;
/// Count of TPA blocks after which an unpredictable number must have arrived. A TPA block begins at
/// any of 16 transmission numbers.
const FORESEEN_TPA: u32 = 10;

impl Known {
    /// Records a segment of this direction.
    pub(super) fn see(&mut self, segment: &AnySegment) {
        let (offset, length) = segment.range();
        self.foresee(segment);
        match segment {
            AnySegment::Tpa(segment) if segment.place != 0 => (self.block, self.tx) = (segment.block, segment.tx),
            AnySegment::Train(segment) => {
                self.stamp = segment.ts_val;
                if length > 0 {
                    self.data_stamp = Some(segment.ts_val);
                }
            }
            AnySegment::Bbr(segment) if segment.carries() => self.number = self.number.max(segment.number),
            AnySegment::Bbr(segment) => self.limit = self.limit.max(segment.report.limit),
            AnySegment::Tpa(_) => {}
        }
        if length > 0 {
            self.offset = self.offset.max(offset.saturating_add(length as u64));
        }
    }
}

impl Known {
    /// Records whether the number of `segment` could be predicted.
    fn foresee(&mut self, segment: &AnySegment) {
        let is_foreseen = match segment {
            AnySegment::Tpa(segment) if segment.place != 0 && segment.block != self.block => segment.tx == 1,
            AnySegment::Bbr(segment) if segment.carries() => segment.number <= self.number + 1,
            _ => return,
        };
        self.foreseen += u32::from(is_foreseen);
        self.was_surprised |= !is_foreseen;
    }

    /// True if all numbers could be predicted, although so many have arrived that some should have
    /// been skipped.
    pub(super) fn is_predictable(&self, inner: InnerTransport) -> bool {
        let most = match inner {
            InnerTransport::Tpa => FORESEEN_TPA,
            InnerTransport::Bbr => FORESEEN_BBR,
            // Quiet trains skip no numbers; their time stamps are checked instead.
            InnerTransport::Trains => return false,
        };
        !self.was_surprised && self.foreseen > most
    }
}

/// Number of bytes over which a peer spreads its data if the window is not given as an offset. No
/// window is smaller.
const WINDOW: u64 = 60_000;

/// Number of bytes after the end of what the peer has `said` for which the other end has room,
/// according to what was `heard` from it.
pub(super) fn room(inner: InnerTransport, said: &Known, heard: &Known) -> u64 {
    match inner {
        InnerTransport::Bbr => heard.limit.saturating_sub(said.offset),
        InnerTransport::Tpa | InnerTransport::Trains => WINDOW,
    }
}

/// Creates an acknowledgement of something that was never sent, if `segment` shows that it was not.
/// `None` if it does not. `segment` is the first that arrives after what was `heard`, and
/// everything that was sent before has arrived. `said` is the peer's own stream.
pub(super) fn lie(said: &Known, heard: &Known, segment: &AnySegment) -> Option<AnySegment> {
    let flags = Flags::ACK;
    match segment {
        // The block begins with a transmission number above 1, so the lower ones were skipped.
        AnySegment::Tpa(segment) if segment.place != 0 && segment.block != heard.block && segment.tx > 1 => {
            let (ack_block, ack_places, ack_tx) = (segment.block, segment.place, segment.tx - 1);
            Some(AnySegment::Tpa(tpa::Segment {
                ack_block,
                ack_places,
                ack_tx,
                window: 255,
                flags,
                ..Default::default()
            }))
        }
        // Nothing was sent between the two segments, so no time stamp between those of the two was
        // sent.
        AnySegment::Train(segment) if segment.payload > 0 => {
            let (before, ack) = (heard.data_stamp?, heard.offset);
            let between = segment.ts_val.wrapping_sub(before);
            let ts_ecr = before.wrapping_add(1);
            let seq = said.offset;
            let lie = train::Segment { seq, ack, ts_ecr, wait: 1, window: 255, flags, ..Default::default() };
            (between > 1 && between < 1 << 31).then_some(AnySegment::Train(lie))
        }
        // A number is missing.
        AnySegment::Bbr(segment) if segment.carries() && segment.number > heard.number + 1 => {
            let (newest, expected, limit) = (segment.number, heard.offset, 1 << 40);
            let mut report = bbr::Report { newest, expected, limit, count: 1, ..Default::default() };
            report.ranges[0] = (0, 2);
            Some(AnySegment::Bbr(bbr::Segment { flags, report, ..Default::default() }))
        }
        _ => None,
    }
}

/// Creates a probe of the other end.
pub(super) fn question(inner: InnerTransport) -> AnySegment {
    empty(inner, Flags::SYN)
}

/// Creates a segment with only these flags.
pub(super) fn empty(inner: InnerTransport, flags: Flags) -> AnySegment {
    match inner {
        InnerTransport::Tpa => AnySegment::Tpa(tpa::Segment { flags, ..Default::default() }),
        InnerTransport::Trains => AnySegment::Train(train::Segment { flags, ..Default::default() }),
        InnerTransport::Bbr => AnySegment::Bbr(bbr::Segment { flags, ..Default::default() }),
    }
}

/// Creates an acknowledgement of everything up to `ahead` segments after what was `heard`, or of
/// all numbers below for zero. `said` is the peer's own stream: quiet trains ignore segments that
/// are not near its end.
pub(super) fn acknowledgement(
    inner: InnerTransport,
    (said, heard): (&Known, &Known),
    ahead: u64,
    rng: &mut Rng,
) -> AnySegment {
    match inner {
        InnerTransport::Tpa => {
            let ack_block = tpa::segment::block_after(heard.block, (ahead / 12) as u16);
            let ack_places = ((1u32 << (1 + ahead % 12)) - 1) as u16;
            let ack_tx = if ahead == 0 { rng.below(256) as u8 } else { heard.tx.wrapping_add(rng.below(24) as u8) };
            let flags = Flags::ACK;
            AnySegment::Tpa(tpa::Segment { ack_block, ack_places, ack_tx, window: 255, flags, ..Default::default() })
        }
        InnerTransport::Trains => {
            let ack = heard.offset.saturating_add(ahead.saturating_mul(100));
            let ts_ecr = if ahead == 0 {
                heard.stamp.wrapping_sub(rng.below(50_000) as u32)
            } else {
                heard.stamp.wrapping_add((1_000 * ahead) as u32)
            };
            let feedback = Feedback { segments: 1 + rng.below(24) as u8, ..Feedback::default() };
            let flags = Flags::ACK;
            AnySegment::Train(train::Segment {
                seq: said.offset,
                ack,
                ts_ecr,
                wait: 1,
                window: 255,
                flags,
                feedback,
                ..Default::default()
            })
        }
        InnerTransport::Bbr => {
            let newest = heard.number.saturating_add(ahead);
            let mut report = bbr::Report { newest, expected: heard.offset, count: 1, ..bbr::Report::default() };
            if rng.below(8) == 0 {
                report.expected = heard.offset.saturating_add(ahead.saturating_mul(500));
            }
            report.limit = 1 << 40;
            report.ranges[0] = (0, newest.min(1 + rng.below(2_000)) as u16 + 1);
            AnySegment::Bbr(bbr::Segment { flags: Flags::ACK, report, ..Default::default() })
        }
    }
}

/// Creates an acknowledgement of what was `heard` that announces a window of `window` segments.
pub(super) fn announcement(inner: InnerTransport, (said, heard): (&Known, &Known), window: u16) -> AnySegment {
    let flags = Flags::ACK;
    match inner {
        InnerTransport::Tpa => {
            let (ack_block, window) = (heard.block, window.min(255) as u8);
            AnySegment::Tpa(tpa::Segment { ack_block, window, ack_tx: heard.tx, flags, ..Default::default() })
        }
        InnerTransport::Trains => {
            let (seq, ack, ts_ecr) = (said.offset, heard.offset, heard.stamp);
            AnySegment::Train(train::Segment { seq, ack, ts_ecr, window, flags, ..Default::default() })
        }
        InnerTransport::Bbr => {
            let limit = match window {
                u16::MAX => (1 << 48) - 1,
                window => heard.offset.saturating_add(u64::from(window) * 500),
            };
            let report = bbr::Report { newest: heard.number, expected: heard.offset, limit, ..Default::default() };
            AnySegment::Bbr(bbr::Segment { flags, report, ..Default::default() })
        }
    }
}

/// Creates a piece of the peer's own stream with `length` bytes, `shift` bytes from the end of what
/// it has `said`. Quiet trains ignore segments that acknowledge nothing, so the piece also
/// acknowledges what was `heard`.
pub(super) fn piece(
    inner: InnerTransport,
    (said, heard): (&mut Known, Known),
    shift: i64,
    (length, flags): (u16, Flags),
    rng: &mut Rng,
) -> AnySegment {
    let offset = said.offset.saturating_add_signed(shift) & ((1 << 48) - 1);
    match inner {
        InnerTransport::Tpa => {
            // TPA has no offsets: the block number determines how far ahead the piece is.
            let block = tpa::segment::block_after(said.block, (shift / 4096).unsigned_abs() as u16);
            let place = if rng.below(16) == 0 { rng.below(4096) as u16 } else { 1 << rng.below(12) };
            let (tx, last) = (rng.below(256) as u8, rng.below(4) == 0);
            let payload = length;
            AnySegment::Tpa(tpa::Segment { block, place, payload, tx, last, window: 12, flags, ..Default::default() })
        }
        InnerTransport::Trains => {
            said.stamp = said.stamp.wrapping_add(rng.below(2_000) as u32);
            let flags = if rng.below(2) == 0 { flags.with(Flags::PSH) } else { flags }.with(Flags::ACK);
            let (seq, ts_val, payload, window) = (offset, said.stamp, length, 255);
            let (ack, ts_ecr) = (heard.offset, heard.stamp);
            AnySegment::Train(train::Segment { seq, ack, ts_val, ts_ecr, payload, window, flags, ..Default::default() })
        }
        InnerTransport::Bbr => {
            // Numbers may have gaps, be repeated, or arrive late.
            said.number = said.number.saturating_add(rng.below(4));
            let (number, seq, payload) = (said.number, offset, length);
            AnySegment::Bbr(bbr::Segment { number, seq, payload, flags, ..Default::default() })
        }
    }
}
