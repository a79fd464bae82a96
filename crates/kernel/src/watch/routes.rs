//! Hops from the kernel's routing table. Daemons of mesh routing protocols write the hops, or a
//! multiple of them, as the metric of the routes that they install.

use super::Hops;
use super::link::Link;
use super::mesh_paths::{Mac, Stations};
use crate::Destination;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// Largest number of hops that a metric can stand for. Greater metrics, such as 100 of a DHCP
/// client or 1024 of IPv6, exceed the diameter of any mesh.
const MOST: u32 = 64;

/// Hops by destination. `devices` are indices of devices; `None` stands for all. `hosts` are hops
/// to hosts of an 802.11s mesh.
pub fn read(
    link: &mut Link,
    devices: Option<&[u32]>,
    metric_per_hop: u32,
    hosts: &BTreeMap<IpAddr, u8>,
) -> io::Result<Hops> {
    let mut best: BTreeMap<Destination, (u32, u8)> = BTreeMap::new();
    for answer in link.list(RouteNetlinkMessage::GetRoute(RouteMessage::default()))? {
        let RouteNetlinkMessage::NewRoute(route) = answer else { continue };
        let Some((destination, metric, hops)) = hops(&route, devices, metric_per_hop, hosts) else { continue };
        // Of several routes to a destination the kernel uses the one with the lowest metric.
        if best.get(&destination).is_none_or(|(lowest, _)| metric < *lowest) {
            best.insert(destination, (metric, hops));
        }
    }
    Ok(best.into_iter().map(|(destination, (_, hops))| (destination, hops)).collect())
}

/// Destination, metric and hops of a route. `None` if the route gives no hops.
///
/// Routes to the device's own subnet give none. Nor does a default route of IPv6, which would
/// replace the usual path. A route without a metric leads to a neighbour. If it has a gateway, its
/// hops are those to the gateway in an 802.11s mesh.
fn hops(
    route: &RouteMessage,
    devices: Option<&[u32]>,
    metric_per_hop: u32,
    hosts: &BTreeMap<IpAddr, u8>,
) -> Option<(Destination, u32, u8)> {
    let header = &route.header;
    if header.kind != RouteType::Unicast
        || header.table != RouteHeader::RT_TABLE_MAIN
        || matches!(header.protocol, RouteProtocol::Kernel | RouteProtocol::Ra | RouteProtocol::IcmpRedirect)
    {
        return None;
    }
    let (mut to, mut gateway, mut metric, mut device) = (None, None, 0, None);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Priority(value) => metric = *value,
            RouteAttribute::Oif(index) => device = Some(*index),
            _ => {}
        }
    }
    if devices.is_some_and(|wanted| device.is_none_or(|index| !wanted.contains(&index))) {
        return None;
    }
    let to = match header.address_family {
        AddressFamily::Inet => to.unwrap_or(IpAddr::from([0; 4])),
        _ => to?,
    };
    let destination = Destination::new(to, header.destination_prefix_length.into())?;
    let hops = match (metric, gateway) {
        (0, None) => 1,
        (0, Some(gateway)) => *hosts.get(&gateway)?,
        _ => {
            let hops = ((metric + metric_per_hop / 2) / metric_per_hop).max(1);
            u8::try_from(hops).ok().filter(|_| hops <= MOST)?
        }
    };
    Some((destination, metric, hops))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some((*v4).into()),
        RouteAddress::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}

/// Hops to the hosts whose stations have a mesh path, from the kernel's neighbour table.
pub fn hosts(link: &mut Link, stations: &Stations) -> io::Result<BTreeMap<IpAddr, u8>> {
    let mut hosts = BTreeMap::new();
    for answer in link.list(RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()))? {
        let RouteNetlinkMessage::NewNeighbour(neighbour) = answer else { continue };
        if let Some((host, hops)) = host(&neighbour, stations) {
            hosts.insert(host, hops);
        }
    }
    Ok(hosts)
}

fn host(neighbour: &NeighbourMessage, stations: &Stations) -> Option<(IpAddr, u8)> {
    if matches!(neighbour.header.state, NeighbourState::Failed | NeighbourState::Incomplete) {
        return None;
    }
    let (mut host, mut station) = (None, None);
    for attribute in &neighbour.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => host = Some(IpAddr::from(*v4)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => host = Some(IpAddr::from(*v6)),
            NeighbourAttribute::LinkLayerAddress(bytes) => station = Mac::try_from(&bytes[..]).ok(),
            _ => {}
        }
    }
    Some((host?, *stations.get(&station?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn route(protocol: RouteProtocol, prefix: (&str, u8), metric: u32, gateway: Option<[u8; 4]>) -> RouteMessage {
        let mut route = RouteMessage::default();
        route.header.address_family = AddressFamily::Inet;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.kind = RouteType::Unicast;
        route.header.protocol = protocol;
        route.header.destination_prefix_length = prefix.1;
        route.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(prefix.0.parse().unwrap())));
        route.attributes.push(RouteAttribute::Oif(7));
        if metric > 0 {
            route.attributes.push(RouteAttribute::Priority(metric));
        }
        route.attributes.extend(gateway.map(|to| RouteAttribute::Gateway(RouteAddress::Inet(Ipv4Addr::from(to)))));
        route
    }

    #[test]
    fn a_metric_is_a_number_of_hops_or_none() {
        let far = Some([10, 0, 0, 9]);
        let told = |protocol, metric, gateway, per_hop| {
            let route = route(protocol, ("10.1.0.0", 16), metric, gateway);
            hops(&route, Some(&[7]), per_hop, &BTreeMap::from([([10, 0, 0, 8].into(), 5)])).map(|told| told.2)
        };
        // olsrd with FIBMetric "correct" writes hops. babeld adds 96 for a wired hop and 256 for a
        // lossless wireless hop.
        let daemon = RouteProtocol::Boot;
        assert_eq!(told(daemon, 4, far, 1), Some(4));
        assert_eq!(told(RouteProtocol::Babel, 3 * 96, far, 96), Some(3));
        assert_eq!(told(RouteProtocol::Babel, 3 * 256 + 100, far, 256), Some(3), "the nearest");
        assert_eq!(told(RouteProtocol::Babel, 3 * 256 + 200, far, 256), Some(4));
        assert_eq!(told(RouteProtocol::Babel, 20, far, 256), Some(1), "never none");
        assert_eq!(told(daemon, 0, None, 1), Some(1), "a neighbour");
        assert_eq!(told(daemon, 0, far, 1), None, "nobody knows");
        assert_eq!(told(daemon, 0, Some([10, 0, 0, 8]), 1), Some(5), "as far as its gateway");
        assert_eq!(told(RouteProtocol::Dhcp, 100, far, 1), None);
        assert_eq!(told(daemon, u32::MAX - 1, far, 1), None);
        assert_eq!(told(RouteProtocol::Kernel, 0, None, 1), None, "its own subnet");
    }

    #[test]
    fn other_devices_and_tables_do_not_count() {
        let told = |route: &RouteMessage, devices: Option<&[u32]>| hops(route, devices, 1, &BTreeMap::new()).is_some();
        let mut route = route(RouteProtocol::Boot, ("10.1.0.0", 16), 3, None);
        assert!(told(&route, None) && told(&route, Some(&[6, 7])));
        assert!(!told(&route, Some(&[6])) && !told(&route, Some(&[])));
        route.header.table = 100;
        assert!(!told(&route, None));
    }

    #[test]
    fn a_host_is_as_far_as_its_station() {
        let stations = Stations::from([([2, 0, 0, 0, 0, 1], 3)]);
        let mut neighbour = NeighbourMessage::default();
        neighbour.header.state = NeighbourState::Stale;
        let address: Ipv4Addr = "10.0.0.5".parse().unwrap();
        neighbour.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(address)));
        assert_eq!(host(&neighbour, &stations), None, "no station");
        neighbour.attributes.push(NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 1]));
        assert_eq!(host(&neighbour, &stations), Some((address.into(), 3)));
        neighbour.header.state = NeighbourState::Failed;
        assert_eq!(host(&neighbour, &stations), None);
    }
}
