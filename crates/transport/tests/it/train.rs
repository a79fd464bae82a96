//! Tests of quiet trains packet by packet, as docs/quiet-trains.md describes trains, silence,
//! reports, repair and time-outs.

use crate::common::{Fate, From, Line, Pair, ms};
use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::train::control::Control;
use meshpace_transport::train::estimator::{Estimator, Sample};
use meshpace_transport::train::{Config, Segment as Train, control, estimator};
use meshpace_transport::{Arrival, Config as Any, Endpoint, PathInfo, Role, Segment, flags::Flags, names, pump};

fn train_of(line: &Line) -> Train {
    match line.segment {
        Segment::Train(segment) => segment,
        other => panic!("not a train's: {other:?}"),
    }
}

fn pair(hops: u8) -> Pair {
    Pair::new(&names::lookup("quiet-train").unwrap(), Duration::from_millis(8 * u64::from(hops)), hops)
}

/// A transfer of `segments` segments.
fn transfer(pair: &mut Pair, segments: u64, fate: &mut dyn FnMut(&Line) -> Fate) {
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * segments);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(3_600_000), fate);
    assert_eq!(pair.receiver.delivered(), 1460 * segments);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
}

/// The data segments in the order in which they left: time, number from 0, and whether with TAIL.
fn data(pair: &Pair) -> Vec<(Time, u64, bool)> {
    let is_data = |line: &&Line| line.from == From::Sender && line.segment.payload() > 0;
    let of = |line: &Line| (line.at, train_of(line).seq / 1460, train_of(line).is_tail());
    pair.record.iter().filter(is_data).map(of).collect()
}

#[test]
fn trains_double_up_to_a_second_and_each_has_one_ack() {
    let mut pair = pair(4);
    transfer(&mut pair, 92, &mut |_| Fate::Deliver);
    let tails: Vec<u64> = data(&pair).iter().filter(|sent| sent.2).map(|sent| sent.1 + 1).collect();
    assert_eq!(tails[..3], [4, 12, 28]);
    // rtt0 is 64 ms: tau = 64 ms / (1 + 1.958 / 7.75), I = 1.07 tau = 54.7 ms, 18 intervals in a
    // second.
    assert_eq!(tails[3..], [46, 64, 82, 92]);
    // There is one ACK per train. The last one carries the FIN and is answered by an ACK with our
    // FIN.
    let acks: Vec<u64> = pair
        .record
        .iter()
        .filter(|line| line.from == From::Receiver && train_of(line).feedback.segments > 0)
        .map(|line| train_of(line).ack.min(92 * 1460) / 1460)
        .collect();
    assert_eq!(acks, tails);
}

#[test]
fn who_is_open_at_one_end_alone_is_heard_after_the_other_has_called_for_the_last_time() {
    // The caller receives the first SYN-ACK. Of its own segments nothing but the SYN arrives for
    // ten minutes.
    let mut pair = pair(4);
    let is_syn = |line: &Line| train_of(line).flags.has(Flags::SYN);
    transfer(&mut pair, 92, &mut |line| {
        if line.from == From::Sender && !is_syn(line) && line.at < ms(600_000) { Fate::Lose } else { Fate::Deliver }
    });
    let last = pair.record.iter().rfind(|line| line.from == From::Receiver && is_syn(line));
    assert!(last.expect("a SYN-ACK").at < ms(300_000));
}

#[test]
fn nothing_leaves_between_a_tail_and_its_ack() {
    let mut pair = pair(7);
    transfer(&mut pair, 300, &mut |_| Fate::Deliver);
    let sent = data(&pair);
    for two in sent.windows(2) {
        let ((before, _, tail), (after, ..)) = (two[0], two[1]);
        if tail {
            assert!(after >= before + Duration::from_millis(2 * 56), "{before} {after}");
        }
    }
}

#[test]
fn holes_are_reported_by_the_tail_s_ack_and_repaired_once_in_the_next_train() {
    let mut pair = pair(4);
    let mut lost = 0;
    // The 2nd and 4th segment of the second train, which are segments 5 and 7 from 0.
    transfer(&mut pair, 60, &mut |line| {
        let hit = line.from == From::Sender && [5, 7].contains(&(train_of(line).seq / 1460)) && lost < 2;
        if hit && line.segment.payload() > 0 {
            lost += 1;
            return Fate::Lose;
        }
        Fate::Deliver
    });
    let order: Vec<u64> = data(&pair).iter().map(|sent| sent.1).collect();
    assert_eq!(order[4..12], [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(order[12..16], [5, 7, 12, 13]);
    // Two segments of one train.
    let stats = pair.sender.stats();
    assert_eq!((stats.retransmissions, stats.fast_retransmits, stats.timeouts), (2, 1, 0));
    let report = pair.record.iter().map(train_of).find(|segment| segment.beyond != 0).unwrap();
    // From segment 5 on: missing, received, missing, received up to 11.
    assert_eq!((report.ack / 1460, report.beyond), (5, 0b111_1010));
    assert_eq!(report.size(), 56);
}

#[test]
fn a_lost_tail_is_told_by_the_receiver_s_timer_and_costs_one_segment() {
    let mut pair = pair(4);
    let mut lost = false;
    transfer(&mut pair, 30, &mut |line| {
        let hit = !lost && line.segment.payload() > 0 && train_of(line).seq == 1460 * 3;
        lost |= hit;
        if hit { Fate::Lose } else { Fate::Deliver }
    });
    assert_eq!(pair.sender.stats().retransmissions, 1);
    let order: Vec<u64> = data(&pair).iter().map(|sent| sent.1).collect();
    assert_eq!(order[..6], [0, 1, 2, 3, 3, 4]);
}

#[test]
fn without_any_ack_one_segment_is_repeated_by_a_timer_that_doubles_to_2_s() {
    let mut pair = pair(4);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    let dark = |line: &Line| if line.at > ms(2_000) { Fate::Lose } else { Fate::Deliver };
    pair.drive(ms(20_000), &mut |line| dark(line));
    let late: Vec<(Time, u64, bool)> = data(&pair).into_iter().filter(|sent| sent.0 > ms(5_000)).collect();
    assert!(late.len() >= 7, "{late:?}");
    assert!(late.iter().all(|sent| sent.1 == late[0].1 && sent.2), "{late:?}");
    for two in late.windows(2) {
        assert_eq!(two[1].0.since(two[0].0), Duration::from_secs(2));
    }
}

#[test]
fn who_has_everything_and_whose_last_word_is_never_acknowledged_ends_after_six_time_outs() {
    let mut pair = pair(4);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * 8);
    pair.sender.close(Time::ZERO);
    let mut last_words = Vec::new();
    // From the receiver's FIN on, nothing more arrives from the sender.
    pair.drive(ms(60_000), &mut |line| {
        let is_fin = train_of(line).flags.has(Flags::FIN);
        if line.from == From::Receiver && is_fin {
            last_words.push(line.at);
        }
        if line.from == From::Sender && !last_words.is_empty() { Fate::Lose } else { Fate::Deliver }
    });
    assert_eq!(pair.receiver.delivered(), 1460 * 8);
    assert!(pair.receiver.is_done(), "{:?}", pair.receiver.stats());
    assert_eq!(pair.receiver.stats().timeouts, 6);
    // The first FIN, and one for each time-out but the last.
    assert_eq!(last_words.len(), 6, "{last_words:?}");
}

#[test]
fn after_a_dark_time_it_goes_on_where_it_was() {
    let mut pair = pair(7);
    let mut repeated = 0;
    transfer(&mut pair, 400, &mut |line| {
        let dark = (ms(3_000)..ms(13_000)).contains(&line.at);
        repeated += u32::from(dark && line.from == From::Sender);
        if dark { Fate::Lose } else { Fate::Deliver }
    });
    // Retransmitted are the segments that were in flight, and the probes. There is no go-back-N
    // beyond what was lost.
    assert!(pair.sender.stats().retransmissions <= u64::from(repeated) + 1);
    assert!(pair.sender.stats().timeouts < 10);
}

#[test]
fn what_leaves_later_than_a_receiver_waits_is_not_lost() {
    // rtt0 is 540 ms: I = 1.034 tau = 446 ms, two in a second. A receiver acknowledges after 400 ms
    // without the TAIL, which is still in flight.
    let mut pair = Pair::new(&names::lookup("quiet-train").unwrap(), Duration::from_millis(270), 1);
    transfer(&mut pair, 100, &mut |_| Fate::Deliver);
    let stats = pair.sender.stats();
    assert_eq!((stats.fast_retransmits, stats.retransmissions, stats.timeouts), (0, 0, 0));
    let tails = data(&pair).iter().filter(|sent| sent.2).count() as u64;
    // All trains are measured except the last one, which carries the FIN.
    assert!(tails > 30 && stats.rtt_samples == tails - 1, "{tails} trains, {} samples", stats.rtt_samples);
}

#[test]
fn short_segments_take_as_long_as_the_law_says() {
    // Segments of 38 bytes over one hop with 75 ms in each direction. Only the least interval
    // limits them, which is proportional to the round-trip time.
    let mut pair = Pair::new(&Any::Train(Config { segment: 38, ..Config::default() }), Duration::from_millis(75), 1);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    pair.drive(ms(120_000), &mut |_| Fate::Deliver);
    let is_late = |line: &&Line| line.from == From::Sender && line.segment.payload() > 0 && line.at >= ms(60_000);
    let sent = pair.record.iter().filter(is_late).count() as f64;
    // t_d = 1.542 ms + 8 * 130 bit / 2 Mbit/s, t_a = 1.542 ms + 8 * 104 bit / 2 Mbit/s. 12 segments
    // fit into a second, and a round trip follows the last.
    let tau = 0.150 / (1.0 + 1.958 / 2.062);
    let a_train = 11.0 * 1.034 * tau + 0.150;
    let expected = 12.0 * 60.0 / a_train;
    assert!((sent - expected).abs() <= 12.0, "{sent}, {expected:.1} by the law");
}

#[test]
fn trains_become_faster_again_once_the_path_is() {
    // For 30 s datagrams are late by up to half a second, so the interval grows beyond the time for
    // which a receiver waits.
    let mut pair = Pair::new(&names::lookup("quiet-train").unwrap(), Duration::from_millis(60), 1);
    pair.sender.open(Time::ZERO);
    pair.sender.write_endless(Time::ZERO);
    let mut count = 0_u64;
    pair.drive(ms(150_000), &mut |line| {
        count += 1;
        let late = Duration::from_millis(count * 7_919 % 500);
        if line.at < ms(30_000) { Fate::Delay(late) } else { Fate::Deliver }
    });
    let between = |from: u64, to: u64| data(&pair).iter().filter(|sent| (ms(from)..ms(to)).contains(&sent.0)).count();
    // I = 1.034 tau, tau = 120 ms / (1 + t_a/t_d): about twelve per second while segments leave.
    // The silence takes a part of the time.
    let (during, after) = (between(20_000, 30_000), between(140_000, 150_000));
    assert!(after > 60 && after > 2 * during, "{during} in 10 s, then {after}");
}

/// Estimates of tau and d after samples that are a second apart.
fn estimate(samples: &[Sample], hops: u8) -> (f64, f64) {
    let path = PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
    let mut estimator = Estimator::new(&estimator::Config::default(), 1460);
    for sample in samples {
        estimator.on_sample(sample, 0.03);
    }
    (estimator.reuse(&path).unwrap(), estimator.queueing(hops))
}

#[test]
fn tau_and_d_by_hand() {
    // t_d = 1.542 ms + 8 * 1552 bit / 2 Mbit/s = 7.75 ms, t_a = 1.542 ms + 8 * 104 / 2 Mbit/s =
    // 1.958 ms.
    let first = Sample { now: 1.0, rtt: 0.07, mean: 0.0, least: -0.001, marked: 0.0, forward: 0.0 };
    let share = 1.958 / 7.75;
    let (tau, d) = estimate(&[first], 7);
    assert!((tau - 4.0 / 7.0 * 0.07 / (1.0 + share)).abs() < 1e-9, "{tau}");
    // With one sample, d is its mean above its least delay, less 7 * 0.3 ms, which is below 0.
    assert_eq!(d, 0.0);
    // Over two hops n = h, so the whole round trip counts.
    assert!((estimate(&[first], 2).0 - 0.07 / (1.0 + share)).abs() < 1e-9);
    // A second later the mean is 10 ms higher, of which the share 1 - 1/e is taken over. base stays
    // at -1 ms.
    let later = Sample { now: 2.0, mean: 0.010, ..first };
    let (_, d) = estimate(&[first, later], 7);
    let expected = (1.0 - (-1.0_f64).exp()) * 0.010 + 0.001 - 0.0021;
    assert!((d - expected).abs() < 1e-9, "{d} {expected}");
}

#[test]
fn a_clock_that_jumps_leaves_no_delay_behind() {
    // The clock jumps by 100 s, because it slept or was set, after a minute with one sample per
    // second over an empty path: seven hops, 40 ms forward.
    for jump in [-100.0, 100.0] {
        let mut estimator = Estimator::new(&estimator::Config::default(), 1460);
        for second in 0..120 {
            let forward = 0.04 + if second < 60 { 0.0 } else { jump };
            let now = f64::from(second);
            let sample = Sample { now, rtt: 0.07, mean: 0.0, least: 0.0, marked: 0.0, forward };
            estimator.on_sample(&sample, 0.03);
            assert_eq!(estimator.queueing(7), 0.0, "{second} s");
            let above = estimator.above_base(&sample).unwrap();
            assert!(above.abs() < 1e-9, "{above} s at {second} s");
        }
    }
}

#[test]
fn the_floor_is_below_the_slowest_interval() {
    for (near_floor, far_floor, ok) in [(10.0, 10.0, true), (10.1, 1.0, false), (1.0, 10.1, false), (0.0, 1.0, false)] {
        let config = control::Config { near_floor, far_floor, ..control::Config::default() };
        assert_eq!(config.check().is_ok(), ok, "{near_floor} {far_floor}");
        let mut control = Control::new(&config);
        for _ in 0..if ok { 3 } else { 0 } {
            control.on_sample(Some(1.0), 0.01, 0.0, 0.0, 4);
        }
    }
}

#[test]
fn a_path_may_be_taken_for_another_one() {
    let path = PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None };
    let taken = |hop_error, rate| {
        let config = estimator::Config { hop_error, rate, ..estimator::Config::default() };
        Estimator::new(&config, 1460).assumed(&path)
    };
    assert_eq!(taken(0.0, None), path);
    assert_eq!(taken(-2.0, None), PathInfo { hops: 5, ..path });
    assert_eq!(taken(2.0, None), PathInfo { hops: 9, ..path });
    assert_eq!(taken(-20.0, None), PathInfo { hops: 1, ..path });
    assert_eq!(taken(0.0, Some(Rate::from_mbps(4))), PathInfo { rate: Rate::from_mbps(4), ..path });
}

#[test]
fn the_interval_settles_where_the_equations_say() {
    let mut control = Control::new(&control::Config::default());
    let path = PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None };
    control.on_path(&path, 1460);
    // Before a sample: 4 * 7.75 ms.
    assert!((control.interval() - 4.0 * 7.75e-3).abs() < 1e-9);
    let tau = 0.030;
    control.on_sample(None, tau, 0.0, 0.0, 7);
    for _ in 0..100 {
        control.on_sample(Some(1.0), tau, 0.0, 0.0, 7);
    }
    assert!((control.interval() - 1.07 * tau).abs() < 1e-6);
    // d = 0.09 scale tau (I/floor)^1.5 at I = 4 floor, scale = 1 + 1.5 * 3/4.
    let d = 0.09 * 2.125 * tau * 8.0;
    for _ in 0..100 {
        control.on_sample(Some(1.0), tau, d, 0.0, 7);
    }
    assert!((control.interval() / (4.0 * 1.07 * tau) - 1.0).abs() < 1e-6, "{}", control.interval());
    // A train lasts at most one second.
    assert_eq!(control.next_train(true), 7);
}

/// The interval before and after the first sample of a new path with `hops` hops. On the previous
/// path of 6 hops it was four times the floor.
fn after_another_path(keep_interval: bool, hops: u8) -> [f64; 2] {
    let path = |hops| PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
    let mut control = Control::new(&control::Config { keep_interval, ..control::Config::default() });
    control.on_path(&path(6), 1460);
    let (tau, scale) = (0.030, 1.75);
    for _ in 0..200 {
        control.on_sample(Some(1.0), tau, 0.09 * scale * tau * 8.0, 0.0, 6);
    }
    assert!((control.interval() / (4.0 * 1.07 * tau) - 1.0).abs() < 1e-6, "{}", control.interval());
    control.on_path(&path(hops), 1460);
    let told = control.interval();
    control.on_sample(None, tau * f64::from(hops.min(4)) / 4.0, 0.0, 0.0, hops);
    [told, control.interval()]
}

#[test]
fn an_interval_that_is_kept_follows_the_hops_of_the_path() {
    let floor = 1.07 * 0.030;
    let near = |values: [f64; 2], expected: [f64; 2]| {
        let same = values.iter().zip(expected).all(|(value, expected)| (value / expected - 1.0).abs() < 1e-6);
        assert!(same, "{values:?}, not {expected:?}");
    };
    // A path with the same reuse distance keeps the interval, whatever the first sample of the new
    // path is.
    near(after_another_path(true, 4), [4.0 * floor; 2]);
    // A channel over two hops can be reused after half the time.
    near(after_another_path(true, 2), [2.0 * floor; 2]);
    // Otherwise the interval starts again: n t_d, or the floor of the first sample if that is more.
    near(after_another_path(false, 4), [4.0 * 7.75e-3, floor]);
}

#[test]
fn up_to_three_hops_trains_may_be_longer_until_something_is_lost() {
    let near =
        control::Config { near_train: Some(24), near_delay: Some(1.0), company: 1.0, ..control::Config::default() };
    let config = control::Config { delay: 0.1, ..near };
    for (hops, segments, floors) in [(3, 24, 1.0), (4, 32, 10_f64.powf(1.0 / 1.5))] {
        let path = PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
        let mut control = Control::new(&config);
        control.on_path(&path, 1460);
        let tau = 0.005;
        let floor = tau * if hops == 3 { 1.034 } else { 1.07 };
        // Over three hops a delay of one tau is tolerated at the floor. Over four hops it is ten
        // times the tolerated delay.
        let settle = |control: &mut Control, seconds| {
            for _ in 0..seconds {
                control.on_sample(Some(1.0), tau, tau, 0.0, hops);
            }
            let train = (0..8).map(|_| control.next_train(true)).last().unwrap();
            (train, control.interval() / floor)
        };
        let is = |(train, interval): (u32, f64), floors: f64| {
            assert!((interval / floors - 1.0).abs() < 1e-4, "{hops} hops: {interval} floors");
            train
        };
        assert_eq!(is(settle(&mut control, 100), floors), segments);
        control.on_loss(100.0);
        assert_eq!(is(settle(&mut control, 59), 10_f64.powf(1.0 / 1.5)), 32, "after a loss as on every path");
        assert_eq!(is(settle(&mut control, 60), floors), segments, "a minute later");
    }
}

#[test]
fn whoever_had_company_up_to_three_hops_leaves_it_half_of_the_path_while_it_is_not_felt() {
    // The interval in floors, after the law has required `asked` floors, and then `later` floors
    // for `seconds` seconds.
    let after = |company, hops, asked: f64, later: f64, seconds| {
        let path = PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
        let mut control = Control::new(&control::Config { company, ..control::Config::default() });
        control.on_path(&path, 1460);
        let tau = 0.015;
        for second in 0..200 + seconds {
            // d = 0.09 tau (I/floor)^1.5
            let delay = 0.09 * tau * if second < 200 { asked } else { later }.powf(1.5);
            control.on_sample(Some(1.0), tau, delay, 0.0, hops);
        }
        control.interval() / (tau * if hops <= 3 { 1.034 } else { 1.07 })
    };
    let is = |value: f64, floors: f64| assert!((value / floors - 1.0).abs() < 0.01, "{value}, not {floors}");
    is(after(2.0, 2, 3.0, 1.0, 0), 3.0);
    is(after(2.0, 2, 3.0, 1.0, 10), 2.0);
    is(after(2.0, 2, 3.0, 1.0, 60), 1.0);
    // The other sender is detected and needs less than half: the law determines the interval.
    is(after(2.0, 2, 3.0, 1.5, 10), 1.5 * 2_f64.powf((-3_f64).exp()));
    // With less delay than two flows cause, with more hops, or without this rule: the law alone,
    // which forgets e^-3 in 10 s.
    is(after(2.0, 2, 1.9, 1.0, 10), 1.9_f64.powf((-3_f64).exp()));
    is(after(2.0, 4, 3.0, 1.0, 10), 3_f64.powf((-3_f64).exp()));
    is(after(1.0, 2, 3.0, 1.0, 10), 3_f64.powf((-3_f64).exp()));
}

#[test]
fn who_listens_is_silent_after_full_trains_while_the_connection_is_young() {
    // Total silence after trains of `sent` segments out of four, one train every half second for 20
    // s.
    let silence = |listen, hops, sent| {
        let path = PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None };
        let mut control = Control::new(&control::Config { listen, ..control::Config::default() });
        control.on_path(&path, 1460);
        (0..40).map(|half| control.listen(0.5 * f64::from(half), sent)).sum::<f64>()
    };
    let quarter = Duration::from_millis(250);
    // The rule applies from 2 s to 10 s, without the end.
    assert_eq!(silence(quarter, 3, 4), 16.0 * 0.25);
    assert_eq!(silence(quarter, 3, 3), 0.0, "the application has no more");
    assert_eq!(silence(quarter, 4, 4), 0.0);
    assert_eq!(silence(control::Config::default().listen, 3, 4), 0.0);
}

#[test]
fn marks_count_as_delay_where_they_are_heeded() {
    let path = PathInfo { hops: 4, rate: Rate::from_mbps(2), received_power_dbm: None };
    for (config, times) in [(Config::heeding_marks(), (0.6_f64 / 0.09).powf(1.0 / 1.5)), (Config::default(), 1.0)] {
        let mut control = Control::new(&config.control);
        control.on_path(&path, 1460);
        // A tenth of the segments is marked: 6 * 0.1 tau, where 0.09 tau is tolerated.
        for _ in 0..100 {
            control.on_sample(Some(1.0), 0.03, 0.0, 0.1, 4);
        }
        assert!((control.interval() / (1.07 * 0.03 * times) - 1.0).abs() < 1e-6, "{}", control.interval());
    }
}

/// Goodput over a bottleneck that serves a segment in 28 ms, `hops` hops away, with clocks that
/// drift apart by `drift`.
fn goodput_over_a_bottleneck(drift: f64, hops: u8, told: PathInfo) -> f64 {
    let config = Any::Train(Config::default());
    let (mut sender, mut receiver) = (Endpoint::new(&config, Role::Sender), Endpoint::new(&config, Role::Receiver));
    sender.on_path(told);
    // The receiver's clock. Its wake-ups are converted back.
    let there = |now: Time| Time((now.0 as f64 * (1.0 + drift)) as u64 + 777_000_000_000);
    let here = |then: Time| match then {
        Time::NEVER => Time::NEVER,
        then => Time(((then.0 - 777_000_000_000) as f64 / (1.0 + drift)) as u64 + 1_000),
    };
    let one_way = Duration::from_micros(7_750 * u64::from(hops));
    let back = Duration::from_micros(1_960 * u64::from(hops));
    let mut flying: Vec<(Time, bool, Segment)> = Vec::new();
    let (mut now, mut free) = (Time::ZERO, Time::ZERO);
    sender.open(now);
    sender.write_endless(now);
    let end = ms(300_000);
    loop {
        let sender_at = pump(&mut sender, now, |_, segment| {
            free = free.max(now) + Duration::from_millis(28);
            // Segments that would wait behind more than fifty others are dropped.
            if free.since(now) < Duration::from_millis(50 * 28) {
                flying.push((free + one_way, true, segment));
            }
        });
        let receiver_at = here(pump(&mut receiver, there(now), |_, segment| flying.push((now + back, false, segment))));
        let arrival = flying.iter().map(|flight| flight.0).min().unwrap_or(Time::NEVER);
        now = arrival.min(sender_at).min(receiver_at).max(now);
        if now >= end {
            return receiver.delivered() as f64 * 8.0 / end.as_secs_f64() / 1e3;
        }
        let first = flying.iter().enumerate().min_by_key(|(_, flight)| flight.0).map(|(place, _)| place);
        if let Some(place) = first.filter(|_| arrival <= now) {
            let (_, forth, segment) = flying.remove(place);
            let arrival = Arrival { hops, ..Arrival::default() };
            match forth {
                true => receiver.on_segment(there(now), &segment, arrival),
                false => sender.on_segment(now, &segment, arrival),
            }
        }
    }
}

#[test]
fn clocks_that_drift_by_100_ppm_cost_less_than_two_percent() {
    let path = PathInfo { hops: 7, rate: Rate::from_mbps(2), received_power_dbm: None };
    let same = goodput_over_a_bottleneck(0.0, 7, path);
    for drift in [-1e-4, 1e-4] {
        let drifting = goodput_over_a_bottleneck(drift, 7, path);
        assert!(drifting > 0.98 * same, "{drift}: {drifting} of {same} kbit/s");
    }
}

#[test]
fn wrong_hops_and_rates_cost_throughput_and_never_collapse() {
    let path = |hops, mbps| PathInfo { hops, rate: Rate::from_mbps(mbps), received_power_dbm: None };
    let right = goodput_over_a_bottleneck(0.0, 7, path(7, 2));
    for told in [path(5, 2), path(9, 2), path(7, 1), path(7, 4)] {
        let wrong = goodput_over_a_bottleneck(0.0, 7, told);
        assert!(wrong > 0.5 * right, "{told:?}: {wrong} of {right} kbit/s");
    }
}

#[test]
fn room_for_small_messages_gives_away_nothing_that_is_claimed() {
    // tau is 11 ms, and two floors are 2.14 tau.
    let mut control = Control::new(&Config::contending().control);
    control.on_path(&PathInfo { hops: 8, rate: Rate::from_mbps(11), received_power_dbm: None }, 1460);
    control.on_sample(None, 0.011, 0.0, 0.0, 8);
    control.on_sample(Some(1.0), 0.011, 0.0, 0.0, 8);
    control.leave_room(true);
    assert!((control.interval() - 2.14 * 0.011).abs() < 1e-6, "{}", control.interval());
    // Another sender fills the queues, which also increases tau. Half of what the empty path allows
    // is claimed, which is the same interval.
    for _ in 0..10 {
        control.on_sample(Some(1.0), 0.04, 0.2, 0.0, 8);
    }
    assert!((control.interval() - 2.14 * 0.011).abs() < 1e-6, "{}", control.interval());
    control.leave_room(false);
    assert!((control.interval() - 2.14 * 0.011).abs() < 1e-6, "{}", control.interval());
}
