//! A node: a network namespace without a name, and the device in it that stands for its radio.

use crate::address;
use crate::device::{DEVICE, Device, Hub};
use crate::medium::Mode;
use crate::sysctl::set;
use meshpace_core::NodeId;
use meshpace_live::testbed::Namespace;
use meshpace_live::tun::{Tun, ip};
use std::io;
use std::path::Path;

/// Settings of the nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Place where routing runs.
    pub mode: Mode,
    /// Longest IP packet, bytes.
    pub mtu: u16,
    /// Kernel parameters of every namespace: names and values.
    pub sysctls: Vec<(String, String)>,
    /// True if `/dev/net/tun` must not be used, even if it can be opened.
    pub without_tun: bool,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Network namespace of its programs.
    pub namespace: Namespace,
    /// Device that stands for its radio.
    pub device: Device,
}

impl Node {
    /// Creates node number `node`, with a TAP device, or with a veth device whose far end is in
    /// `hub`.
    pub fn new(node: NodeId, setup: &Setup, hub: Option<&Hub>) -> io::Result<Node> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{node}: {error}"));
        let namespace = Namespace::new().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "no permission to create a network namespace (CAP_SYS_ADMIN): run as root; see also `meshpace doctor`",
            ),
            _ => named(error),
        })?;
        let device = namespace.run(|| make_device(node, setup, hub)).map_err(named)?;
        Ok(Node { namespace, device })
    }
}

fn make_device(node: NodeId, setup: &Setup, hub: Option<&Hub>) -> io::Result<Device> {
    let routes_here = setup.mode == Mode::Kernel;
    // With IPv6, neighbour discovery would send frames over the air. Where routing daemons run,
    // they may need IPv6.
    if !routes_here && Path::new("/proc/sys/net/ipv6").exists() {
        set("net.ipv6.conf.all.disable_ipv6", "1")?;
    }
    set("net.ipv4.ip_forward", if routes_here { "1" } else { "0" })?;
    // A radio forwards packets through the interface by which they came.
    set("net.ipv4.conf.all.send_redirects", "0")?;
    set("net.ipv4.conf.default.send_redirects", "0")?;
    set("net.ipv4.conf.all.rp_filter", "0")?;
    set("net.ipv4.conf.default.rp_filter", "0")?;
    // A radio sends one frame at a time. eBPF congestion controls that space segments do not set
    // this themselves.
    set("net.ipv4.tcp_min_tso_segs", "1")?;
    // Users who may send pings on this machine may also send them in the node.
    set("net.ipv4.ping_group_range", "0 2147483647").or_else(|_| set("net.ipv4.ping_group_range", "0 0"))?;
    for (name, value) in &setup.sysctls {
        set(name, value)?;
    }
    let device = match hub {
        None => Device::Tap(Tun::create_tap(DEVICE)?),
        Some(hub) => hub.wire(node, setup.mtu)?,
    };
    let mac = address::mac_text(address::mac(node));
    ip(&["link", "set", DEVICE, "address", &mac, "mtu", &setup.mtu.to_string(), "up"])?;
    let bits = if routes_here { 32 } else { address::PREFIX_BITS };
    ip(&["address", "add", &format!("{}/{bits}", address::ipv4(node)), "dev", DEVICE])?;
    Ok(device)
}

/// Installs the shortest paths as routes, hop by hop, in the nodes of a mesh whose kernels route.
/// `next_hop` returns the neighbour towards a destination.
pub fn install_routes(nodes: &[Node], next_hop: impl Fn(NodeId, NodeId) -> Option<NodeId> + Sync) -> io::Result<()> {
    let all = || (0..nodes.len()).map(|node| NodeId(node as u16));
    for (from, node) in all().zip(nodes) {
        let mut batch = String::new();
        for to in all().filter(|&to| to != from) {
            if let Some(via) = next_hop(from, to) {
                let (to, via) = (address::ipv4(to), address::ipv4(via));
                batch.push_str(&format!("route add {to}/32 via {via} dev {DEVICE} onlink\n"));
            }
        }
        node.namespace.run(|| ip_batch(&batch))?;
    }
    Ok(())
}

fn ip_batch(lines: &str) -> io::Result<()> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().map(|mut input| input.write_all(lines.as_bytes())).transpose()?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip route: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
