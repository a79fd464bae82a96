//! Quiet trains in the kernel: pairs leave as far apart as computed, and after a train nothing leaves until all is acknowledged.
#![cfg(feature = "kernel")]

mod common;

use common::capture::capture;
use common::{Flow, Loaded, eventually, is_missing};
use meshpace_core::Rate;
use meshpace_live::testbed::impairment::Impairment;
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE, Link};
use meshpace_live::tun::ip;
use meshpace_kernel::{Form, Path, object};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

#[test]
fn look() {
    if is_missing() {
        return;
    }
    let delay = Impairment { delay: meshpace_core::Duration::from_millis(50), ..Impairment::default() };
    let link = Link::new(delay.clone(), delay, 1500, false).unwrap();
    let sides = &link.sides;
    sides[0].run(|| ip(&["link", "set", "dev", DEVICE, "gso_max_segs", "1"])).unwrap();
    let mut request = Loaded::request('q');
    request.form = Form::QuietTrainSolo;
    request.initial_window = 2;
    request.usual = Path::new(7, Rate::from_mbps(2));
    let loaded = Loaded::new(request);
    let stop = Arc::new(AtomicBool::new(false));
    let tap = capture(&sides[0], &stop);
    let flow = Flow::start(sides, ADDRESSES[1], loaded.name());
    let mut last = None;
    eventually(Duration::from_millis(12000), || {
        let status = object::status(loaded.name()).unwrap();
        let now = status.connections.first().map(|one| (one.interval, one.gap, one.train, one.samples, one.delay, one.rate));
        if now != last {
            println!("{now:?}");
            last = now;
        }
        false
    });
    stop.store(true, Relaxed);
    let departures = tap.join().unwrap();
    println!("{}", flow.arrived.load(Relaxed));
    flow.finish();
    let left = &departures[&ADDRESSES[1]];
    let begin = left[0].0;
    for pair in left.windows(2) {
        println!("{:.3} {} {:.3}", (pair[0].0 - begin) as f64 / 1e6, pair[0].1, (pair[1].0 - pair[0].0) as f64 / 1e6);
    }
}
