//! Number of hops from the kernel's routing table. Mesh routing daemons (olsrd, batmand, Babel in
//! its plain metric) install routes whose metric is the number of hops.

use crate::netlink::{route, socket};
use meshpace_core::Rate;
use meshpace_session::path::PathSource;
use meshpace_transport::PathInfo;
use netlink_sys::Socket;
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

/// Path source that reads the metric of the route to the peer over rtnetlink, in the network
/// namespace in which it was created. A route without a metric leads to a neighbour.
pub struct RouteMetric {
    rate: Rate,
    socket: Mutex<Socket>,
}

impl std::fmt::Debug for RouteMetric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteMetric").field("rate", &self.rate).finish_non_exhaustive()
    }
}

impl RouteMetric {
    /// Creates a path source that asks the kernel for the number of hops. `rate` is the channel's
    /// data rate, which routes do not contain.
    ///
    /// # Errors
    ///
    /// The kernel provides no netlink socket.
    pub fn new(rate: Rate) -> io::Result<RouteMetric> {
        Ok(RouteMetric { rate, socket: Mutex::new(socket()?) })
    }

    /// Returns the metric of the route to `peer`, or 0 if the route has no metric.
    ///
    /// # Errors
    ///
    /// There is no route, or the request to the kernel failed.
    pub fn metric(&self, peer: IpAddr) -> io::Result<u32> {
        let socket = self.socket.lock().expect("nobody panics while holding it");
        Ok(route(&socket, peer)?.priority().unwrap_or(0))
    }
}

impl PathSource for RouteMetric {
    fn path(&self, peer: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        // A metric above 64, which exceeds the diameter of any mesh, is not a number of hops.
        let hops = self.metric(peer).ok().map(|metric| metric.max(1)).filter(|metric| *metric <= 64)?;
        Some(PathInfo { hops: hops as u8, rate: self.rate, received_power_dbm: None })
    }
}
