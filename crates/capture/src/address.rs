//! Addresses and ports of nodes and flows in a capture.
//!
//! The simulator has only numbers. Node n gets 10.0.x.y and 02:00:00:00:x:y with x.y = n + 1. The
//! second bit of the first octet means "locally administered" (IEEE Std 802-2014, 8.2.2). Flow f
//! gets the ports 49152 + f and 57344 + f. They are from the range in which no service is
//! registered (RFC 6335, section 6), so that no reader takes the payload for a known protocol.

use meshpace_core::{FlowId, NodeId};

/// Identifier of the independent BSS that all nodes form (IEEE Std 802.11-1999, 7.1.3.3.3).
pub const BSSID: [u8; 6] = [0x02, 0x00, 0x01, 0x00, 0x00, 0x00];

/// Number of flows with ports of their own; later flows share ports with earlier ones.
const PORTS: u16 = 8192;

fn number(node: NodeId) -> [u8; 2] {
    node.0.wrapping_add(1).to_be_bytes()
}

/// MAC address of `node`.
pub fn mac(node: NodeId) -> [u8; 6] {
    let [x, y] = number(node);
    if node.is_broadcast() { [0xff; 6] } else { [0x02, 0x00, 0x00, 0x00, x, y] }
}

/// IPv4 address of `node`; the limited broadcast address for broadcast.
pub fn ip(node: NodeId) -> [u8; 4] {
    let [x, y] = number(node);
    if node.is_broadcast() { [255; 4] } else { [10, 0, x, y] }
}

/// Ports of `flow`: at the node that sends the data, and at the node that receives it.
pub fn ports(flow: FlowId) -> (u16, u16) {
    let number = flow.0 % PORTS;
    (49_152 + number, 57_344 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_count_from_one() {
        assert_eq!(ip(NodeId(0)), [10, 0, 0, 1]);
        assert_eq!(ip(NodeId(255)), [10, 0, 1, 0]);
        assert_eq!(mac(NodeId(299)), [2, 0, 0, 0, 1, 44]);
        assert_eq!((ip(NodeId::BROADCAST), mac(NodeId::BROADCAST)), ([255; 4], [255; 6]));
    }

    #[test]
    fn ports_stay_in_the_dynamic_range() {
        assert_eq!(ports(FlowId(0)), (49_152, 57_344));
        assert_eq!(ports(FlowId(8191)), (57_343, 65_535));
        assert_eq!(ports(FlowId(u16::MAX)), (57_343, 65_535));
    }
}
