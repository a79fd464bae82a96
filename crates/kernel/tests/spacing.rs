//! Tests that segments leave a device with the computed interval between them.
#![cfg(feature = "kernel")]

mod common;

use common::capture::{capture, median};
use common::{DEVICE, Flow, Loaded, RECEIVER, eventually, is_missing, network};
use meshpace_core::Rate;
use meshpace_kernel::{Destination, Path, object};
use meshpace_live::tun::ip;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

#[test]
fn segments_leave_an_interval_apart() {
    if is_missing() {
        return;
    }
    let sides = network();
    // With 255 hops the RTT contributes little, and the interval is four transmissions: 16 bits per
    // byte at this rate.
    let nominal = [1e-3, 5e-3, 20e-3];
    let addresses = [2, 3, 4].map(|last| Ipv4Addr::new(10, 79, 0, last));
    let mut request = Loaded::request('s');
    request.factor = 0;
    for (address, interval) in addresses.iter().zip(nominal) {
        let rate = Rate::from_bps((16.0 * 1448.0 / interval) as u64);
        request.paths.push((Destination::from(*address), Path::new(255, rate)));
        if *address != RECEIVER {
            sides[1].run(|| ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])).unwrap();
        }
    }
    let loaded = Loaded::new(request);
    let stop = Arc::new(AtomicBool::new(false));
    let tap = capture(&sides[0], &stop);
    let flows: Vec<Flow> = addresses.iter().map(|address| Flow::start(&sides, *address, loaded.name())).collect();
    // Collects the computed intervals while the segments leave.
    let mut computed: BTreeMap<Ipv4Addr, Vec<f64>> = BTreeMap::new();
    eventually(Duration::from_millis(2500), || {
        for connection in object::status(loaded.name()).unwrap().connections {
            if let std::net::IpAddr::V4(address) = connection.remote.ip()
                && connection.samples > 5
            {
                computed.entry(address).or_default().push(connection.interval.as_secs_f64());
            }
        }
        false
    });
    stop.store(true, Relaxed);
    let packets = tap.join().unwrap();
    flows.into_iter().for_each(Flow::finish);

    for (address, nominal) in addresses.iter().zip(nominal) {
        let left: Vec<_> = packets.iter().filter(|one| one.to == *address && one.payload > 0).collect();
        // The kernel does not pace the first ten segments. A gap belongs to the segment before it,
        // which has to be a full one.
        let gaps: Vec<f64> = left[12..]
            .windows(2)
            .filter(|pair| pair[0].payload == 1448)
            .map(|pair| (pair[1].at - pair[0].at) as f64 / 1e9)
            .collect();
        assert!(gaps.len() > 50, "{} gaps to {address}", gaps.len());
        let (count, gap) = (gaps.len(), median(gaps));
        let told = median(computed[address].clone());
        eprintln!("{count} gaps to {address}: median {:.4} ms, computed {:.4} ms", gap * 1e3, told * 1e3);
        assert!((gap / told - 1.0).abs() < 0.02, "gap {gap} s, computed {told} s");
        // The RTT contributes 2/255 of itself.
        assert!((told / nominal - 1.0).abs() < 0.1, "computed {told} s, to be {nominal} s");
    }
}
