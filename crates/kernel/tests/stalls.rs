//! Tests that no connection stops for good, whether or not the kernel runs the programs that return
//! a value, and whichever segments are lost.
#![cfg(feature = "kernel")]

mod common;

use common::standstill::{blame, verdict, watch};
use common::{DEVICE, Flow, Loaded, RECEIVER, eventually, finish_all, is_missing, network};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder};
use meshpace_core::rng::Purpose;
use meshpace_core::{Rate, Rng};
use meshpace_kernel::{Destination, Form, Path};
use meshpace_live::testbed::tun_link::ADDRESSES;
use meshpace_live::testbed::{Impairment, Link, Loss, Namespace};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, has, is_slow_run, skipped};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static LOST_ANSWERS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/lost_answers.bpf.o")));
static LOST_ANSWERS_SOLO: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/lost_answers_solo.bpf.o")));
static SOME_LOST_ANSWERS_SOLO: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/some_lost_answers_solo.bpf.o")));

/// A congestion control that loses answers, with a unique name. It is unregistered when it is
/// dropped.
struct WithoutAnswers {
    /// Fields are dropped in this order. The link has to be dropped before the programs that it
    /// unregisters.
    _link: libbpf_rs::Link,
    _object: Object,
}

impl WithoutAnswers {
    /// Registers the congestion control of `form` in `object`. The object determines how many
    /// answers are lost.
    fn register(object: &Aligned<[u8]>, form: Form, name: &str) -> WithoutAnswers {
        let own = form.usual_name();
        let mut open = ObjectBuilder::default().open_memory(&object.0).unwrap();
        let mut operations = open.maps_mut().find(|map| map.name() == own).unwrap();
        let value = operations.initial_value_mut().unwrap();
        let mut field = [0; 16];
        field[..own.len()].copy_from_slice(own.as_bytes());
        let at = value.windows(16).position(|window| window == field).unwrap();
        value[at..at + 16].fill(0);
        value[at..at + name.len()].copy_from_slice(name.as_bytes());
        let mut object = open.load().unwrap();
        let write = |map: &str, key: &[u8], value: &[u8]| {
            let map = object.maps().find(|one| one.name() == map).unwrap();
            map.update(key, value, MapFlags::ANY).unwrap();
        };
        let settings = [form.number(), 200, 2].map(u32::to_ne_bytes).concat();
        write("settings", &[0; 4], &settings);
        write("paths", &Destination::ANY.encode(), &Path::new(4, Rate::from_mbps(11)).encode());
        let mut operations = object.maps_mut().find(|map| map.name() == own).unwrap();
        let link = operations.attach_struct_ops().unwrap();
        WithoutAnswers { _link: link, _object: object }
    }
}

#[test]
fn a_connection_goes_on_without_the_answers_of_programs() {
    if is_missing() {
        return;
    }
    let sides = network();
    // The kernel's own number of segments is 0, so only the least number counts, as over round
    // trips of some milliseconds. A sysctl has this effect here. The device takes more than one
    // segment, so that the kernel has something to cut.
    sides[0]
        .run(|| {
            std::fs::write("/proc/sys/net/ipv4/tcp_tso_rtt_log", "0").unwrap();
            ip(&["link", "set", "dev", DEVICE, "gso_max_segs", "65535"])
        })
        .unwrap();
    goes_on_without_answers(&sides, LOST_ANSWERS, Form::Ap05, 'a');
}

/// Tests that a flow progresses although every answer of its programs is lost. `letter`
/// distinguishes the name from those of other tests.
fn goes_on_without_answers(sides: &[Namespace; 2], object: &Aligned<[u8]>, form: Form, letter: char) {
    let name = format!("mp{}{letter}", std::process::id());
    let registered = WithoutAnswers::register(object, form, &name);
    let flow = Flow::start(sides, RECEIVER, &name);
    // At one segment per 2 ms this takes a second.
    let has_arrived = eventually(Duration::from_secs(20), || flow.arrived.load(Relaxed) > 500_000);
    let arrived = flow.arrived.load(Relaxed);
    drop(registered);
    assert!(has_arrived, "{arrived} bytes in 20 s");
    flow.finish();
}

#[test]
fn quiet_trains_go_on_without_the_answers_where_the_device_takes_one_segment() {
    if is_missing() {
        return;
    }
    // Quiet trains return the least number of segments to send. Where a device takes one at a time
    // there is nothing to cut, and 0 does no harm.
    let sides = network();
    goes_on_without_answers(&sides, LOST_ANSWERS_SOLO, Form::QuietTrainSolo, 'w');
}

/// Time without a byte after which a connection that has lost an answer counts as stopped for good.
/// An empty segment costs the timer of window probes and an RTO, both 0.2 s over this link, unless
/// a program is skipped again.
const FOR_GOOD: Duration = Duration::from_secs(10);

#[test]
fn quiet_trains_go_on_where_some_answers_are_lost() {
    if is_missing() {
        return;
    }
    if let Some(why) = Link::missing() {
        skipped(Class::Rights, format_args!("{why}"));
        return;
    }
    let delay = meshpace_core::Duration::from_millis(10);
    let way = Impairment { delay, ..Impairment::default() };
    // A device that takes many segments at a time, so that an answer of 0 cuts an empty segment.
    let link = Link::new(way.clone(), way, 1500, false).unwrap();
    let name = format!("mp{}s", std::process::id());
    let registered = WithoutAnswers::register(SOME_LOST_ANSWERS_SOLO, Form::QuietTrainSolo, &name);
    let flows: Vec<Flow> = (0..20).map(|_| Flow::start(&link.sides, ADDRESSES[1], &name)).collect();
    // This many bytes take some seconds and more than a hundred answers.
    let longest = watch(&flows, FOR_GOOD, |bytes, _| bytes.iter().all(|bytes| *bytes > 300_000));
    let blame = blame(&flows, &longest, FOR_GOOD, &link.sides[0], Some(&link));
    drop(registered);
    assert!(blame.is_empty(), "connections stand still:\n{blame}");
    let longest = longest.iter().max().unwrap().as_secs_f64();
    println!("longest gap {longest:.2} s");
    assert!(longest > 0.3, "no answer was lost where it matters: {longest} s");
    finish_all(flows);
}

#[test]
fn an_empty_segment_is_told_from_data_in_flight() {
    let empty = "ESTAB 0 40544 10.77.0.1:43616 10.77.0.2:34153 rto:4416 backoff:4 bytes_sent:728344 bytes_retrans:5792 \
                 bytes_acked:722553 unacked:1 retrans:1/8 lost:1 notsent:40544";
    assert!(verdict(empty).starts_with("only an empty segment"));
    assert!(verdict(&empty.replace("722553", "721105")).starts_with("segments are in flight"));
    assert!(verdict(&empty.replace("unacked:1", "")).starts_with("nothing is in flight"));
}

/// Time without a byte after which a connection counts as stalled. An RTO after two losses of one
/// segment is 0.8 s, after three 1.6 s.
const STALL: Duration = Duration::from_secs(5);

/// Number of `flows` that stall within `time`. The reasons are printed. Ends the flows.
fn stalls(flows: Vec<Flow>, time: Duration, name: &str, sender: &Namespace, link: Option<&Link>) -> usize {
    let longest = watch(&flows, STALL, |_, passed| passed > time);
    let stalled = longest.iter().filter(|longest| **longest >= STALL).count();
    let gap = longest.iter().max().map_or(0.0, Duration::as_secs_f64);
    eprintln!("{name}: {stalled} of {} stood still for {STALL:?}; longest gap {gap:.2} s", flows.len());
    eprint!("{}", blame(&flows, &longest, STALL, sender, link));
    // Waiting for a stalled connection would last until TCP aborts it.
    if stalled == 0 {
        finish_all(flows);
    }
    stalled
}

/// Runs `count` connections at once, for `time`, over a wire that loses 1 % of all packets. Returns
/// the number that stalled.
fn stalls_over_a_wire(count: usize, time: Duration, name: &str) -> usize {
    let sides = network();
    let rule = "add table inet lossy; add chain inet lossy in { type filter hook input priority 0; }; \
                add rule inet lossy in meta l4proto tcp numgen random mod 100 == 0 drop";
    for side in &sides {
        assert!(side.run(|| Command::new("nft").arg(rule).status()).unwrap().success());
    }
    let flows = (0..count).map(|_| Flow::start(&sides, RECEIVER, name)).collect();
    stalls(flows, time, name, &sides[0], None)
}

#[test]
fn none_of_200_connections_stops() {
    let what = "200 connections over a wire with 1 % loss, five minutes";
    if !is_slow_run(what) || is_missing() || !has("nft", "nftables") {
        return;
    }
    let time = Duration::from_secs(25);
    let mut request = Loaded::request('0');
    request.initial_window = 2;
    let mut stopped = stalls_over_a_wire(100, time, Loaded::new(request).name());
    let mut rng = Rng::stream(31, Purpose::Test, 0);
    for letter in "123456789b".chars() {
        let mut request = Loaded::request(letter);
        request.form = if rng.next_u64().is_multiple_of(2) { Form::Ap05 } else { Form::Ap10 };
        let hops = 1 + (rng.next_u64() % 8) as u8;
        request.usual = Path::new(hops, Rate::from_bps(1_000_000 << (rng.next_u64() % 5)));
        request.initial_window = [0, 1, 2, 10][(rng.next_u64() % 4) as usize];
        request.factor = (rng.next_u64() % 401) as u32;
        eprintln!("{request:?}");
        stopped += stalls_over_a_wire(10, time, Loaded::new(request).name());
    }
    assert_eq!(stopped, 0, "of 200");
}

#[test]
fn none_of_500_quiet_connections_stops() {
    let what = "500 connections of quiet trains over links with 1 % loss, three minutes";
    if !is_slow_run(what) || is_missing() {
        return;
    }
    if let Some(why) = Link::missing() {
        skipped(Class::Rights, format_args!("{why}"));
        return;
    }
    let mut stopped = 0;
    for (round, hops) in [2, 4, 7, 7, 10].into_iter().enumerate() {
        let delay = meshpace_core::Duration::from_millis(5 * u64::from(hops));
        let way = Impairment { delay, loss: Loss::Random(0.01), seed: round as u64, ..Impairment::default() };
        let link = Link::new(way.clone(), way, 1500, false).unwrap();
        let mut request = Loaded::request(char::from(b'A' + round as u8));
        request.form = Form::QuietTrainSolo;
        request.initial_window = [2, 0, 2, 10, 2][round];
        request.usual = Path::new(hops, Rate::from_mbps(2));
        let loaded = Loaded::new(request);
        let flows = (0..100).map(|_| Flow::start(&link.sides, ADDRESSES[1], loaded.name())).collect();
        stopped += stalls(flows, Duration::from_secs(25), loaded.name(), &link.sides[0], Some(&link));
    }
    assert_eq!(stopped, 0, "of 500");
}

#[test]
fn connections_go_on_without_answers_on_linux_6_1() {
    let what = "boots Debian's kernel 6.1 in qemu and runs two of these tests there";
    if is_slow_run(what) {
        // The test in which some answers are lost is left out: before Linux 6.10 two lost answers
        // can still stop a connection (docs/kernel.md).
        let tests = "a_connection_goes_on_without_the_answers quiet_trains_go_on_without";
        common::debian_6_1(tests, "2 passed; 0 failed");
    }
}
