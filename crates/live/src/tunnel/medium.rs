//! Whether the way to the far end begins on 802.11, by the kernel's route and what stands in /sys.

use crate::netlink::{link, route, socket};
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// Devices that may lie one upon the other: a bridge on a VLAN on a mesh on 802.11 has four.
const DEPTH: usize = 8;

/// The 802.11 device by which packets to `peer` leave, also if what the route names lies above it, as `bat0` does, a bridge or a VLAN. None if
/// there is no such device, or nobody can tell.
pub fn wireless(peer: IpAddr) -> Option<String> {
    let socket = socket().ok()?;
    let route = route(&socket, peer).ok()?;
    route.devices().into_iter().find_map(|index| {
        let name = link(&socket, index).ok()?.name()?;
        below(Path::new("/sys/class/net"), &name, DEPTH)
    })
}

/// Whether a device of this network namespace is 802.11, or lies upon one that is.
pub fn is_wireless(device: &str) -> bool {
    below(Path::new("/sys/class/net"), device, DEPTH).is_some()
}

/// The first 802.11 device among `device` and those below it, in the tree of devices at `root`.
fn below(root: &Path, device: &str, depth: usize) -> Option<String> {
    let at = root.join(device);
    if at.join("phy80211").exists() || at.join("wireless").exists() {
        return Some(device.to_owned());
    }
    let deeper = depth.checked_sub(1)?;
    let mut lower: Vec<String> = fs::read_dir(at)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("lower_").map(str::to_owned))
        .collect();
    lower.sort_unstable();
    lower.iter().find_map(|device| below(root, device, deeper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// A tree as Linux has it under /sys/class/net.
    fn tree(entries: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        entries.iter().for_each(|entry| fs::create_dir_all(root.path().join(entry)).unwrap());
        root
    }

    #[test]
    fn a_device_is_wireless_if_it_or_one_below_it_is() {
        let root = tree(&[
            "wlan0/phy80211",
            "old0/wireless",
            "eth0/queues",
            "bat0/lower_wlan0",
            "bat0/lower_eth0",
            "br0/lower_eth0",
            "br0/lower_bat0.7",
            "bat0.7/lower_bat0",
            "br1/lower_eth0",
            // What lies upon a device says nothing of it.
            "eth0/upper_bat0",
        ]);
        let found = |device: &str| below(root.path(), device, DEPTH);
        for (device, is) in
            [("wlan0", "wlan0"), ("old0", "old0"), ("bat0", "wlan0"), ("bat0.7", "wlan0"), ("br0", "wlan0")]
        {
            assert_eq!(found(device).as_deref(), Some(is), "{device}");
        }
        assert_eq!([found("eth0"), found("br1"), found("lo")], [None, None, None]);
    }

    #[test]
    fn devices_that_lie_upon_each_other_in_a_circle_end() {
        let root = tree(&["a/lower_b", "b/lower_a"]);
        assert_eq!(below(root.path(), "a", DEPTH), None);
    }

    #[test]
    fn the_way_to_this_machine_is_no_radio() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(wireless(loopback), None);
        // And that is not because nobody could tell.
        let socket = socket().unwrap();
        let devices = route(&socket, loopback).unwrap().devices();
        assert_eq!(
            devices.into_iter().map(|index| link(&socket, index).unwrap().name().unwrap()).collect::<Vec<_>>(),
            ["lo"]
        );
    }
}
