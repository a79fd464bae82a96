//! Conversations of two endpoints, segment by segment. Each test names the rule from which its
//! numbers follow. Conversations with many losses are compared with ns-2 in `ns2.rs`.

use crate::common::{Fate, From, Line, Pair, ms, tcp_of, wakeup};
use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::pacing::{self, AdaptiveConfig};
use meshpace_transport::tcp::{Flags, Segment as Tcp};
use meshpace_transport::{Arrival, Config, Endpoint, Machine, PathInfo, Role, Segment, names, tcp, udp};

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
const FIN_ACK: Flags = Flags::FIN.with(Flags::ACK);

fn newreno() -> tcp::Config {
    tcp::Config::default()
}

/// A pair with 30 ms in each direction, whose application has connected at time 0.
fn opened(config: tcp::Config) -> Pair {
    let mut pair = Pair::new(&Config::Tcp(config), Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair
}

fn deliver(_: &Line) -> Fate {
    Fate::Deliver
}

/// Loses the transmissions of the sender's data segments whose numbers from 0 are listed.
fn lose_data(lost: &[u64]) -> impl FnMut(&Line) -> Fate {
    let mut count = 0;
    move |line| {
        if line.from == From::Sender && line.segment.payload() > 0 {
            count += 1;
            if lost.contains(&(count - 1)) {
                return Fate::Lose;
            }
        }
        Fate::Deliver
    }
}

/// All segments: time in ms, whether from the sender, flags, seq, ack, payload.
fn said(pair: &Pair) -> Vec<(u64, bool, Flags, u64, u64, u16)> {
    let line = |line: &Line| {
        let segment = tcp_of(line);
        (line.at.0 / 1_000_000, line.from == From::Sender, segment.flags, segment.seq, segment.ack, segment.payload)
    };
    pair.record.iter().map(line).collect()
}

fn data_numbers(pair: &Pair) -> Vec<(u64, u64)> {
    pair.data(1460).into_iter().map(|(at, number, _)| (at.round() as u64, number)).collect()
}

#[test]
fn handshake_data_and_close() {
    // RFC 9293, figure 6: three-way handshake, with its last ACK on the first data segment, and the
    // FIN on the last data segment. The receiver has nothing to send and closes with its ACK. 2000
    // bytes are a full segment and 540 bytes, both within the initial window of 2. The round-trip
    // time is 60 ms.
    let mut pair = opened(newreno());
    pair.sender.write(Time::ZERO, 2000);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(100_000), &mut deliver);
    assert_eq!(
        said(&pair),
        [
            (0, true, SYN, 0, 0, 0),
            (30, false, SYN_ACK, 0, 0, 0),
            (60, true, ACK, 0, 0, 1460),
            (60, true, FIN_ACK, 1460, 0, 540),
            (90, false, ACK, 0, 1460, 0),
            (90, false, FIN_ACK, 0, 2001, 0),
            (120, true, ACK, 2001, 1, 0),
        ]
    );
    assert_eq!(pair.receiver.delivered(), 2000);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
    assert_eq!(pair.sender.stats().segments_sent, 2);
    assert_eq!(pair.next_event(), Time::NEVER);
}

#[test]
fn handshake_without_data_costs_a_bare_ack() {
    let mut pair = opened(newreno());
    pair.drive(ms(1000), &mut deliver);
    assert_eq!(said(&pair), [(0, true, SYN, 0, 0, 0), (30, false, SYN_ACK, 0, 0, 0), (60, true, ACK, 0, 0, 0)]);
}

#[test]
fn fin_is_repeated_until_acknowledged() {
    // The FIN leaves alone if the data has been sent before the close. It is lost twice and
    // repeated by the timer. RTO by RFC 6298 with samples of 6 ticks: for the SYN 6 + 4 * 3 = 18
    // ticks. The data is timed too, with a variation of 3 * 3/4. In each case the RTO stays at its
    // minimum of 200 ms. It is doubled after the first expiry.
    let mut pair = opened(newreno());
    pair.sender.write(Time::ZERO, 1460);
    pair.drive(ms(500), &mut deliver);
    pair.now = ms(500);
    pair.sender.close(pair.now);
    let mut fins = 0;
    pair.drive(ms(100_000), &mut |line| {
        fins += u32::from(line.from == From::Sender && tcp_of(line).flags.has(Flags::FIN));
        if (1..=2).contains(&fins) { Fate::Lose } else { Fate::Deliver }
    });
    let times: Vec<u64> =
        said(&pair).into_iter().filter(|line| line.1 && line.2.has(Flags::FIN)).map(|line| line.0).collect();
    assert_eq!(times, [500, 700, 1100]);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
    assert_eq!(pair.sender.stats().retransmissions, 0, "a FIN is not data");
}

#[test]
fn receivers_fin_is_repeated() {
    let mut pair = opened(newreno());
    pair.sender.write(Time::ZERO, 100);
    pair.sender.close(Time::ZERO);
    let mut lost = 0;
    pair.drive(ms(100_000), &mut |line| {
        // The last segment of the sender, its ACK of the receiver's FIN, is lost once.
        if line.from == From::Sender && tcp_of(line).ack == 1 && lost == 0 {
            lost = 1;
            return Fate::Lose;
        }
        Fate::Deliver
    });
    // The FIN leaves at 90 ms and again 3 s later, after the initial RTO.
    let times: Vec<u64> =
        said(&pair).into_iter().filter(|line| !line.1 && line.2.has(Flags::FIN)).map(|line| line.0).collect();
    assert_eq!(times, [90, 3090]);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
}

#[test]
fn slow_start_from_two() {
    // RFC 5681, section 3.1: one more segment per ACK. Rounds of 60 ms have 2, 4, 8, 16 segments.
    let mut pair = opened(newreno());
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(60 * 5 - 1), &mut deliver);
    let per_round: Vec<usize> =
        (1..=4).map(|round| data_numbers(&pair).iter().filter(|(at, _)| *at == 60 * round).count()).collect();
    assert_eq!(per_round, [2, 4, 8, 16]);
}

#[test]
fn window_limit_holds() {
    // With a receiver window of 5 there are never more than five segments between the last ACK seen
    // and the newest segment.
    let mut pair = opened(tcp::Config { max_window: 5, ..newreno() });
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(5_000), &mut deliver);
    let per_round: Vec<usize> =
        (1..=6).map(|round| data_numbers(&pair).iter().filter(|(at, _)| *at == 60 * round).count()).collect();
    // 2, 4, then the limit.
    assert_eq!(per_round, [2, 4, 5, 5, 5, 5]);
}

#[test]
fn clamp_is_a_window_limit() {
    let clamp = tcp::Config { window: tcp::window::Config::Clamp { segments: 1 }, ..newreno() };
    let mut pair = opened(clamp);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(60 * 4), &mut deliver);
    assert_eq!(data_numbers(&pair), [(60, 1), (120, 2), (180, 3), (240, 4)]);
}

#[test]
fn limited_transmit() {
    // RFC 3042: the first two duplicate ACKs release one new segment each, the third causes the
    // retransmission. The window is 4: segments 1-2 leave at 60, 3-6 at 120. Segment 3 is lost; 4,
    // 5, 6 cause duplicate ACKs at 180, which release 7, 8, and then 3 again. Without limited
    // transmit 3 leaves first, and then the inflated window 2 + 3 (RFC 5681, section 3.2, step 3)
    // has room for 7.
    for (limited_transmit, expected) in [(true, vec![7, 8, 3]), (false, vec![3, 7])] {
        let mut pair = opened(tcp::Config { max_window: 8, limited_transmit, ..newreno() });
        pair.sender.write_endless(Time::ZERO);
        pair.drive(ms(181), &mut lose_data(&[2]));
        let round: Vec<u64> =
            data_numbers(&pair).into_iter().filter(|(at, _)| *at == 180).map(|(_, number)| number).collect();
        assert_eq!(round, expected);
        assert_eq!(pair.sender.stats().fast_retransmits, 1);
    }
}

#[test]
fn one_segment_lost() {
    // As above. Then the ACK of everything up to 8 ends recovery. There is no timeout, one
    // retransmission, and no duplicate data.
    let mut pair = opened(tcp::Config { max_window: 8, ..newreno() });
    pair.sender.write(Time::ZERO, 1460 * 40);
    pair.drive(ms(10_000), &mut lose_data(&[2]));
    let stats = *pair.sender.stats();
    assert_eq!((stats.retransmissions, stats.timeouts, stats.fast_retransmits), (1, 0, 1));
    assert_eq!(pair.receiver.stats().duplicate_segments_received, 0);
    assert_eq!(pair.receiver.delivered(), 1460 * 40);
}

#[test]
fn two_segments_lost_in_a_window() {
    // RFC 6582: the ACK of the first retransmission is partial and causes the second at once.
    // Segment 3 leaves again at 180 ms, and 5 one round trip later, at 240 ms, without a timeout.
    let mut pair = opened(tcp::Config { max_window: 8, initial_window: 6, ..newreno() });
    pair.sender.write(Time::ZERO, 1460 * 40);
    pair.drive(ms(10_000), &mut lose_data(&[2, 4]));
    let numbers = data_numbers(&pair);
    let repeated: Vec<(u64, u64)> = numbers
        .iter()
        .enumerate()
        .filter(|(index, (_, number))| numbers[..*index].iter().any(|earlier| earlier.1 == *number))
        .map(|(_, line)| *line)
        .collect();
    // Segments 1-6 leave at 60, so the loss of 3 is detected at 120 + 60: segment 7 or 8, sent at
    // 120, causes the third duplicate ACK.
    assert_eq!(repeated, [(180, 3), (240, 5)]);
    assert_eq!(pair.sender.stats().timeouts, 0);
    assert_eq!(pair.sender.stats().fast_retransmits, 1);
    assert_eq!(pair.receiver.delivered(), 1460 * 40);
}

#[test]
fn lost_acks_are_covered_by_later_ones() {
    // ACKs are cumulative: with window 2 the ACK of segment 4 also covers the lost ACK of 3. There
    // is no retransmission.
    let mut pair = opened(tcp::Config { max_window: 2, ..newreno() });
    pair.sender.write(Time::ZERO, 1460 * 10);
    pair.drive(ms(10_000), &mut |line| {
        let lost = line.from == From::Receiver && tcp_of(line).ack == 3 * 1460;
        if lost { Fate::Lose } else { Fate::Deliver }
    });
    assert_eq!(pair.sender.stats().retransmissions, 0);
    assert_eq!(pair.sender.stats().timeouts, 0);
    assert_eq!(pair.receiver.delivered(), 14_600);
}

#[test]
fn back_off_doubles_and_ends_with_a_timed_segment() {
    // Window 1, round-trip time 60 ms = 6 ticks. Segments 1 and 2 leave at 60 and 120 ms; segment
    // 3, at 180 ms, is lost four times. The RTO is at its minimum of 200 ms (SYN: 6 + 4*3 = 18
    // ticks, then less), so the timer expires after 200, 400, 800, 1600 ms. Karn: segment 3 was
    // retransmitted and is not timed, so the RTO is still 16 * 200 ms when 4 is lost. Segment 4
    // arrives at its second attempt. Segment 5 is new and timed: the back-off ends.
    let mut pair = opened(tcp::Config { max_window: 1, ..newreno() });
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(20_000), &mut lose_data(&[2, 3, 4, 5, 7, 10]));
    let numbers = data_numbers(&pair);
    let expected = [
        (60, 1),
        (120, 2),
        (180, 3),
        (380, 3),
        (780, 3),
        (1580, 3),
        (3180, 3),
        (3240, 4), // 3 is acknowledged; the back-off of 16 remains
        (6440, 4), // 3.2 s later
        (6500, 5), // timed
        (6560, 6), // lost; first sample after the back-off: RTO 6 + 4 * 3 ticks, so 200 ms
        (6760, 6),
        (6820, 7),
    ];
    assert_eq!(numbers[..expected.len()], expected);
}

#[test]
fn released_timer_does_not_back_off() {
    let mut config = newreno();
    config.max_window = 1;
    config.rto.backoff = false;
    let mut pair = opened(config);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(1_100), &mut lose_data(&[2, 3, 4, 5]));
    assert_eq!(data_numbers(&pair)[2..7], [(180, 3), (380, 3), (580, 3), (780, 3), (980, 3)]);
}

#[test]
fn idle_connection_starts_again_with_one_segment() {
    // RFC 5681, section 4.1, with ns-2's restart window of one segment.
    let mut pair = opened(newreno());
    pair.sender.write(Time::ZERO, 1460 * 30);
    pair.drive(ms(4_000), &mut deliver);
    pair.now = ms(5_000);
    pair.sender.write(pair.now, 1460 * 3);
    pair.drive(ms(9_000), &mut deliver);
    let late: Vec<(u64, u64)> = data_numbers(&pair).into_iter().filter(|(at, _)| *at >= 5_000).collect();
    assert_eq!(late, [(5_000, 31), (5_060, 32), (5_060, 33)]);
}

/// A sender that has connected to a peer simulated by the test. Also returns the time of the
/// SYN-ACK.
fn connected(config: tcp::Config, window: u32) -> (Endpoint, Time) {
    let mut sender = Endpoint::new(&Config::Tcp(config), Role::Sender);
    sender.open(Time::ZERO);
    assert!(sender.poll(Time::ZERO).segment().is_some());
    sender.on_segment(ms(60), &peer(SYN_ACK, 0, window), Arrival::default());
    (sender, ms(60))
}

fn peer(flags: Flags, ack: u64, window: u32) -> Segment {
    Segment::Tcp(Tcp { seq: 0, ack, window, ts_val: 0, ts_ecr: 0, payload: 0, flags, ..Tcp::default() })
}

#[test]
fn zero_window_is_probed_until_it_opens() {
    // RFC 9293, section 3.8.6.1: probes leave at growing intervals, and data leaves as soon as the
    // window opens.
    let (mut sender, now) = connected(newreno(), 0);
    sender.write_endless(now);
    let first = sender.poll(now).segment().unwrap();
    assert_eq!(first.payload(), 0, "the handshake's ACK leaves without data");
    assert_eq!(sender.poll(now).segment(), None);
    let mut gaps = vec![];
    let mut now = now;
    for _ in 0..3 {
        let due = wakeup(&mut sender, now);
        assert_ne!(due, Time::NEVER, "a closed window must not stop the connection for ever");
        gaps.push(due.since(now).0);
        now = due;
        let Some(Segment::Tcp(probe)) = sender.poll(now).segment() else { panic!("no probe") };
        assert_eq!(probe.payload, 0);
        assert_eq!(sender.poll(now).segment(), None);
    }
    assert_eq!((gaps[1], gaps[2]), (gaps[0] * 2, gaps[0] * 4));
    sender.on_segment(now, &peer(ACK, 0, 3000), Arrival::default());
    let sizes: Vec<u32> = std::iter::from_fn(|| sender.poll(now).segment()).map(|segment| segment.payload()).collect();
    assert_eq!(sizes, [1460, 1460]);
}

#[test]
fn receiver_answers_a_probe() {
    let mut receiver = Endpoint::new(&Config::Tcp(newreno()), Role::Receiver);
    receiver.on_segment(Time::ZERO, &peer(SYN, 0, 0), Arrival::default());
    assert!(receiver.poll(Time::ZERO).segment().is_some());
    let Segment::Tcp(mut probe) = peer(ACK, 0, 0) else { unreachable!() };
    probe.seq = 0u64.wrapping_sub(1);
    receiver.on_segment(ms(1), &Segment::Tcp(probe), Arrival::default());
    let Some(Segment::Tcp(answer)) = receiver.poll(ms(1)).segment() else { panic!("no answer") };
    assert_eq!((answer.ack, answer.window), (0, 64 * 1460));
}

#[test]
fn senseless_segments_change_nothing() {
    let (mut sender, now) = connected(newreno(), 64 * 1460);
    sender.write_endless(now);
    let sent: Vec<Segment> = std::iter::from_fn(|| sender.poll(now).segment()).collect();
    assert_eq!(sent.len(), 2);
    // RFC 9293, section 3.10.7.4: an ACK of data that was never sent.
    for ack in [3 * 1460, u64::MAX] {
        sender.on_segment(now, &peer(ACK, ack, 64 * 1460), Arrival::default());
    }
    // RFC 5961, section 3.2: a reset whose sequence number does not fit.
    let Segment::Tcp(mut reset) = peer(Flags::RST, 0, 0) else { unreachable!() };
    reset.seq = 77;
    sender.on_segment(now, &Segment::Tcp(reset), Arrival::default());
    sender.on_segment(now, &Segment::Udp(udp::Datagram { number: 0, payload: 9 }), Arrival::default());
    assert_eq!(sender.poll(now).segment(), None);
    assert!(!sender.is_done());
    assert_eq!(sender.stats().acked_bytes, 0);
    // A reset that fits ends the connection.
    sender.on_segment(now, &peer(Flags::RST, 0, 0), Arrival::default());
    assert!(sender.is_done());
    assert_eq!(wakeup(&mut sender, now), Time::NEVER);
}

#[test]
fn data_outside_the_window_is_dropped_and_acknowledged() {
    let mut receiver = Endpoint::new(&Config::Tcp(tcp::Config { max_window: 2, ..newreno() }), Role::Receiver);
    receiver.on_segment(Time::ZERO, &peer(SYN, 0, 0), Arrival::default());
    assert!(receiver.poll(Time::ZERO).segment().is_some());
    let mut at = |seq: u64, payload: u16| {
        let data = Tcp { seq, ack: 0, window: 0, ts_val: 0, ts_ecr: 0, payload, flags: ACK, ..Tcp::default() };
        receiver.on_segment(ms(1), &Segment::Tcp(data), Arrival::default());
        let Some(Segment::Tcp(answer)) = receiver.poll(ms(1)).segment() else { panic!("no ACK") };
        (answer.ack, receiver.delivered())
    };
    assert_eq!(at(10_000, 1460), (0, 0), "beyond the window");
    assert_eq!(at(u64::MAX - 3, 1460), (0, 0), "at the end of all offsets");
    assert_eq!(at(1460, 1460), (0, 0), "a gap");
    assert_eq!(at(0, 2000), (2920, 2920), "overlaps what is there");
    assert_eq!(at(0, 1460), (2920, 2920), "again");
    assert_eq!(at(2920, 3000), (5840, 5840), "more than the window: cut at its edge");
}

#[test]
fn paced_segments_keep_the_interval_and_the_window() {
    // AP05, sections 4.3 and 4.4: a constant RTT of 60 ms over 7 hops at 2 Mbit/s with s_d = 1500
    // and s_a = 40 gives 2 (60/7 + 5.84) = 28.822857 ms with cov 0. After the first sample this is
    // the interval between segments.
    let config = tcp::Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::paper()), ..newreno() };
    let mut pair = opened(config);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(10_000), &mut deliver);
    let times: Vec<Time> = pair.record.iter().filter(|line| line.segment.payload() > 0).map(|line| line.at).collect();
    assert_eq!(times[..3], [ms(60), ms(60), ms(120)], "as the window allows before the first sample");
    for pair in times[2..].windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration(28_822_857));
    }
    assert_eq!(pair.sender.stats().retransmissions, 0);
}

#[test]
fn released_pacing_ticks_from_the_start() {
    // The SYN starts the timer at 0 with 50 ms. The SYN-ACK's echo at 60 ms is a sample of the
    // delay 28.822857 ms, but the running tick stays at 50 + 50 = 100 ms. The next ticks follow
    // every 28.822857 ms. The initial window has two segments and the first ACK arrives at 160 ms,
    // so the tick at 157.6 ms sends nothing. All later ticks send a segment.
    let Some(Config::Tcp(config)) = names::lookup("tcp-ap-released") else { panic!() };
    let mut pair = opened(config);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(2_000), &mut deliver);
    let times: Vec<Time> = pair.record.iter().filter(|line| line.segment.payload() > 0).map(|line| line.at).collect();
    let tick = Duration(28_822_857);
    assert_eq!(times[..3], [ms(100), ms(100) + tick, ms(100) + tick * 3]);
    for pair in times[2..].windows(2) {
        assert_eq!(pair[1].since(pair[0]), tick);
    }
}

#[test]
fn released_pacing_is_off_after_a_timeout_until_the_next_ack() {
    // All segments from 1 s on are lost for a while. The FIFO is emptied. The first segment leaves
    // at once at the timeout, and again at each expiry, without back-off. No tick sends anything in
    // between.
    let Some(Config::Tcp(config)) = names::lookup("tcp-ap-released") else { panic!() };
    let mut pair = opened(config);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(4_000), &mut |line| {
        let dark = line.at >= ms(1_000) && line.at < ms(2_500);
        if dark && line.from == From::Sender { Fate::Lose } else { Fate::Deliver }
    });
    let timeouts: Vec<(f64, u64, bool)> =
        pair.data(1460).into_iter().filter(|(at, _, _)| *at > 1_400.0 && *at < 2_400.0).collect();
    assert!(timeouts.len() >= 4);
    for two in timeouts.windows(2) {
        assert_eq!(two[0].1, two[1].1, "the same segment");
        assert!((two[1].0 - two[0].0 - 200.0).abs() < 1e-6, "200 ms apart: {two:?}");
    }
    assert!(pair.receiver.delivered() > 50 * 1460, "it went on");
}

#[test]
fn retransmissions_restart_or_wait_as_configured() {
    // Recovery::Restart: the fast retransmit leaves at the third duplicate ACK. Recovery::Paced: it
    // waits for its turn.
    let mut gaps = vec![];
    for recovery in [pacing::Recovery::Restart, pacing::Recovery::Paced] {
        let adaptive = AdaptiveConfig { recovery, ..AdaptiveConfig::paper() };
        let mut pair = opened(tcp::Config { pacing: pacing::Config::Adaptive(adaptive), ..newreno() });
        pair.sender.write(Time::ZERO, 1460 * 60);
        pair.drive(ms(20_000), &mut lose_data(&[20]));
        assert_eq!(pair.receiver.delivered(), 1460 * 60);
        let data = pair.data(1460);
        let again = data.iter().rposition(|line| line.1 == 21).unwrap();
        assert_eq!(pair.sender.stats().retransmissions, 1);
        gaps.push((data[again].0 - data[again - 1].0, data[again + 1].0 - data[again].0));
    }
    let interval = 28.822857;
    assert!(gaps[0].0 < interval && gaps[0].1 >= interval, "{gaps:?}");
    assert!(gaps[1].0 >= interval - 1e-5 && gaps[1].1 >= interval - 1e-5, "{gaps:?}");
}

#[test]
fn hops_come_from_where_the_profile_says() {
    // The routing table has 4 hops, but the ACK travelled 8: D_4 = 2 (60/4 + 5.84) = 41.68 ms or 2
    // (60/8 + 5.84) = 26.68 ms.
    for (name, expected_ms) in [("tcp-ap", 41.68), ("tcp-ap-released", 26.68)] {
        let mut pair = Pair::new(&names::lookup(name).unwrap(), Duration::from_millis(30), 8);
        pair.sender.on_path(PathInfo { hops: 4, rate: Rate::from_mbps(2), received_power_dbm: None });
        pair.sender.open(Time::ZERO);
        pair.sender.write_endless(Time::ZERO);
        pair.drive(ms(2_000), &mut deliver);
        let stats = pair.sender.stats();
        let delay_ms = stats.delay_sum_s / stats.delay_samples as f64 * 1e3;
        assert!((delay_ms - expected_ms).abs() < 1e-6, "{name}: {delay_ms}");
    }
}

#[test]
fn karn_rule_of_the_samples() {
    // AP05 times each packet. Under NewDataKarn a cumulative ACK that covers a retransmitted
    // segment gives no sample. Under NewData it gives a sample of the newest segment that it
    // covers, if that was sent once.
    let mut counts = vec![];
    for sampling in [pacing::Sampling::NewDataKarn, pacing::Sampling::NewData] {
        let adaptive = AdaptiveConfig { sampling, ..AdaptiveConfig::paper() };
        let mut pair = opened(tcp::Config { pacing: pacing::Config::Adaptive(adaptive), ..newreno() });
        pair.sender.write(Time::ZERO, 1460 * 60);
        pair.drive(ms(20_000), &mut lose_data(&[20]));
        counts.push(pair.sender.stats().rtt_samples);
    }
    assert_eq!(counts[1], counts[0] + 1);
}

#[test]
fn udp_source_keeps_its_rate() {
    // 1460 bytes at 116.8 kbit/s: one datagram per 100 ms, with 20 bytes of headers each.
    let config = Config::Udp(udp::Config { segment: 1460, rate: Some(Rate::from_bps(116_800)) });
    let mut pair = Pair::new(&config, Duration::from_millis(30), 7);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * 3 + 100);
    pair.drive(ms(10_000), &mut deliver);
    let sent: Vec<(u64, u32)> = pair.record.iter().map(|line| (line.at.0 / 1_000_000, line.segment.size())).collect();
    assert_eq!(sent, [(0, 1480), (100, 1480), (200, 1480), (300, 120)]);
    assert_eq!(pair.receiver.delivered(), 4480);
    assert_eq!(pair.receiver.stats().distinct_segments_received, 4);
}

#[test]
fn segments_are_small_and_plain() {
    fn copies<T: Copy>() {}
    copies::<Segment>();
    // Together with the rest of a simulated packet it fits into one cache line.
    assert!(size_of::<Segment>() <= 48);
    let syn = Tcp { seq: 0, ack: 0, window: 0, ts_val: 0, ts_ecr: 0, payload: 0, flags: SYN, ..Tcp::default() };
    let data = Tcp { payload: 1460, seq: 1460, ack: 1, flags: ACK, ..syn };
    assert_eq!(Segment::Tcp(syn).size(), 40);
    assert_eq!(Segment::Tcp(data).size(), 1500);
    // RFC 9293: the SYN occupies one sequence number.
    assert_eq!((syn.wire_seq(1000), syn.wire_ack(5)), (1000, 0));
    assert_eq!((data.wire_seq(1000), data.wire_ack(u32::MAX)), (2461, 1));
}

#[test]
fn parameters_out_of_range_are_named() {
    let tcp = |change: fn(&mut tcp::Config)| {
        let mut config = newreno();
        change(&mut config);
        Config::Tcp(config).check().unwrap_err().name
    };
    assert_eq!(tcp(|config| config.segment = 0), "segment");
    assert_eq!(tcp(|config| config.segment = 65_496), "segment");
    assert_eq!(tcp(|config| config.max_window = 0), "max_window");
    assert_eq!(tcp(|config| config.initial_window = 0), "initial_window");
    assert_eq!(tcp(|config| config.rto.tick = Duration::ZERO), "rto.tick");
    assert_eq!(tcp(|config| config.rto.max = Duration::from_millis(100)), "rto.max");
    assert_eq!(tcp(|config| config.window = tcp::window::Config::Clamp { segments: 0 }), "window.segments");
    let pacing = |change: fn(&mut AdaptiveConfig)| {
        let mut adaptive = AdaptiveConfig::paper();
        change(&mut adaptive);
        let config = tcp::Config { pacing: pacing::Config::Adaptive(adaptive), ..newreno() };
        Config::Tcp(config).check().unwrap_err().name
    };
    assert_eq!(pacing(|config| config.alpha = 1.1), "pacing.alpha");
    assert_eq!(pacing(|config| config.alpha = f64::NAN), "pacing.alpha");
    assert_eq!(pacing(|config| config.history = 1), "pacing.history");
    assert_eq!(pacing(|config| config.reuse_hops = 0), "pacing.reuse_hops");
    assert_eq!(pacing(|config| config.dispersion_factor = f64::INFINITY), "pacing.dispersion_factor");
    for entry in names::table() {
        assert_eq!(names::lookup(entry.name).unwrap().check(), Ok(()), "{}", entry.name);
    }
    assert_eq!(names::lookup("tcp-westwood"), None);
}
