//! Tests with two ends over a link in virtual time: one bottleneck with a queue, a delay, and loss
//! in both directions.

mod room;
mod table;

use super::*;
use crate::closing::End;
use crate::flags::Flags;
use crate::output::{Machine, Output, pump};
use crate::ranges::Received;
use crate::stats::Stats;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use meshpace_core::{Duration, Time};

const SEGMENT: u32 = 1400;
/// Bytes beside the payload: IP, UDP, tag, number, authentication, header.
const AROUND: u64 = 20 + 8 + 32 + 13;
const BUFFER: u64 = 4 << 20;

/// Properties of the link.
#[derive(Clone, Copy)]
struct Link {
    bits_per_second: f64,
    /// One-way delay.
    delay: Duration,
    /// Longest wait in the queue of the link; packets that would wait for longer are dropped.
    queue: Duration,
    /// Share of packets that are lost, in each direction.
    loss: f64,
    /// Every n-th packet takes a quarter of a round trip longer; 0 for none.
    late: u64,
    /// Period in which no packet passes.
    outage: (Time, Time),
}

impl Link {
    fn new(megabits: f64, rtt_ms: u64, loss: f64) -> Link {
        Link {
            bits_per_second: megabits * 1e6,
            delay: Duration::from_micros(500 * rtt_ms),
            queue: Duration::from_millis(200),
            loss,
            late: 0,
            outage: (Time::NEVER, Time::NEVER),
        }
    }
}

/// Two ends, and the packets in flight between them.
struct World {
    link: Link,
    now: Time,
    ends: [Connection; 2],
    wakeups: [Time; 2],
    /// Packets by time of arrival: time, order and addressee, index in `segments`.
    under_way: BinaryHeap<Reverse<(Time, u64, usize)>>,
    segments: Vec<Segment>,
    free_at: [Time; 2],
    random: u64,
    packets: u64,
    /// Data of the other end's stream that each end has kept.
    kept: [Received; 2],
    takes: bool,
    longest_wait: Duration,
    /// Bytes that the first application may write beyond what the second one has taken and
    /// announced half a round trip ago, and the announcements with their times. `None` for a writer
    /// that waits for nothing.
    credit: Option<u64>,
    told: VecDeque<(Time, u64)>,
    handed: u64,
}

impl World {
    fn new(link: Link, seed: u64) -> World {
        World::with_credit(link, seed, 64 << 10)
    }

    /// Creates ends that may send `first_credit` bytes before they get more credit.
    fn with_credit(link: Link, seed: u64, first_credit: u64) -> World {
        let config = Config { segment: SEGMENT, receive_buffer: BUFFER, first_credit };
        World {
            link,
            now: Time(1_000_000_000),
            ends: [Connection::new(&config), Connection::new(&config)],
            wakeups: [Time::ZERO; 2],
            under_way: BinaryHeap::new(),
            segments: Vec::new(),
            free_at: [Time::ZERO; 2],
            random: seed,
            packets: 0,
            kept: [Received::default(), Received::default()],
            takes: true,
            longest_wait: Duration::ZERO,
            credit: None,
            told: VecDeque::new(),
            handed: 0,
        }
    }

    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn work(&mut self, end: usize) {
        let mut leaving = Vec::new();
        self.wakeups[end] = pump(&mut self.ends[end], self.now, |_, segment| leaving.push(segment));
        for segment in leaving {
            let is_there = segment.payload == 0 || segment.seq >= self.ends[end].acknowledged();
            assert!(is_there, "the bytes of {segment:?} are gone: {} have arrived", self.ends[end].acknowledged());
            self.carry(end, segment);
        }
    }

    fn carry(&mut self, from: usize, segment: Segment) {
        self.packets += 1;
        let Link { bits_per_second, delay, queue, loss, late, outage } = self.link;
        let size = AROUND + u64::from(segment.payload) + u64::from(segment.report.count) * 4;
        let begins = self.free_at[from].max(self.now);
        if begins.since(self.now) > queue || self.draw() < loss || (outage.0 <= self.now && self.now < outage.1) {
            return;
        }
        self.longest_wait = self.longest_wait.max(begins.since(self.now));
        let ends = begins + Duration::from_secs_f64(size as f64 * 8.0 / bits_per_second);
        self.free_at[from] = ends;
        let more = if late > 0 && self.packets.is_multiple_of(late) { Duration(delay.0 / 2) } else { Duration::ZERO };
        self.under_way.push(Reverse((ends + delay + more, self.packets << 1 | (1 - from as u64), self.segments.len())));
        self.segments.push(segment);
    }

    /// Runs until this many seconds after the start.
    fn run(&mut self, seconds: f64) {
        let until = Time(1_000_000_000) + Duration::from_secs_f64(seconds);
        (0..2).for_each(|end| self.work(end));
        loop {
            let arrival = self.under_way.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let told = self.told.front().map_or(Time::NEVER, |(at, _)| *at);
            let next = arrival.min(told).min(self.wakeups[0]).min(self.wakeups[1]);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            if told <= self.now {
                let (_, limit) = self.told.pop_front().unwrap();
                self.hand_over(limit);
            }
            if arrival <= self.now {
                let Reverse((_, order, place)) = self.under_way.pop().unwrap();
                let (to, segment) = ((order & 1) as usize, self.segments[place]);
                if self.ends[to].on_segment(self.now, &segment) {
                    self.kept[to].insert(segment.seq, segment.seq + u64::from(segment.payload));
                }
                if self.takes {
                    let delivered = self.ends[to].delivered();
                    assert_eq!(delivered, self.kept[to].next(), "what is delivered was kept");
                    self.take(to);
                }
                self.work(to);
            }
            (0..2)
                .filter(|end| self.wakeups[*end] <= self.now)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|end| self.work(end));
        }
    }

    fn take(&mut self, end: usize) {
        let untaken = self.ends[end].delivered() - self.ends[end].receiver_taken();
        self.ends[end].take(untaken, || true);
        if end == 1 && untaken > 0 {
            let limit = self.credit.map(|credit| self.ends[end].delivered() + credit);
            self.told.extend(limit.map(|limit| (self.now + self.link.delay, limit)));
        }
    }

    /// The first application writes all bytes up to `limit`.
    fn hand_over(&mut self, limit: u64) {
        self.ends[0].write(limit.saturating_sub(self.handed));
        self.handed = self.handed.max(limit);
        self.work(0);
    }
}

/// Share of the link's capacity that a stream gets in this many seconds, and share of retransmitted
/// segments. The first three seconds, in which the stream looks for the rate and overflows the
/// queue, are not counted.
fn share(link: Link, seconds: f64, seed: u64) -> (f64, f64) {
    let mut world = World::new(link, seed);
    world.ends[0].write(1 << 40);
    world.run(3.0);
    let (before, stats) = (world.ends[1].delivered(), *world.ends[0].stats());
    world.run(seconds);
    let bits = (world.ends[1].delivered() - before) as f64 * 8.0 / (seconds - 3.0);
    let most = link.bits_per_second * (1.0 - link.loss) * f64::from(SEGMENT) / (f64::from(SEGMENT) + AROUND as f64);
    let now = world.ends[0].stats();
    let again = (now.retransmissions - stats.retransmissions) as f64 / (now.segments_sent - stats.segments_sent) as f64;
    (bits / most, again)
}

#[test]
fn it_fills_the_links_that_kernels_fill() {
    for (megabits, rtt, loss) in [(5.0, 40, 0.02), (20.0, 10, 0.0), (20.0, 200, 0.005), (1.0, 4, 0.0)] {
        let (share, again) = share(Link::new(megabits, rtt, loss), 30.0, 7);
        // A probe of the RTT every 10 s and the probes of the rate cost some per cent.
        assert!(share > 0.92, "{megabits} Mbit/s, {rtt} ms, {loss}: {share:.3}");
        // What is lost is sent again, and little else: an ACK that is lost is made up for by the next.
        assert!(again < loss + 0.02, "{megabits} Mbit/s, {rtt} ms, {loss}: {again:.3} sent again");
    }
}

#[test]
fn a_window_that_grows_with_what_is_read_holds_nobody_back() {
    for (megabits, rtt) in [(5.0, 40), (20.0, 200), (100.0, 50), (160.0, 200), (1000.0, 5)] {
        let delivered = |first_credit: u64, seconds: f64| {
            let mut world = World::with_credit(Link::new(megabits, rtt, 0.0), 7, first_credit);
            world.ends[0].write(1 << 40);
            world.run(seconds);
            world.ends[1].delivered() as f64
        };
        for round_trips in [5.0, 10.0, 20.0] {
            let seconds = round_trips * rtt as f64 / 1000.0;
            let (grown, full) = (delivered(64 << 10, seconds), delivered(BUFFER, seconds));
            std::println!("{megabits} Mbit/s, {rtt} ms, {round_trips} round trips: {:.3} of {full}", grown / full);
            assert!(grown >= 0.95 * full, "{megabits} Mbit/s, {rtt} ms, {round_trips} round trips: {grown} of {full}");
        }
    }
}

#[test]
fn a_peer_whose_data_nobody_reads_may_send_no_more_than_before_the_first_word() {
    let mut end = Connection::new(&Config { segment: SEGMENT, receive_buffer: BUFFER, first_credit: 64 << 10 });
    let mut stats = (0, 0);
    // A byte in every page of the whole buffer, so that all of it would have to be there.
    for number in 0..BUFFER / 4096 {
        let segment = Segment { number, seq: 4096 * number + 1, payload: 1, ..Segment::default() };
        let is_kept = end.on_segment(Time(1 + number), &segment);
        stats = if is_kept { (stats.0 + 1, stats.1) } else { (stats.0, stats.1 + 1) };
    }
    assert_eq!(stats, (16, BUFFER / 4096 - 16), "of 64 KiB");
    // Once as much was read, four times that.
    let whole = [(0, 1 << 15), (1 << 15, 1 << 15)];
    for (place, (seq, payload)) in (10_000..).zip(whole) {
        assert!(end.on_segment(Time(1 << 20), &Segment { number: place, seq, payload, ..Segment::default() }));
    }
    end.take(1 << 16, || true);
    assert_eq!(end.receive_window(), 1 << 18);
    // While memory is scarce, the room beyond what is read stays the same, so that the offset rises
    // by the bytes that are read.
    for (place, half) in (20_000..).zip([2, 3]) {
        let segment = Segment { number: place, seq: half << 15, payload: 1 << 15, ..Segment::default() };
        assert!(end.on_segment(Time(1 << 20), &segment));
    }
    end.take(1 << 16, || false);
    assert_eq!(end.receive_window(), 1 << 18);
    let report = core::iter::from_fn(|| end.poll(Time(1 << 21)).segment()).last().expect("a report is due");
    assert_eq!(report.report.limit, (1 << 17) + (1 << 18));
    // Once there is memory again, the room is four times the number of bytes read.
    end.take(0, || true);
    assert_eq!(end.receive_window(), 1 << 19);
}

#[test]
fn a_writer_that_waits_for_credit_leaves_the_start_although_its_rates_are_the_writers() {
    // Losses keep the reader waiting, so that credit runs out, and rounds in which it did say nothing of whether the pipe is full.
    for seed in 1..=5 {
        let mut world = World::new(Link::new(20.0, 200, 0.005), seed);
        world.credit = Some(2 << 20);
        world.hand_over(2 << 20);
        world.run(3.0);
        let before = *world.ends[0].stats();
        assert_ne!(world.ends[0].control().phase(), Phase::Startup, "seed {seed}");
        world.run(13.0);
        let now = world.ends[0].stats();
        let again =
            (now.retransmissions - before.retransmissions) as f64 / (now.segments_sent - before.segments_sent) as f64;
        let share = now.acked_bytes.saturating_sub(before.acked_bytes) as f64 * 8.0 / 10.0 / 20e6;
        assert!(share > 0.85 && again < 0.03, "seed {seed}: {share:.3}, {again:.3} sent again");
    }
}

#[test]
fn it_holds_no_long_queue() {
    // The queue has room for 2 s: whoever fills it until it overflows makes everybody wait.
    let link = Link { queue: Duration::from_secs(2), ..Link::new(5.0, 40, 0.0) };
    let mut world = World::new(link, 3);
    world.ends[0].write(1 << 40);
    world.run(3.0);
    world.longest_wait = Duration::ZERO;
    world.run(20.0);
    // A window of two path's worth, and what is allowed for bunches of ACKs.
    assert!(world.longest_wait < Duration::from_millis(80), "{:?}", world.longest_wait);
}

#[test]
fn reordering_is_not_taken_for_loss_for_long() {
    let link = Link { late: 10, ..Link::new(10.0, 80, 0.0) };
    let (share, again) = share(link, 20.0, 5);
    assert!(share > 0.9 && again < 0.02, "{share:.3}, {again:.3} sent again");
}

#[test]
fn both_streams_arrive_whole_and_close_whatever_is_lost() {
    for seed in 1..40 {
        let loss = 0.3 * (seed as f64) / 40.0;
        let mut world = World::new(Link::new(10.0, 20, loss), seed);
        world.ends[0].write(300_000);
        world.ends[1].write(70_001);
        world.run(0.3);
        world.ends[0].close();
        world.run(0.6);
        world.ends[1].write(1);
        world.ends[1].close();
        world.run(60.0);
        assert_eq!(world.kept[1].next(), 300_000, "seed {seed}");
        assert_eq!(world.kept[0].next(), 70_002, "seed {seed}");
        let ends = world.ends.each_ref().map(Connection::end);
        assert!(ends.contains(&Some(End::Closed)), "seed {seed}: {ends:?}");
        assert!(world.ends.iter().all(Connection::peer_has_closed), "seed {seed}");
        assert!(world.ends.iter().all(|end| end.sender().is_finished()), "seed {seed}");
    }
}

#[test]
fn an_end_that_nobody_writes_to_is_silent() {
    let mut world = World::new(Link::new(10.0, 20, 0.0), 1);
    world.ends[0].write(5000);
    world.run(1.0);
    let packets = world.packets;
    world.run(100.0);
    assert_eq!(world.packets, packets);
    assert_eq!(world.wakeups, [Time::NEVER; 2]);
}

#[test]
fn a_reader_that_is_slow_holds_back_its_writer_and_loses_nothing() {
    let mut world = World::new(Link::new(100.0, 10, 0.05), 11);
    world.takes = false;
    world.ends[0].write(3 * BUFFER);
    world.run(10.0);
    // As much as may be sent before anything was read.
    assert_eq!(world.ends[1].delivered(), 64 << 10);
    // It takes something, and the segment that says so may be lost: the writer asks.
    world.take(1);
    world.run(11.0);
    world.takes = true;
    world.run(40.0);
    assert_eq!(world.ends[1].delivered(), 3 * BUFFER);
}

#[test]
fn one_message_that_took_long_does_not_slow_down_what_follows() {
    // A few bytes, and a peer that does not run for seconds: by their rate the next segment would leave minutes later.
    let mut world = World::new(Link::new(100.0, 16_000, 0.0), 3);
    world.ends[0].write(18);
    world.run(20.0);
    assert_eq!(world.ends[0].acknowledged(), 18);
    world.link.delay = Duration::from_millis(10);
    world.ends[0].write(100_000);
    // One round trip of before, and then those of now.
    world.run(60.0);
    assert_eq!(world.ends[1].delivered(), 100_018);
}

#[test]
fn an_outage_at_the_start_does_not_slow_down_what_follows() {
    // A few bytes and nine full segments are lost. The first report is of the few bytes, sent again, and of eight losses: as many as end the
    // start. By the rate of those bytes the next segment would leave more than a minute later.
    let start = Time(1_000_000_000);
    let link = Link { outage: (start, start + Duration::from_millis(500)), ..Link::new(100.0, 10, 0.0) };
    let mut world = World::new(link, 3);
    world.ends[0].write(18);
    world.run(0.005);
    world.ends[0].write(100_000);
    world.run(0.6);
    assert_eq!(world.ends[0].sender().cut(), 18 + 9 * u64::from(SEGMENT), "not what the test is about");
    // The probe timeout is over after a second, and what was lost leaves again.
    world.run(3.0);
    assert_eq!(world.ends[1].delivered(), 100_018);
}

#[test]
fn after_an_outage_it_goes_on_within_a_second() {
    let start = Time(1_000_000_000);
    let link =
        Link { outage: (start + Duration::from_secs(3), start + Duration::from_secs(5)), ..Link::new(5.0, 40, 0.0) };
    let mut world = World::new(link, 2);
    world.ends[0].write(1 << 40);
    world.run(5.0);
    let before = world.ends[1].delivered();
    world.run(6.5);
    assert!(world.ends[1].delivered() > before + 100_000, "{}", world.ends[1].delivered() - before);
    let before = world.ends[1].delivered();
    world.run(10.5);
    let rate = (world.ends[1].delivered() - before) as f64 * 8.0 / 4.0;
    assert!(rate > 4e6, "{rate}");
}

#[test]
fn a_reset_ends_the_other_end_and_nothing_more_is_said() {
    let mut world = World::new(Link::new(10.0, 20, 0.0), 1);
    world.ends[0].write(1 << 30);
    world.run(0.5);
    world.ends[0].abort();
    world.run(1.0);
    assert_eq!(world.ends.each_ref().map(Connection::end), [Some(End::Aborted), Some(End::Reset)]);
    let packets = world.packets;
    world.run(10.0);
    assert_eq!(world.packets, packets);
}

#[test]
fn a_question_is_answered() {
    let mut world = World::new(Link::new(10.0, 20, 0.0), 1);
    world.takes = false;
    world.ends[0].probe();
    world.run(0.05);
    assert_eq!((world.packets, world.ends[1].stats().acks_sent), (2, 1));
}

#[test]
fn questions_do_not_keep_what_is_lost_from_being_sent_again() {
    let start = Time(1_000_000_000);
    let link = Link { outage: (start, start + Duration::from_millis(10)), ..Link::new(10.0, 100, 0.0) };
    let mut world = World::new(link, 1);
    world.ends[0].write(100);
    // The only segment is lost. From then on the peer is asked, and reports, five times a second, which is less than a probe timeout.
    for fifth in 1..=25 {
        world.run(0.2 * f64::from(fifth));
        world.ends[0].probe();
    }
    world.run(5.2);
    assert_eq!(world.ends[1].delivered(), 100);
}

#[test]
fn reports_name_what_has_arrived() {
    // Against a set of numbers, in any order.
    for seed in 1..200_u64 {
        let mut world = World::new(Link::new(1.0, 1, 0.0), seed);
        let mut end = world.ends[0].clone();
        let mut arrived = alloc::collections::BTreeSet::new();
        for _ in 0..60 {
            let number = (world.draw() * 40.0) as u64;
            arrived.insert(number);
            end.on_segment(world.now, &Segment { number, seq: number, payload: 1, ..Segment::default() });
            end.on_segment(world.now, &Segment { flags: Flags::SYN, ..Segment::default() });
            let report = end.poll(world.now).segment().unwrap().report;
            let named: Vec<u64> = report.numbers().flat_map(|(first, last)| first..=last).collect();
            assert!(named.iter().all(|number| arrived.contains(number)), "seed {seed}");
            assert_eq!(named.iter().max(), arrived.iter().max(), "seed {seed}");
            // Fewer ranges than there is room for: all are named.
            if usize::from(report.count) < RANGES {
                assert_eq!(named.len(), arrived.len(), "seed {seed}: {named:?}, {arrived:?}");
            }
            if arrived.len() < RANGES {
                assert_eq!(named.len(), arrived.len());
            }
        }
    }
}

#[test]
fn reports_that_cannot_be_true_change_nothing() {
    let mut world = World::new(Link::new(10.0, 20, 0.0), 9);
    world.ends[0].write(1 << 30);
    world.run(0.2);
    let before = (world.ends[0].acknowledged(), world.ends[0].control().rate());
    let wrong = [
        Report { newest: u64::MAX, count: 1, ranges: [(0, u16::MAX); RANGES], ..Report::default() },
        Report { expected: u64::MAX, ..Report::default() },
        Report { newest: 1 << 40, count: 16, ranges: [(9, 0); RANGES], ..Report::default() },
    ];
    for report in wrong {
        world.ends[0].on_segment(world.now, &Segment { flags: Flags::ACK, report, ..Segment::default() });
    }
    assert_eq!((world.ends[0].acknowledged(), world.ends[0].control().rate()), before);
    // Ranges that go below the first number are cut short.
    let below = Report { newest: 3, count: 16, ranges: [(2, 60_000); RANGES], ..Report::default() };
    assert_eq!(below.numbers().count(), 0);
    // More than there is room for, and what lies beyond the end of the stream.
    let (now, end) = (world.now, &mut world.ends[1]);
    assert!(!end.on_segment(now, &Segment { seq: 1 << 60, payload: 1400, number: 1 << 50, ..Segment::default() }));
    let delivered = end.delivered();
    assert!(!end.on_segment(now, &Segment { flags: Flags::FIN, seq: delivered - 1, ..Segment::default() }));
    assert!(!end.peer_has_closed());
}

/// Sorted delays of messages of 200 bytes, sent this many milliseconds apart, over a path of 300 ms
/// and 1 Mbit/s with this loss in each direction; and the counters of both ends.
fn messages(apart_ms: u64, loss: f64) -> (Vec<Duration>, Stats) {
    let mut world = World::new(Link::new(1.0, 300, loss), 5);
    let (mut delays, mut arrived) = (Vec::new(), 0);
    for ms in 0..60_000 {
        if ms % apart_ms == 0 {
            world.ends[0].write(200);
            world.work(0);
        }
        world.run((ms + 1) as f64 * 1e-3);
        while arrived < world.ends[1].delivered() / 200 {
            delays.push(Duration::from_millis(ms + 1 - arrived * apart_ms));
            arrived += 1;
        }
    }
    delays.sort_unstable();
    let mut stats = *world.ends[0].stats();
    stats += *world.ends[1].stats();
    (delays, stats)
}

#[test]
fn small_messages_wait_for_nobody_and_what_is_lost_comes_with_the_next() {
    let quantile = |delays: &[Duration], share: f64| delays[(delays.len() as f64 * share) as usize];
    let (delays, _) = messages(40, 0.0);
    // Half a round trip, and no more: the one before is still under way for seven others.
    assert!(quantile(&delays, 0.99) < Duration::from_millis(160), "{:?}", quantile(&delays, 0.99));
    let (delays, stats) = messages(40, 0.1);
    assert!(delays.len() > 1480 && stats.timeouts < 100, "{} arrived, {stats:?}", delays.len());
    // One in ten is lost, and a repetition that was asked for would take three times as long as this.
    assert!(quantile(&delays, 0.95) < Duration::from_millis(160 + 40), "{:?}", quantile(&delays, 0.95));
    assert!(quantile(&delays, 0.8) < Duration::from_millis(160), "{:?}", quantile(&delays, 0.8));
}

#[test]
fn reports_of_small_messages_are_few_where_those_are_many() {
    // Two segments are 14 messages of 200 bytes; a report waits for 300 ms, 7 messages of those that are 50 ms apart, and for nobody 60 ms.
    for (apart_ms, at_most) in [(10, 0.075), (25, 0.085), (50, 0.15), (75, 1.01), (100, 1.01)] {
        let (delays, stats) = messages(apart_ms, 0.0);
        let reports = stats.acks_sent as f64 / delays.len() as f64;
        assert!(reports < at_most, "{apart_ms} ms: {reports} for a message");
        assert_eq!((stats.timeouts, stats.retransmissions), (0, 0), "{apart_ms} ms");
    }
}

#[test]
fn small_messages_of_one_moment_share_a_segment() {
    // Over a round trip of 40 ms; 300 bytes of which the second and third hundred come half a millisecond later, ten times.
    let mut world = World::new(Link::new(1.0, 40, 0.0), 5);
    let mut late = Duration::ZERO;
    for moment in 0..10_u32 {
        let at = f64::from(moment) * 0.1;
        for part in 0..3_u32 {
            world.run(at + f64::from(part.min(1)) * 0.5e-3);
            world.ends[0].write(100);
            world.work(0);
        }
        let all = 300 * (u64::from(moment) + 1);
        let arrived = (0..100_u32).find(|ms| {
            world.run(at + f64::from(*ms) * 1e-3);
            world.ends[1].delivered() == all
        });
        if moment >= 2 {
            late = late.max(Duration::from_millis(u64::from(arrived.unwrap())));
        }
    }
    // Of the first moment three, before the round trip is known, and of the second three, before it is known that they come together.
    let stats = *world.ends[0].stats();
    assert!(stats.segments_sent == 3 + 3 + 8 && stats.timeouts == 0, "{stats:?}");
    // Half a round trip, the time on the link of what is repeated, too, and a millisecond.
    assert!(late < Duration::from_millis(20 + 8 + 1 + 1), "{late:?}");
}

#[test]
fn who_never_has_company_waits_for_none() {
    // Keystrokes over 40 ms: half of that, and 64 bytes with what is around them at 1 Mbit/s.
    let mut world = World::new(Link::new(1.0, 40, 0.0), 5);
    for stroke in 0..50_u32 {
        world.run(f64::from(stroke) * 0.2);
        world.ends[0].write(64);
        world.work(0);
        world.run(f64::from(stroke) * 0.2 + 20e-3 + 1.2e-3);
        assert_eq!(world.ends[1].delivered(), 64 * (u64::from(stroke) + 1), "{stroke}");
    }
}

#[test]
fn the_last_of_many_small_messages_is_sent_again_soon_if_it_is_lost() {
    // Over a round trip of 40 ms, and as of 10 the last one alone is lost.
    let mut link = Link::new(1.0, 40, 0.0);
    let last = Time(1_000_000_000) + Duration::from_millis(9 * 25);
    link.outage = (last, last + Duration::from_millis(10));
    let mut world = World::new(link, 5);
    for message in 0..10 {
        world.ends[0].write(200);
        world.work(0);
        world.run(f64::from(message + 1) * 25e-3);
    }
    // A report waits 300 ms for others at most, and 60 ms for nobody; the timer for that, the round trip and some of its variation.
    let arrived = (250..1000).find(|ms| {
        world.run(f64::from(*ms) * 1e-3);
        world.ends[1].delivered() == 2000
    });
    assert!(arrived.is_some_and(|ms| ms < 225 + 300 + 2 * 40 + 20), "{arrived:?} ms");
    assert_eq!(world.ends[0].stats().timeouts, 1);
}

#[test]
fn what_small_messages_deliver_does_not_hold_back_bulk() {
    // Ten seconds of little, and then a megabyte: as soon as without.
    let finished = |little: bool| {
        let mut world = World::new(Link::new(5.0, 40, 0.0), 9);
        for step in 0..100 {
            if little {
                world.ends[0].write(100);
                world.work(0);
            }
            world.run(f64::from(step + 1) * 0.1);
        }
        let before = world.ends[1].delivered();
        world.ends[0].write(1_000_000);
        world.work(0);
        (10_001..30_000).find(|ms| {
            world.run(f64::from(*ms) * 1e-3);
            world.ends[1].delivered() == before + 1_000_000
        })
    };
    let [without, with] = [false, true].map(|little| finished(little).unwrap() - 10_000);
    assert!(with < without + 300, "{with} ms, without messages {without} ms");
}

#[test]
fn the_window_is_two_products_and_what_reports_and_hosts_gather() {
    // Sections 4.2.3 and 4.2.3.2: gain 2 of rate times least RTT, and three times what is sent at once, which are two segments. As Linux has it
    // since 2019, also what came beyond the rate: a report of a whole product at once.
    let (rate, rtt, product) = (125_000.0, Duration::from_millis(40), 5000);
    let mut control = control::Control::new(SEGMENT);
    for round in 1..=60 {
        let news = flight::News {
            bytes: product,
            rtt: Some(rtt),
            rate: Some(rate),
            delivered_before: product * (round - 1),
            ..Default::default()
        };
        control.on_report(Time(round * 40_000_000), &news, product, product * round);
    }
    assert_eq!(control.phase(), control::Phase::ProbeRate);
    assert_eq!(control.window(), 2 * product + 6 * u64::from(SEGMENT) + product);
}

#[test]
fn a_loss_ends_the_probing_for_more_and_without_one_it_waits_for_its_queue() {
    // Reports of a path of 125 kB/s and 40 ms, one per round trip, with what it holds under way and no more.
    let (rate, rtt, product) = (125_000.0, Duration::from_millis(40), 5000);
    let gains = |lost_at: u64| {
        let mut control = control::Control::new(SEGMENT);
        let mut gains = Vec::new();
        for round in 1..=60 {
            let lost = u32::from(round == lost_at);
            let (delivered, delivered_before) = (product * round, product * (round - 1));
            let news = flight::News {
                bytes: product,
                lost,
                rtt: Some(rtt),
                rate: Some(rate),
                delivered_before,
                ..Default::default()
            };
            control.on_report(Time(round * 41_000_000), &news, product, delivered);
            gains.push(control.pacing_rate() / (0.99 * rate));
        }
        gains
    };
    // 1.25 of the rate would need a quarter more under way: it waits for that without end.
    let steady = gains(0);
    let probes = steady.iter().position(|gain| (gain - 1.25).abs() < 1e-9).unwrap();
    assert!(steady[probes..].iter().all(|gain| (gain - 1.25).abs() < 1e-9), "{steady:?}");
    // A loss three rounds later ends it, and what was too much is drained.
    let lossy = gains(probes as u64 + 4);
    assert_eq!(lossy[..probes + 3], steady[..probes + 3]);
    assert!((lossy[probes + 3] - 0.75).abs() < 1e-9, "{lossy:?}");
}

#[test]
fn skipped_numbers_cost_an_honest_peer_nothing() {
    let mut world = World::new(Link::new(10.0, 40, 0.0), 9);
    world.ends[0].write(3_000_000);
    for step in 0..200 {
        world.ends[0].skip_number();
        world.run(0.02 * f64::from(step));
    }
    world.run(30.0);
    assert_eq!((world.kept[1].next(), world.ends[0].acknowledged()), (3_000_000, 3_000_000));
    let stats = world.ends[0].stats();
    assert_eq!((stats.fast_retransmits, stats.retransmissions), (0, 0), "a number without a segment is not lost");
    assert_eq!(world.ends.each_ref().map(Connection::end), [None, None]);
    // Reports name the numbers of the last 1024 segments alone, so that old gaps take no room in them.
    let last = world.segments.iter().rfind(|segment| segment.flags.has(Flags::ACK)).unwrap();
    assert!(usize::from(last.report.count) <= RANGES && last.report.numbers().all(|(first, _)| first > 0));
}

#[test]
fn who_reports_a_skipped_number_is_reset() {
    let mut world = World::new(Link::new(10.0, 40, 0.0), 9);
    world.ends[0].write(3_000_000);
    world.run(0.1);
    let sent =
        |world: &World| world.segments.iter().filter(|segment| segment.payload > 0).map(|segment| segment.number).max();
    let skipped = sent(&world).unwrap() + 1;
    world.ends[0].skip_number();
    world.run(0.2);
    assert!(sent(&world).unwrap() > skipped);
    let mut report = Report { newest: skipped + 1, limit: 1 << 30, count: 1, ..Report::default() };
    report.ranges[0] = (0, 1);
    let hear = |end: &mut Connection, report: Report| {
        end.on_segment(Time(1_300_000_000), &Segment { flags: Flags::ACK, report, ..Segment::default() });
        end.end()
    };
    assert_eq!(hear(&mut world.ends[0], report), None);
    report.ranges[0] = (0, 2);
    assert_eq!(hear(&mut world.ends[0], report), Some(End::Deceived));
    let Output::Transmit(last) = world.ends[0].poll(Time(1_300_000_000)) else { panic!("the peer is told") };
    assert!(last.flags.has(Flags::RST));
}

#[test]
fn a_new_path_is_measured_anew() {
    let mut world = World::new(Link::new(50.0, 20, 0.0), 4);
    world.ends[0].write(1 << 40);
    world.run(4.0);
    assert_eq!(world.ends[0].control().phase(), Phase::ProbeRate);
    let fast = world.ends[0].control().rate();
    world.ends[0].restart_control();
    let control = world.ends[0].control();
    assert_eq!((control.phase(), control.rate(), control.min_rtt()), (Phase::Startup, 0.0, None));
    assert!(control.window() <= 10 * u64::from(SEGMENT), "the first window of RFC 6928");
    // What was under way before comes from the path that is left, and is no sample of this one: it is slower by far.
    world.link = Link::new(1.0, 400, 0.0);
    world.run(4.3);
    let rate = world.ends[0].control().rate();
    assert!(rate < fast / 10.0, "{rate} after {fast}");
    assert!(world.ends[0].control().min_rtt().is_none_or(|rtt| rtt >= Duration::from_millis(390)));
}
