//! Tests of quiet trains in the kernel: pairs leave with the computed spacing, and after a train
//! nothing leaves until everything is acknowledged.
#![cfg(feature = "kernel")]

mod common;

use common::capture::{Packet, capture, median, now};
use common::{DEVICE as WIRE, Flow, Loaded, RECEIVER, eventually, is_missing, network};
use meshpace_core::Rate;
use meshpace_kernel::{Connection, Form, Path, object};
use meshpace_live::testbed::impairment::Impairment;
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE, Link};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, is_slow_run, skipped};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A link with a delay of `milliseconds` each way. `None`, with a report, on a machine that cannot
/// have one.
#[track_caller]
fn link(milliseconds: u64) -> Option<Link> {
    if let Some(why) = Link::missing() {
        skipped(Class::Rights, format_args!("{why}"));
        return None;
    }
    let delay = meshpace_core::Duration::from_millis(milliseconds);
    let way = Impairment { delay, ..Impairment::default() };
    let link = Link::new(way.clone(), way, 1500, false).unwrap();
    link.sides[0].run(|| ip(&["link", "set", "dev", DEVICE, "gso_max_segs", "1"])).unwrap();
    Some(link)
}

/// Report of the programs about the connection.
fn state(name: &str) -> Option<Connection> {
    object::status(name).unwrap().connections.into_iter().find(|one| one.samples > 0)
}

/// Divides a capture into trains: segments that leave before all segments sent so far are
/// acknowledged. Retransmissions are left out.
fn trains(packets: &[Packet]) -> Vec<Vec<Packet>> {
    let mut trains: Vec<Vec<Packet>> = Vec::new();
    let (mut sent, mut acknowledged) = (0_u32, 0_u32);
    for packet in packets {
        let end = packet.sequence.wrapping_add(packet.payload as u32);
        if packet.to == ADDRESSES[0] {
            acknowledged = packet.acknowledges;
        } else if trains.is_empty() {
            if packet.payload > 0 {
                (trains, sent) = (vec![vec![*packet]], end);
            }
        } else if (end.wrapping_sub(sent) as i32) > 0 {
            if acknowledged == sent {
                trains.push(Vec::new());
            }
            trains.last_mut().unwrap().push(*packet);
            sent = end;
        }
    }
    trains
}

/// Longest train that may leave after `after` segments, if the longest train before it had
/// `before`.
///
/// The ten segments that the kernel does not pace leave two at a time. Then trains have four
/// segments as long as nothing is known of the path: during 32 segments, a train that shows the
/// peer's clock, and the train whose last ACK is the first sample. After that each train may be
/// twice as long as the one before.
fn longest_train(after: usize, before: usize) -> usize {
    match after {
        0..10 => 2,
        10..36 => 4,
        _ => (2 * before).min(16),
    }
}

/// Tells for each of `trains` whether it has the greatest allowed length. No train is longer than
/// that, except by one segment: an ACK of an odd number of segments, which the peer's kernel may
/// send at any time, makes a train one segment longer.
fn full_trains(trains: &[Vec<Packet>]) -> Vec<bool> {
    let (mut after, mut before, mut full) = (0, 2, Vec::new());
    for train in trains {
        let most = longest_train(after, before);
        let length = train.len();
        assert!(length <= most + 1, "{length} segments between two silences, {after} segments after the start");
        full.push(length >= most);
        after += length;
        before = before.max(length & !1);
    }
    full
}

/// Latest report of the connection before `at`.
fn told_at(told: &[(i64, Connection)], at: i64) -> Option<&Connection> {
    told[..told.partition_point(|(told_at, _)| *told_at <= at)].last().map(|(_, one)| one)
}

/// Two medians: of the times between the two segments of a pair, and of the times between the first
/// segments of consecutive pairs. Each time is divided by the value that the connection reported at
/// that time. Both medians are 1 if segments leave as computed.
fn spacing(trains: &[Vec<Packet>], told: &[(i64, Connection)]) -> (f64, f64) {
    let between = |one: &Packet, other: &Packet| (other.at - one.at) as f64 / 1e9;
    let (mut gaps, mut intervals) = (Vec::new(), Vec::new());
    // An ACK of an odd number of segments shifts the pairs of a train.
    for train in trains.iter().filter(|train| train.len() % 2 == 0) {
        for pair in train.chunks_exact(2) {
            let Some(one) = told_at(told, pair[0].at) else { continue };
            gaps.push(between(&pair[0], &pair[1]) / one.gap.as_secs_f64());
        }
        for three in train.windows(3).step_by(2) {
            // The kernel computes the wait when the second segment of the pair leaves.
            let Some(one) = told_at(told, three[1].at) else { continue };
            intervals.push(between(&three[0], &three[2]) / 2.0 / one.interval.as_secs_f64());
        }
    }
    println!("{} gaps, {} intervals", gaps.len(), intervals.len());
    assert!(gaps.len() >= 24 && intervals.len() >= 21, "few pairs");
    (median(gaps), median(intervals))
}

#[test]
fn pairs_leave_as_computed_and_silence_follows_a_train() {
    if is_missing() || !is_slow_run("measures the spacing of trains for 40 s") {
        return;
    }
    // Round trips are at least twice as long as the time between two pairs. No pair is therefore
    // acknowledged before the next one leaves, not even if a busy machine delays segments and the
    // interval grows.
    for (hops, delay) in [(14, 100), (20, 150)] {
        let Some(link) = link(delay) else { return };
        let mut request = Loaded::request('q');
        request.form = Form::QuietTrainSolo;
        request.initial_window = 2;
        request.usual = Path::new(hops, Rate::from_mbps(2));
        let loaded = Loaded::new(request);
        let stop = Arc::new(AtomicBool::new(false));
        let tap = capture(&link.sides[0], &stop);
        let address = ADDRESSES[1].into();
        let flow = Flow::buffered(&link.sides, address, address, loaded.name(), 65_536);
        let mut told = Vec::new();
        eventually(Duration::from_secs(20), || {
            let at = now();
            told.extend(state(loaded.name()).map(|one| (at, one)));
            false
        });
        stop.store(true, Relaxed);
        let packets = tap.join().unwrap();
        flow.finish();

        let mut trains = trains(&packets);
        // The last train had not left completely.
        trains.pop();
        let lengths: Vec<usize> = trains.iter().map(Vec::len).collect();
        println!("{hops} hops: trains of {lengths:?}");
        let full = full_trains(&trains);
        let first = lengths.iter().position(|length| *length > 9).expect("trains grow beyond eight segments");
        let full = full[..first].iter().filter(|full| **full).count();
        // A train is shorter if the kernel skips a program or if the writer is late.
        assert!(4 * full >= 3 * first, "{full} of the first {first} trains are as long as they may be: {lengths:?}");

        let silences = trains.windows(2).map(|two| (two[1][0].at - two[0].last().unwrap().at) as f64 / 1e6);
        let quietest = silences.fold(f64::INFINITY, f64::min);
        // The silence lasts at least about one round trip.
        assert!(quietest > 1.98 * delay as f64, "{quietest} ms without a segment after a train");

        // In the second half the interval hardly changes any more.
        let steady = &trains[trains.len() / 2..];
        let (gap, interval) = spacing(steady, &told);
        println!("gap {gap:.4}, interval {interval:.4} of what is computed; silence {quietest:.1} ms at least");
        assert!((gap - 1.0).abs() < 0.01, "pairs are {gap} of the computed gap apart");
        assert!((interval - 1.0).abs() < 0.01, "the first of pairs leave {interval} of two computed intervals apart");
        assert!(told.iter().all(|(_, one)| one.paced));
    }
}

#[test]
fn a_path_without_radio_is_not_paced() {
    if is_missing() {
        return;
    }
    for (form, letter) in [(Form::Ap05, 'n'), (Form::QuietTrainSolo, 'o')] {
        let sides = network();
        let carried = |name: &str| {
            let flow = Flow::start(&sides, RECEIVER, name);
            let from = flow.arrived.load(Relaxed);
            eventually(Duration::from_secs(2), || false);
            let carried = flow.arrived.load(Relaxed) - from;
            let paced = object::status(name).ok().map(|status| status.connections.iter().any(|one| one.paced));
            flow.finish();
            (carried as f64 * 8.0 / 2e6, paced)
        };
        let mut request = Loaded::request(letter);
        request.form = form;
        request.usual.always = false;
        let (guarded, paced) = {
            let loaded = Loaded::new(request.clone());
            carried(loaded.name())
        };
        assert_eq!(paced, Some(false));
        let (reno, _) = carried("reno");
        println!("{form:?}: {guarded:.0} Mbit/s, reno {reno:.0}");
        // With the device named, the connection is paced.
        request.devices = vec![WIRE.to_owned()];
        let (named, paced) = {
            let loaded = sides[0].run(|| Loaded::new(request.clone()));
            let carried = carried(loaded.name());
            sides[0].run(|| drop(loaded));
            carried
        };
        assert_eq!(paced, Some(true), "{form:?}");
        println!("{form:?}: {named:.1} Mbit/s where the device is named");
        // If the connection were paced for four hops by its round-trip times, it would reach 1 to 2
        // Mbit/s. Even a busy machine reaches more than this limit.
        assert!(guarded > 5.0, "{guarded} Mbit/s");
        // A destination with a path of its own is paced over every device.
        request.devices.clear();
        request.paths = vec![(RECEIVER.into(), Path::new(4, Rate::from_mbps(2)))];
        let loaded = Loaded::new(request);
        assert_eq!(carried(loaded.name()).1, Some(true), "{form:?}");
    }
}

#[test]
fn the_last_of_a_train_seldom_waits_for_the_receivers_timer() {
    if is_missing() || !is_slow_run("measures silences of trains for 20 s, on a machine with nothing else to do") {
        return;
    }
    // The time between pairs is so short that the timer of 40 ms does not correct the receiver's
    // count between them.
    let Some(link) = link(18) else { return };
    let mut request = Loaded::request('p');
    request.form = Form::QuietTrainSolo;
    request.initial_window = 2;
    request.usual = Path::new(4, Rate::from_mbps(2));
    let loaded = Loaded::new(request);
    let stop = Arc::new(AtomicBool::new(false));
    let tap = capture(&link.sides[0], &stop);
    // Writes have 8 kB: about every sixth segment has the PSH flag and is acknowledged alone.
    let flow = Flow::start(&link.sides, ADDRESSES[1], loaded.name());
    eventually(Duration::from_secs(20), || false);
    stop.store(true, Relaxed);
    let packets = tap.join().unwrap();
    flow.finish();
    let begin = packets[0].at + 3_000_000_000;
    let trains: Vec<_> = trains(&packets).into_iter().filter(|train| train[0].at > begin && train.len() >= 8).collect();
    let silences: Vec<f64> =
        trains.windows(2).map(|two| (two[1][0].at - two[0].last().unwrap().at) as f64 / 1e6).collect();
    let waited = silences.iter().filter(|silence| **silence > 36.0 + 30.0).count();
    println!("{waited} of {} trains waited: {silences:.0?}", silences.len());
    assert!(silences.len() >= 15, "{} trains", silences.len());
    // If trains did not follow the receiver's count, half of them would wait for the timer (15 of
    // 30).
    assert!(3 * waited < silences.len(), "{waited} of {}", silences.len());
}
