//! Quiet trains in the kernel: pairs leave as far apart as computed, and after a train nothing leaves until all is acknowledged.
#![cfg(feature = "kernel")]

mod common;

use common::capture::{Packet, capture, median};
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

/// A link of so many milliseconds each way; none, with a message, where there cannot be one.
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

/// What a connection says of itself.
fn state(name: &str) -> Option<Connection> {
    object::status(name).unwrap().connections.into_iter().find(|one| one.samples > 0)
}

/// The trains of a capture: segments that leave before all that left is acknowledged.
fn trains(packets: &[Packet]) -> Vec<Vec<Packet>> {
    let mut trains: Vec<Vec<Packet>> = Vec::new();
    let (mut sent, mut acknowledged) = (0_u32, 0_u32);
    for packet in packets {
        if packet.to == ADDRESSES[0] {
            acknowledged = packet.acknowledges;
        } else if packet.payload > 0 {
            if acknowledged == sent || trains.is_empty() {
                trains.push(Vec::new());
            }
            trains.last_mut().unwrap().push(*packet);
            sent = packet.sequence.wrapping_add(packet.payload as u32);
        }
    }
    trains
}

#[test]
fn pairs_leave_as_computed_and_silence_follows_a_train() {
    if is_missing()
        || !is_slow_run("measures the spacing of trains for half a minute, on a machine with nothing else to do")
    {
        return;
    }
    // Round trips so long that no pair is acknowledged before the next one leaves.
    for (hops, delay) in [(7, 50), (10, 60)] {
        let Some(link) = link(delay) else { return };
        let mut request = Loaded::request('q');
        request.form = Form::QuietTrainSolo;
        request.initial_window = 2;
        request.usual = Path::new(hops, Rate::from_mbps(2));
        let loaded = Loaded::new(request);
        let stop = Arc::new(AtomicBool::new(false));
        let tap = capture(&link.sides[0], &stop);
        let flow = Flow::start(&link.sides, ADDRESSES[1], loaded.name());
        let mut told = Vec::new();
        eventually(Duration::from_secs(15), || {
            told.extend(state(loaded.name()));
            false
        });
        stop.store(true, Relaxed);
        let packets = tap.join().unwrap();
        flow.finish();

        // From the third second on the interval hardly changes.
        let begin = packets[0].at + 3_000_000_000;
        let all = trains(&packets);
        let (first, steady): (Vec<_>, Vec<_>) = all.into_iter().partition(|train| train[0].at < begin);
        // Ten segments that the kernel does not pace, two at a time; then four, as long as nothing is known of the path: 32 segments, a train
        // that shows the peer's clock, and the one whose last ACK is the first sample. From there twice as many each time. An ACK of an odd number of
        // segments, which the peer's kernel sends when it likes, makes a train a segment longer.
        let lengths: Vec<usize> = first.iter().map(Vec::len).collect();
        let computed = [2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 8, 16];
        assert!(lengths.len() >= computed.len(), "{lengths:?}");
        assert!(
            std::iter::zip(&lengths, computed).all(|(one, computed)| (computed..=computed + 1).contains(one)),
            "{lengths:?}"
        );
        let steady = &steady[..steady.len() - 1];
        assert!(steady.len() >= 4, "{} trains", steady.len());
        let longest = told.last().unwrap().train as usize;
        for train in steady {
            assert_eq!(train.len(), longest, "segments between two silences");
        }
        let told: Vec<_> = told.iter().filter(|one| one.train as usize == longest).collect();
        let wanted = |value: fn(&Connection) -> meshpace_core::Duration| {
            median(told[told.len() / 2..].iter().map(|one| value(one).as_secs_f64()).collect())
        };
        let (gap, interval) = (wanted(|one| one.gap), wanted(|one| one.interval));
        let between = |one: &Packet, other: &Packet| (other.at - one.at) as f64 / 1e9;
        let later = &steady[steady.len() / 2..];
        let pairs = || later.iter().flat_map(|train| train.chunks(2));
        let gaps: Vec<f64> = pairs().map(|pair| between(&pair[0], &pair[1])).collect();
        let firsts: Vec<f64> = later
            .iter()
            .flat_map(|train| train.windows(3).step_by(2))
            .map(|three| between(&three[0], &three[2]))
            .collect();
        let silences: Vec<f64> = steady.windows(2).map(|two| between(two[0].last().unwrap(), &two[1][0])).collect();
        let counts = (gaps.len(), firsts.len(), silences.len());
        let quietest = silences.iter().copied().fold(f64::INFINITY, f64::min);
        let (measured_gap, measured_pair) = (median(gaps), median(firsts) / 2.0);
        println!(
            "{hops} hops: trains of {longest}; gap {:.3} ms, computed {:.3}; interval {:.3} ms, computed {:.3}; silence {:.1} ms at least, {counts:?}",
            measured_gap * 1e3,
            gap * 1e3,
            measured_pair * 1e3,
            interval * 1e3,
            quietest * 1e3
        );
        assert!((measured_gap / gap - 1.0).abs() < 0.01, "gap {measured_gap} s, computed {gap} s");
        assert!((measured_pair / interval - 1.0).abs() < 0.01, "interval {measured_pair} s, computed {interval} s");
        // A round trip.
        assert!(quietest > 1.98e-3 * delay as f64, "{quietest} s");
        assert!(told.iter().all(|one| one.paced));
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
        // The device is named: paced after all.
        request.devices = vec![WIRE.to_owned()];
        let (named, paced) = {
            let loaded = sides[0].run(|| Loaded::new(request.clone()));
            let carried = carried(loaded.name());
            sides[0].run(|| drop(loaded));
            carried
        };
        assert_eq!(paced, Some(true), "{form:?}");
        println!("{form:?}: {named:.1} Mbit/s where the device is named");
        // Paced for four hops by the round trips of a path, it would have 1 to 2 Mbit/s; a busy machine has more than this, too.
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
    // Pairs are so near that the timer of 40 ms does not bring the receiver's count back between them.
    let Some(link) = link(18) else { return };
    let mut request = Loaded::request('p');
    request.form = Form::QuietTrainSolo;
    request.initial_window = 2;
    request.usual = Path::new(4, Rate::from_mbps(2));
    let loaded = Loaded::new(request);
    let stop = Arc::new(AtomicBool::new(false));
    let tap = capture(&link.sides[0], &stop);
    // Writes of 8 kB: every sixth segment or so has PSH, and is acknowledged alone.
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
    // Where trains do not follow the receiver's count, half of them do (15 of 30).
    assert!(3 * waited < silences.len(), "{waited} of {}", silences.len());
}
