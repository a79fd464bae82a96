//! Hops from the kernel's routing table: mesh routing daemons (olsrd, batmand, Babel in its plain metric) write the number of hops
//! as the metric of the routes they install.

use super::path::PathSource;
use meshpace_core::Rate;
use meshpace_transport::PathInfo;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage::{GetRoute, NewRoute};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

/// Longest answer of the kernel to one question, with room to spare.
const ANSWER: usize = 4096;

/// The metric of the route to the peer, over rtnetlink, in the network namespace in which it was made. A route without a
/// metric leads to a neighbour.
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
    /// Asks the kernel for hops; the channel's data rate, which routes do not tell, is given.
    ///
    /// # Errors
    ///
    /// No netlink socket can be had.
    pub fn new(rate: Rate) -> io::Result<RouteMetric> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(RouteMetric { rate, socket: Mutex::new(socket) })
    }

    /// The metric of the route to `peer`: 0 if it has none.
    ///
    /// # Errors
    ///
    /// There is no route, or the kernel could not be asked.
    pub fn metric(&self, peer: IpAddr) -> io::Result<u32> {
        let mut question = RouteMessage::default();
        let (family, bits, destination) = match peer {
            IpAddr::V4(peer) => (AddressFamily::Inet, 32, RouteAddress::Inet(peer)),
            IpAddr::V6(peer) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(peer)),
        };
        question.header.address_family = family;
        question.header.destination_prefix_length = bits;
        // The route itself, as it stands in the table, not what follows from it.
        question.header.flags = RouteFlags::FibMatch;
        question.attributes.push(RouteAttribute::Destination(destination));
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(GetRoute(question)));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let socket = self.socket.lock().expect("nobody panics while holding it");
        socket.send(&bytes, 0)?;
        let mut answer = Vec::with_capacity(ANSWER);
        socket.recv(&mut answer, 0)?;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("rtnetlink: {error}"));
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(invalid)?;
        match answer.payload {
            NetlinkPayload::InnerMessage(NewRoute(route)) => {
                let metric = |attribute: &RouteAttribute| match attribute {
                    RouteAttribute::Priority(metric) => Some(*metric),
                    _ => None,
                };
                Ok(route.attributes.iter().find_map(metric).unwrap_or(0))
            }
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "rtnetlink: another answer than was asked for")),
        }
    }
}

impl PathSource for RouteMetric {
    fn path(&self, peer: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        // A metric beyond any mesh's diameter is not a number of hops.
        let hops = self.metric(peer).ok().map(|metric| metric.max(1)).filter(|metric| *metric <= 64)?;
        Some(PathInfo { hops: hops as u8, rate: self.rate, received_power_dbm: None })
    }
}
