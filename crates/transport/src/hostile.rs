//! Tests with a peer that has the keys and tries to make each of its segments cost much work. The
//! work is counted, and the work per segment must not grow with the number of earlier segments.
//! Every pattern runs for 100,000 segments alone, and for 200,000 in turn with the others; in the
//! slow tests for a million.

use crate::bbr;
use crate::config::Config;
use crate::flags::Flags;
use crate::names;
use crate::output::pump;
use crate::path::{Arrival, Role};
use crate::tcp::{self, Agreed};
use crate::tpa;
use crate::train;
use crate::work::take_steps;
use meshpace_core::{Duration, Rng, Time, rng::Purpose};

/// Number of segments in a run of a single pattern.
const ALONE: u64 = 100_000;
/// Number of segments over which the work is averaged.
const SPAN: u64 = 10_000;

/// Number of segments in a run of all patterns in turn.
fn all_in_turn() -> u64 {
    if meshpace_testing::is_slow_run("a million segments of a hostile peer; 200,000 otherwise") {
        1_000_000
    } else {
        200_000
    }
}

/// Pattern of the pieces of the stream that a hostile peer sends.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Every second byte in ascending order, repeated.
    Alternating,
    /// Every second byte in descending order.
    Descending,
    /// Bytes that are a page apart, then the bytes next to them.
    Pages,
    /// A few bytes at random offsets.
    Random,
    /// Pieces of random length that overlap others.
    Overlapping,
    /// Every second byte of the window, then the whole window except its first byte.
    CombAndCover,
    /// The other patterns in turn.
    InTurn,
}

const PATTERNS: [Pattern; 7] = [
    Pattern::Alternating,
    Pattern::Descending,
    Pattern::Pages,
    Pattern::Random,
    Pattern::Overlapping,
    Pattern::CombAndCover,
    Pattern::InTurn,
];

impl Pattern {
    /// Number of segments in a run of this pattern.
    fn segments(self) -> u64 {
        if matches!(self, Pattern::InTurn) { all_in_turn() } else { ALONE }
    }

    /// Start and length of piece `number` within a window of `window` bytes. The first byte is
    /// never sent, so nothing is delivered.
    fn piece(self, number: u64, window: u64, rng: &mut Rng) -> (u64, u16) {
        let half = window / 2 - 1;
        let (start, length) = match self {
            Pattern::Alternating => (1 + 2 * (number % half), 1),
            Pattern::Descending => (1 + 2 * (half - 1 - number % half), 1),
            Pattern::Pages => (1 + (number * 4096 + number * 4096 / window) % (window - 1), 1),
            Pattern::Random => (1 + rng.below(window - 8), 1 + rng.below(6)),
            Pattern::Overlapping => (1 + rng.below(window - 2000), 1 + rng.below(1400)),
            Pattern::CombAndCover if number % 1000 < 900 => (1 + 2 * (number % half), 1),
            Pattern::InTurn => return PATTERNS[(number / SPAN) as usize % 6].piece(number, window, rng),
            Pattern::CombAndCover => (1 + (number % 1000 - 900) * 1400 % (window - 1400), 1400),
        };
        (start, u16::try_from(length).unwrap())
    }
}

/// Handles `count` segments. `handle` returns the number of segments that each of them lets leave.
/// Asserts that any `SPAN` segments cost at most `bound` steps per segment that arrived or left.
fn assert_flat(what: &str, count: u64, bound: u64, mut handle: impl FnMut(u64) -> u64) {
    take_steps();
    let (mut steps, mut segments, mut most) = (0, 0, 0);
    for number in 0..count {
        segments += 1 + handle(number);
        steps += take_steps();
        if (number + 1) % SPAN == 0 {
            assert!(
                steps <= bound * segments,
                "{what}: {} steps per segment before segment {number}",
                steps / segments
            );
            most = most.max(steps.div_ceil(segments));
            (steps, segments) = (0, 0);
        }
    }
    std::println!("{what}: {most} steps per segment, {bound} allowed");
}

/// Arrival time of segment `number`.
fn at(number: u64) -> Time {
    Time(1_000_000_000) + Duration::from_micros(100 * number)
}

/// Receive window of BBR in bytes.
const BUFFER: u64 = 4 << 20;

fn bbr_end() -> bbr::Connection {
    bbr::Connection::new(&bbr::Config { segment: 1400, receive_buffer: BUFFER, first_credit: BUFFER })
}

/// Bound for one segment. Its work is an insertion (one search), the list of recent ranges (five),
/// and the ranges that a report looks up.
const PIECE: u64 = 16;

#[test]
fn pieces_of_a_stream_of_bbr() {
    for pattern in PATTERNS {
        let (mut end, mut rng) = (bbr_end(), Rng::stream(1, Purpose::Test, 0));
        assert_flat(&alloc::format!("bbr, {pattern:?}"), pattern.segments(), PIECE, |number| {
            let (seq, payload) = pattern.piece(number, BUFFER, &mut rng);
            // Every second number is missing, so that the ranges of numbers are as many as may be.
            end.on_segment(at(number), &bbr::Segment { number: 2 * number, seq, payload, ..bbr::Segment::default() });
            pump(&mut end, at(number), |_, _| {});
            0
        });
        assert_eq!(end.delivered(), 0, "{pattern:?}");
    }
}

/// Creates two ends of an open TCP connection.
fn open_tcp(config: &tcp::Config) -> [tcp::Connection; 2] {
    let end = |role| {
        let mut end = tcp::Connection::new(&config.of_host(), role);
        end.on_agreed(Time::ZERO, &Agreed { segment: 1400, timestamps: true, sack: true });
        end
    };
    let mut ends = [end(Role::Sender), end(Role::Receiver)];
    ends[0].open(Time::ZERO);
    for _ in 0..4 {
        for side in 0..2 {
            let mut segments = alloc::vec::Vec::new();
            pump(&mut ends[side], Time(1), |_, segment| segments.push(segment));
            for segment in &segments {
                ends[1 - side].on_segment(Time(1), segment, &[], Arrival::default());
            }
        }
    }
    assert!(ends.iter().all(tcp::Connection::is_established));
    ends
}

/// Window of TCP in segments.
const WINDOW: u32 = 128;

fn tcp_config() -> tcp::Config {
    tcp::Config { segment: 1400, max_window: WINDOW, sack: true, ..tcp::Config::default() }
}

#[test]
fn pieces_of_a_stream_of_tcp_with_sack() {
    for pattern in PATTERNS {
        let ([_, mut end], mut rng) = (open_tcp(&tcp_config()), Rng::stream(2, Purpose::Test, 0));
        assert_flat(&alloc::format!("tcp, {pattern:?}"), pattern.segments(), PIECE, |number| {
            let (seq, payload) = pattern.piece(number, u64::from(WINDOW) * 1400, &mut rng);
            let segment = tcp::Segment { seq, payload, flags: Flags::ACK, window: 1 << 16, ..tcp::Segment::default() };
            end.on_segment(at(number), &segment, &[], Arrival::default());
            pump(&mut end, at(number), |_, _| {});
            0
        });
        assert_eq!(end.delivered(), 0, "{pattern:?}");
    }
}

/// Creates two ends of an open connection of quiet trains.
fn open_trains() -> [train::Connection; 2] {
    let config = train::Config { segment: 1400, max_window: 255, ..train::Config::default() }.of_host();
    let mut ends = [Role::Sender, Role::Receiver].map(|role| train::Connection::new(&config, role));
    ends[0].open();
    for _ in 0..4 {
        for side in 0..2 {
            let mut segments = alloc::vec::Vec::new();
            pump(&mut ends[side], Time(1), |_, segment| segments.push(segment));
            for segment in &segments {
                ends[1 - side].on_segment(Time(1), segment, Arrival::default());
            }
        }
    }
    assert!(ends.iter().all(train::Connection::is_established));
    ends
}

#[test]
fn pieces_of_a_stream_of_trains() {
    // A report asks for each of 32 segments whether it has arrived.
    for pattern in PATTERNS {
        let ([_, mut end], mut rng) = (open_trains(), Rng::stream(3, Purpose::Test, 0));
        assert_flat(&alloc::format!("train, {pattern:?}"), pattern.segments(), PIECE + 32, |number| {
            let (seq, payload) = pattern.piece(number, 255 * 1400, &mut rng);
            // Each is the end of its train, so that each is acknowledged at once.
            let flags = Flags::ACK.with(Flags::PSH);
            let segment = train::Segment { seq, payload, flags, window: 255, ..train::Segment::default() };
            end.on_segment(at(number), &segment, Arrival::default());
            pump(&mut end, at(number), |_, _| {});
            0
        });
        assert_eq!(end.delivered(), 0, "{pattern:?}");
    }
}

/// Pattern of the reports that a hostile receiver of BBR's segments sends.
#[derive(Clone, Copy, Debug)]
enum Reports {
    /// Only the newest number has arrived, in every report.
    Newest,
    /// Every second number has arrived.
    EverySecond,
    /// All numbers in flight but the first have arrived, in 16 ranges.
    AllButTheFirst,
    /// Numbers have arrived that were considered lost long ago.
    Late,
    /// Random numbers have arrived.
    Random,
    /// No number has arrived, but the limit rises by a byte.
    Limit,
}

const REPORTS: [Reports; 6] =
    [Reports::Newest, Reports::EverySecond, Reports::AllButTheFirst, Reports::Late, Reports::Random, Reports::Limit];

impl Reports {
    /// The report after `sent` numbers have been sent. The first byte never arrives.
    fn report(self, turn: u64, sent: u64, rng: &mut Rng) -> bbr::Report {
        let mut report = bbr::Report { limit: 1 << 60, newest: sent - 1, ..bbr::Report::default() };
        let comb = |report: &mut bbr::Report, range: (u16, u16)| {
            report.ranges = [range; bbr::RANGES];
            report.ranges[0].0 = 0;
            report.count = bbr::RANGES as u8;
        };
        match self {
            Reports::Newest => (report.ranges[0], report.count) = ((0, 1), 1),
            Reports::EverySecond => comb(&mut report, (1, 1)),
            Reports::AllButTheFirst => comb(&mut report, (1, 10)),
            Reports::Late => {
                report.newest = (sent - 1).saturating_sub(turn % 500);
                comb(&mut report, (1, 20));
            }
            Reports::Random => {
                report.newest -= rng.below(sent.min(1000));
                report.ranges = core::array::from_fn(|_| (rng.below(40) as u16, 1 + rng.below(40) as u16));
                report.ranges[0].0 = 0;
                report.count = bbr::RANGES as u8;
            }
            Reports::Limit => report.limit = 64_000 + turn,
        }
        report
    }
}

#[test]
fn reports_to_a_sender_of_bbr() {
    let (mut end, mut rng, mut sent) = (bbr_end(), Rng::stream(4, Purpose::Test, 0), 0);
    end.write(1 << 50);
    pump(&mut end, at(0), |_, segment| sent = sent.max(segment.number + 1));
    let mut most_kept = 0;
    // A report looks at the segments that its 16 ranges name and at those that may be lost: they
    // are remembered for 512 numbers.
    let segments = all_in_turn();
    assert_flat("reports to bbr", segments, 1100, |turn| {
        let reports = REPORTS[(turn / 4_000) as usize % REPORTS.len()];
        let report = reports.report(turn, sent, &mut rng);
        end.on_segment(at(turn), &bbr::Segment { flags: Flags::ACK, report, ..bbr::Segment::default() });
        let before = sent;
        pump(&mut end, at(turn), |_, segment| sent = sent.max(segment.number + 1));
        most_kept = most_kept.max(end.sender().kept());
        sent - before
    });
    assert!(sent > segments / 10, "{sent} segments left");
    assert!(most_kept < 20_000, "{most_kept} segments are remembered");
}

#[test]
fn acknowledgements_to_a_sender_of_trains() {
    let ([mut end, _], mut rng) = (open_trains(), Rng::stream(5, Purpose::Test, 0));
    end.write(1 << 50);
    let mut stamp = 0;
    // Each ACK, and each segment that it lets leave, looks at all of a window of 255 segments a few
    // times.
    assert_flat("acknowledgements of trains", all_in_turn(), 10 * 255, |turn| {
        let flags = Flags::ACK;
        let beyond = rng.next_u64() as u32;
        let feedback = train::Feedback { segments: 1, ..train::Feedback::default() };
        let ack = train::Segment { ts_ecr: stamp, beyond, flags, window: 255, feedback, ..train::Segment::default() };
        end.on_segment(at(turn), &ack, Arrival::default());
        let mut left = 0;
        pump(&mut end, at(turn), |_, segment| (stamp, left) = (segment.ts_val, left + 1));
        left
    });
}

#[test]
fn acknowledgements_to_a_sender_of_tcp_with_sack() {
    let ([mut end, _], mut rng) = (open_tcp(&tcp_config()), Rng::stream(6, Purpose::Test, 0));
    end.write(Time(1), 1 << 50);
    let mut most_out = 0;
    // Each ACK, and each segment that it lets leave, looks at all of the window a few times.
    assert_flat("acknowledgements of tcp", all_in_turn(), 10 * u64::from(WINDOW), |turn| {
        let (una, out) = (end.acknowledged(), end.outstanding_end() - end.acknowledged());
        most_out = most_out.max(out);
        // The window grows for a while, and then the first byte is never acknowledged, and any
        // blocks beyond it are.
        let is_honest = turn % 600 < 100;
        let blocks: [(u64, u64); 4] = core::array::from_fn(|_| {
            let start = una + 1 + rng.below(u64::from(WINDOW) * 1400);
            (start, start + rng.below(8_000))
        });
        let ack = if is_honest { una + out } else { una };
        let segment = tcp::Segment { ack, flags: Flags::ACK, window: 1 << 30, ..tcp::Segment::default() };
        end.on_segment(at(turn), &segment, if is_honest { &[] } else { &blocks }, Arrival::default());
        let mut left = 0;
        pump(&mut end, at(turn), |_, _| left += 1);
        left
    });
    assert!(most_out > 100 * 1400, "{most_out} bytes under way");
}

#[test]
fn segments_and_acknowledgements_of_tpa() {
    let Some(Config::Tpa(config)) = names::lookup("tpa-ap-2") else { panic!("tpa-ap-2 is a TPA") };
    let mut ends = [Role::Sender, Role::Receiver].map(|role| tpa::Connection::new(&config, role));
    ends[0].open(Time::ZERO);
    for _ in 0..4 {
        for side in 0..2 {
            let mut segments = alloc::vec::Vec::new();
            pump(&mut ends[side], Time(1), |_, segment| segments.push(segment));
            for segment in &segments {
                ends[1 - side].on_segment(Time(1), segment, Arrival::default());
            }
        }
    }
    let ([mut end, _], mut rng) = (ends, Rng::stream(7, Purpose::Test, 0));
    end.write_endless(Time(1));
    // A block has 12 segments, and 64 transmissions are remembered.
    assert_flat("tpa", all_in_turn(), 12 * 64, |turn| {
        let random = rng.next_u64();
        let segment = tpa::Segment {
            block: (random % 3) as u16,
            place: 1 << (random >> 8 & 7),
            payload: 1460,
            ack_block: (random >> 16 & 3) as u16,
            ack_places: (random >> 24) as u16 & 0xfff,
            ack_tx: (random >> 40) as u8,
            window: 12,
            flags: Flags::ACK,
            ..tpa::Segment::default()
        };
        end.on_segment(at(turn), &segment, Arrival::default());
        let mut left = 0;
        pump(&mut end, at(turn), |_, _| left += 1);
        left
    });
}
