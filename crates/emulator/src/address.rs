//! Addresses of nodes. Node K has address number K + 1 of 10.99.0.0/16, a MAC address that contains
//! its number, and the name `nK`.

use meshpace_core::NodeId;
use std::net::Ipv4Addr;

/// Length of the network's prefix in bits.
pub const PREFIX_BITS: u8 = 16;
/// Network address, which no node has.
const NETWORK: u32 = u32::from_be_bytes([10, 99, 0, 0]);
/// First bytes of a node's MAC address: locally administered, unicast, "mp", 0. The number of the
/// node follows.
const MAC_PREFIX: [u8; 4] = [0x02, b'm', b'p', 0];
/// Largest number of nodes. One address remains for broadcasts.
pub const MAX_NODES: usize = (1 << 16) - 2;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// The network in the notation of `ip`.
pub fn network() -> String {
    format!("{}/{PREFIX_BITS}", Ipv4Addr::from(NETWORK))
}

/// IPv4 address of a node.
pub fn ipv4(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from(NETWORK + u32::from(node.0) + 1)
}

/// The node that has `address`, among `nodes` nodes.
pub fn node_of(address: Ipv4Addr, nodes: usize) -> Option<NodeId> {
    let number = u32::from(address).checked_sub(NETWORK + 1)?;
    ((number as usize) < nodes).then_some(NodeId(number as u16))
}

/// MAC address of a node's device.
pub fn mac(node: NodeId) -> Mac {
    let [a, b, c, d] = MAC_PREFIX;
    let [high, low] = node.0.to_be_bytes();
    [a, b, c, d, high, low]
}

/// The node that has the MAC address `address`, among `nodes` nodes; [`NodeId::BROADCAST`] for
/// broadcast and multicast addresses.
pub fn node_of_mac(address: Mac, nodes: usize) -> Option<NodeId> {
    if address[0] & 1 == 1 {
        return Some(NodeId::BROADCAST);
    }
    let node = NodeId(u16::from_be_bytes([address[4], address[5]]));
    (address[..4] == MAC_PREFIX && node.index() < nodes).then_some(node)
}

/// Text form of a MAC address.
pub fn mac_text(address: Mac) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// Hosts file for a namespace, in which the names of the nodes resolve.
pub fn hosts(nodes: usize) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n".to_owned();
    for node in (0..nodes).map(|node| NodeId(node as u16)) {
        text.push_str(&format!("{} {node}\n", ipv4(node)));
    }
    text
}

/// Reads the name of a node, such as `n3`, in a mesh of `nodes` nodes. The error names the nodes
/// that exist.
pub fn parse_node(text: &str, nodes: usize) -> Result<NodeId, String> {
    let number = text.strip_prefix('n').and_then(|digits| digits.parse::<u16>().ok());
    match number {
        Some(number) if usize::from(number) < nodes => Ok(NodeId(number)),
        _ => Err(format!("`{text}` is not a node: the scenario has n0 to n{}", nodes.saturating_sub(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_nodes() {
        assert_eq!(ipv4(NodeId(0)).to_string(), "10.99.0.1");
        assert_eq!(ipv4(NodeId(255)).to_string(), "10.99.1.0");
        assert_eq!(node_of(Ipv4Addr::new(10, 99, 0, 8), 8), Some(NodeId(7)));
        assert_eq!(node_of(Ipv4Addr::new(10, 99, 0, 9), 8), None);
        assert_eq!(node_of(Ipv4Addr::new(10, 99, 0, 0), 8), None);
        assert_eq!(mac_text(mac(NodeId(258))), "02:6d:70:00:01:02");
        assert_eq!(node_of_mac(mac(NodeId(7)), 8), Some(NodeId(7)));
        assert_eq!(node_of_mac(mac(NodeId(8)), 8), None);
        assert_eq!(node_of_mac([0x33, 0x33, 0, 0, 0, 1], 8), Some(NodeId::BROADCAST));
        assert_eq!(node_of_mac([0xff; 6], 8), Some(NodeId::BROADCAST));
        assert_eq!(node_of_mac([0, 1, 2, 3, 4, 5], 8), None);
    }

    #[test]
    fn names_resolve_in_the_hosts_file() {
        assert!(hosts(3).ends_with("10.99.0.2 n1\n10.99.0.3 n2\n"));
        assert_eq!(parse_node("n2", 3), Ok(NodeId(2)));
        for wrong in ["n3", "2", "n", "n-1", "nx", ""] {
            assert!(parse_node(wrong, 3).unwrap_err().contains("n0 to n2"), "{wrong}");
        }
    }
}
