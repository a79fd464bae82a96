//! Tests of the window that adapts to the path, in virtual time, over a pipe with a rate, a delay,
//! a queue and losses.

use crate::tpa_common::{Net, ms};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::tpa::window::Rule;
use meshpace_transport::tpa::{Config, Segment, ack, names};

/// Length of TPA's header and of the headers of UDP, IP and encryption, bytes.
const AROUND: u64 = 12 + 8 + 20 + 32;

/// A pipe with the same properties in both directions.
#[derive(Clone, Copy)]
struct Pipe {
    bits_per_second: u64,
    /// Delay in each direction.
    delay: Duration,
    /// Lost packets in a hundred.
    lost: u64,
}

impl Pipe {
    /// Transmission time of a full segment in seconds.
    fn segment_s(self) -> f64 {
        ((1460 + AROUND) * 8) as f64 / self.bits_per_second as f64
    }

    /// Least round-trip time of a full segment and its ACK in seconds.
    fn round_trip_s(self) -> f64 {
        2.0 * self.delay.as_secs_f64() + self.segment_s() + (AROUND * 8) as f64 / self.bits_per_second as f64
    }
}

/// Result of a stream.
struct Run {
    net: Net,
    /// Changes of the window: time, and number of segments.
    windows: Vec<(Time, u8)>,
    /// Longest wait of a packet in the queue.
    longest_wait: Duration,
}

/// Configuration as over UDP: the end of a block is acknowledged at once, and the RTO has a margin
/// of 150 ms.
fn config(window: Rule) -> Config {
    let mut config = Config { window, ack_block_end: true, ..names::plain(3, ack::Rule::EveryOther) };
    config.rto.margin = Duration::from_millis(150);
    config.rto.initial = Duration::from_secs(1);
    config
}

/// Sends for `seconds`. `write` is called after each event, and every 10 ms, and returns the number
/// of further bytes of the application.
fn run(window: Rule, pipe: Pipe, seconds: u64, mut write: impl FnMut(&mut Net) -> u64) -> Run {
    let mut net = Net::new(&config(window), pipe.delay);
    net.ends[0].connection.open(Time::ZERO);
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    let (mut free, mut longest_wait) = ([Time::ZERO; 2], Duration::ZERO);
    let mut windows = Vec::new();
    let until = ms(1000 * seconds);
    while net.now < until {
        let more = write(&mut net);
        if more > 0 {
            net.write(0, more);
        }
        let soon = until.min(net.now + Duration::from_millis(10));
        net.step(soon, &mut |now, from, segment: &Segment| {
            let bytes = u64::from(segment.payload) + AROUND;
            let wait = free[from].since(now);
            longest_wait = longest_wait.max(wait);
            free[from] = now.max(free[from]) + Duration(bytes * 8 * 1_000_000_000 / pipe.bits_per_second);
            if rng.below(100) < pipe.lost { Vec::new() } else { vec![free[from].since(now)] }
        });
        let window = net.ends[0].connection.sender().window();
        if windows.last().is_none_or(|(_, last)| *last != window) {
            windows.push((net.now, window));
        }
    }
    Run { net, windows, longest_wait }
}

/// Bulk data: the application always has more.
fn bulk(net: &mut Net) -> u64 {
    let end = &net.ends[0];
    if end.written < end.connection.acknowledged() + 100_000 { 100_000 } else { 0 }
}

fn values(run: &Run) -> Vec<u8> {
    run.windows.iter().map(|(_, window)| *window).collect()
}

fn delivered(run: &Run) -> u64 {
    run.net.ends[1].connection.delivered()
}

#[test]
fn it_grows_with_each_block() {
    let pipe = Pipe { bits_per_second: 1_000_000_000, delay: Duration::from_millis(50), lost: 0 };
    let run = run(Rule::Auto, pipe, 5, bulk);
    let values = values(&run);
    assert!(values.is_sorted() && values[0] == 3 && values.last() == Some(&12), "{values:?}");
    // Two segments share an ACK, so with a window of 3 one segment may have to wait for the next
    // round. 12 segments take four or five round trips. With a window that is larger by half or
    // more they take at most three, and then two.
    let rounds = run.windows.last().unwrap().0.as_secs_f64() / pipe.round_trip_s();
    assert!(rounds < 1.0 + 5.0 + 3.0 + 2.0 + 0.1, "{rounds} round trips; {:?}", run.windows);
}

#[test]
fn it_stops_where_the_path_is_full() {
    // The path holds 4 segments: a round trip takes as long as sending 4, and 12 segments take this
    // time and that of 11 more.
    let pipe = Pipe { bits_per_second: 1_000_000, delay: Duration::from_micros(18_100), lost: 0 };
    let holds = pipe.round_trip_s() / pipe.segment_s();
    assert!((3.95..4.05).contains(&holds), "{holds}");
    let expected = (2.0 * 12.0 * holds / (holds + 11.0)).round();
    let run = run(Rule::Auto, pipe, 30, bulk);
    let values = values(&run);
    assert_eq!((values[0], f64::from(*values.last().unwrap())), (3, expected), "{values:?}");
    assert!(values.is_sorted(), "{values:?}");
    // The queue holds what the path does not, and is not longer.
    assert!(run.longest_wait.as_secs_f64() <= expected * pipe.segment_s(), "{:?}", run.longest_wait);
}

#[test]
fn a_long_fat_lossy_pipe_gets_the_largest_window_and_carries_more() {
    for (mbps, delay, holds) in [(5, 20, 16.0), (20, 100, 300.0)] {
        let pipe = Pipe { bits_per_second: mbps * 1_000_000, delay: Duration::from_millis(delay), lost: 2 };
        assert!(pipe.round_trip_s() / pipe.segment_s() > holds);
        let [three, auto] = [Rule::Agreed, Rule::Auto].map(|rule| run(rule, pipe, 60, bulk));
        assert_eq!(values(&three), [3], "cwnd_max");
        assert_eq!(auto.windows.last().unwrap().1, 12, "a block; {:?}", auto.windows);
        // This allows four blocks in the time of one, except for timeouts, which cost both the
        // same.
        let (auto, three) = (delivered(&auto), delivered(&three));
        eprintln!("{mbps} Mbit/s, {} ms: {} and {} kbit/s", 2 * delay, three * 8 / 60_000, auto * 8 / 60_000);
        assert!(auto > 2 * three, "{mbps} Mbit/s: {auto} and {three} bytes");
    }
}

#[test]
fn a_short_path_keeps_three() {
    // Rate and least round-trip time of four hops of 802.11 at 2 Mbit/s: 250 kbit/s and about 60
    // ms, 1.3 segments.
    for lost in [0, 5] {
        let pipe = Pipe { bits_per_second: 250_000, delay: Duration::from_millis(5), lost };
        let [three, auto] = [Rule::Agreed, Rule::Auto].map(|rule| run(rule, pipe, 300, bulk));
        assert!(2.0 * pipe.round_trip_s() / pipe.segment_s() < 2.6);
        assert_eq!(values(&auto), [3]);
        // ACKs for single segments cost almost nothing. With losses the two lose different packets.
        let (auto, three) = (delivered(&auto) as f64, delivered(&three) as f64);
        assert!(auto > if lost == 0 { 0.995 } else { 0.9 } * three, "{auto} and {three} bytes");
    }
}

#[test]
fn what_an_application_does_not_send_says_nothing_of_the_path() {
    // The path holds 4 segments, as above. After five seconds of bulk data a segment is sent every
    // 200 ms for a minute. The measured value is kept.
    let pipe = Pipe { bits_per_second: 1_000_000, delay: Duration::from_micros(18_100), lost: 0 };
    let mut due = 30;
    let after_bulk = run(Rule::Auto, pipe, 65, |net| {
        if net.now < ms(5000) {
            return bulk(net);
        }
        let more = net.now >= ms(200 * due) && net.ends[0].connection.sender().outstanding() == 0;
        due += u64::from(more);
        1460 * u64::from(more)
    });
    assert_eq!(after_bulk.windows.last().unwrap().1, 6, "{:?}", after_bulk.windows);
    // With keystrokes alone the window stays at 3.
    let mut written = 0;
    let keys = run(Rule::Auto, pipe, 60, |net| {
        let more = net.ends[0].connection.acknowledged() == written && written < 20_000;
        written += 64 * u64::from(more);
        64 * u64::from(more)
    });
    assert_eq!(values(&keys), [3]);
}

#[test]
fn a_path_that_becomes_slower_or_longer_is_measured_anew() {
    let mut rate = 5_000_000;
    let mut net = Net::new(&config(Rule::Auto), Duration::from_millis(20));
    net.ends[0].connection.open(Time::ZERO);
    let mut free = [Time::ZERO; 2];
    let mut drive = |net: &mut Net, rate: u64, until: u64| {
        loop {
            let more = bulk(net);
            net.write(0, more);
            let going = net.step(ms(until), &mut |now, from, segment: &Segment| {
                let bytes = u64::from(segment.payload) + AROUND;
                free[from] = now.max(free[from]) + Duration(bytes * 8 * 1_000_000_000 / rate);
                vec![free[from].since(now)]
            });
            if !going {
                return net.ends[0].connection.sender().window();
            }
        }
    };
    assert_eq!(drive(&mut net, rate, 5000), 12);
    // At a tenth of the rate a segment takes 24 ms. The earlier round-trip time holds two of them;
    // with their queue, four or five.
    rate /= 10;
    let window = drive(&mut net, rate, 20_000);
    assert!((3..=5).contains(&window), "{window}");
    // Once the earlier round-trip time is forgotten it is 64 ms: 2.7 segments.
    let window = drive(&mut net, rate, 90_000);
    assert!((5..=6).contains(&window), "{window}");
    // The route is reported to have changed, and is faster.
    rate *= 10;
    let path =
        meshpace_transport::PathInfo { hops: 2, rate: meshpace_core::Rate::from_mbps(2), received_power_dbm: None };
    net.ends[0].connection.on_path(path);
    assert_eq!(net.ends[0].connection.sender().window(), 3);
    assert_eq!(drive(&mut net, rate, 95_000), 12);
}

#[test]
fn a_number_of_ones_own_is_heeded_and_no_more_than_the_peer_takes_leaves() {
    let pipe = Pipe { bits_per_second: 5_000_000, delay: Duration::from_millis(20), lost: 0 };
    for window in [2, 5, 12] {
        let run = run(Rule::Fixed(window), pipe, 5, bulk);
        assert_eq!(values(&run), [window]);
    }
    // The peer accepts four segments at a time from the third second on.
    let mut most = [0; 2];
    run(Rule::Auto, pipe, 5, |net| {
        let outstanding = net.ends[0].connection.sender().outstanding();
        match net.now {
            now if now < ms(3000) => most[0] = outstanding.max(most[0]),
            now if now < ms(3200) => net.ends[1].connection.set_receive_window(now, 4),
            _ => most[1] = outstanding.max(most[1]),
        }
        bulk(net)
    });
    assert_eq!(most, [12, 4]);
}
