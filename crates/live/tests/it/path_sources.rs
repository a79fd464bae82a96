//! Tests of the sources of the number of hops: the kernel's routes, and the time to live of packets
//! that arrive.

use crate::common::quick;
use meshpace_core::Rate;
use meshpace_live::testbed::{Impairment, Link, tun_link::ADDRESSES};
use meshpace_live::tpa::path::{PathSource, RouteMetric};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, skipped};
use meshpace_transport::PathInfo;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

#[test]
fn the_metric_of_a_route_is_its_hops() {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    let link = Link::new(Impairment::default(), Impairment::default(), 1500, false).unwrap();
    link.sides[0].run(|| {
        let source = RouteMetric::new(Rate::from_mbps(11)).unwrap();
        let hops = |peer: [u8; 4]| source.path(IpAddr::from(peer), None).map(|path| (path.hops, path.rate));
        let rate = Rate::from_mbps(11);
        assert_eq!(hops([10, 77, 0, 2]), Some((1, rate)), "a neighbour");
        assert_eq!(hops([10, 78, 0, 9]), None, "no route");
        ip(&["route", "add", "10.78.0.0/16", "via", "10.77.0.2", "metric", "5"]).unwrap();
        assert_eq!(hops([10, 78, 0, 9]), Some((5, rate)));
        ip(&["route", "replace", "10.78.0.9/32", "via", "10.77.0.2", "metric", "3"]).unwrap();
        assert_eq!(hops([10, 78, 0, 9]), Some((3, rate)), "the longer prefix");
        ip(&["route", "add", "default", "via", "10.77.0.2", "metric", "1024"]).unwrap();
        assert_eq!(hops([10, 90, 0, 1]), None, "no number of hops");
    });
}

/// Path source that records the questions it receives.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Option<u8>>>);

impl PathSource for Asked {
    fn path(&self, _: IpAddr, travelled: Option<u8>) -> Option<PathInfo> {
        self.0.lock().unwrap().push(travelled);
        None
    }
}

#[test]
fn the_time_to_live_of_packets_tells_how_far_they_came() {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    let link = Link::new(Impairment::default(), Impairment::default(), 1500, false).unwrap();
    let to = SocketAddr::from((ADDRESSES[1], 5000));
    let listener = link.sides[1].run(|| {
        // Packets leave as if they had passed three routers.
        ip(&["route", "replace", "10.77.0.1/32", "dev", "lossy", "hoplimit", "61"]).unwrap();
        TpaPort::with_options(to, quick()).unwrap().listen(1).unwrap()
    });
    let asked = Arc::new(Asked::default());
    let mut client = link.sides[0].run(|| {
        let options = Options { path: Some(Arc::clone(&asked) as _), ..quick() };
        TpaPort::with_options("0.0.0.0:0", options).unwrap().connect(to).unwrap()
    });
    client.write_all(b"?").unwrap();
    listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
    assert_eq!(*asked.0.lock().unwrap(), [None, Some(4)]);
}
