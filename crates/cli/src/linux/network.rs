//! Arguments that `send` and `recv` share: the name of the transport, our address, and the path.

use crate::output::complain;
use clap::{Args, ValueEnum};
use meshpace_command::quantities::rate;
use meshpace_core::Rate;
use meshpace_live::tcp::{Device, Limits, Raw, Stack};
use meshpace_live::tpa;
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_scenario::nearest;
use meshpace_transport::{Config, PathInfo, names, pacing};
use meshpace_tunnel::caution;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

/// Default port of both ends.
pub const PORT: u16 = 7700;
/// Size of the send buffer, bytes. It is large enough for any window here. At the end of a timed
/// run, little unacknowledged data is discarded.
const SEND_BUFFER: usize = 256 << 10;

/// Where a transport of ours stands in the network, and what it is told of it.
#[derive(Args, Debug)]
pub struct Placement {
    /// Choose how our own TCP reaches the network: `tun` (an address behind a TUN device of this
    /// process) or `raw` (the address of this machine, through raw sockets and a packet filter).
    /// Quiet trains can also use `udp`: UDP datagrams, encrypted like TPA.
    #[arg(long, value_enum, default_value_t = Interface::Tun)]
    interface: Interface,
    /// Set the address of our TCP. With `tun`: an address that nobody has; the machine takes the
    /// one before it [default: 10.78.0.2]. With `raw`: an address of this machine [default: the one
    /// that leads to the other end].
    #[arg(long)]
    address: Option<Ipv4Addr>,
    /// Set the MTU: longest packet in bytes.
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Hops to the other end, for adaptive pacing [default: from the time to live of received
    /// packets]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// Data rate of the channel, for adaptive pacing.
    #[arg(long, value_name = "RATE", default_value = "2 Mbit/s", value_parser = rate)]
    channel_rate: Rate,
    /// Data rate of the 802.11 channel on the path. Quiet trains need it, and cannot measure it
    /// here.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    path_rate: Option<Rate>,
    /// Payload of a full segment or datagram in bytes. Quiet trains over UDP carry 26 bytes less
    /// than this, because their header is longer than TPA's [default: the value of the transport,
    /// or what fits]
    #[arg(long)]
    segment: Option<u32>,
    /// Do not encrypt TPA, or quiet trains over UDP. They are then protected only by random tags.
    /// For experiments; both ends must set it.
    #[arg(long, conflicts_with = "secret")]
    plain: bool,
    /// File with a secret of 64 hexadecimal digits that both ends of TPA, or of quiet trains over
    /// UDP, have. Then nobody else can impersonate an end.
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
    /// Write the keys of encrypted TPA, or of quiet trains over UDP, to this file, for `meshpace
    /// decrypt`.
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
    /// Limit the window of a TCP to this number of segments [default: the value of the transport]
    #[arg(long)]
    max_window: Option<u32>,
}

/// The kinds of interface.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// An address behind a TUN device.
    Tun,
    /// Raw sockets.
    Raw,
    /// UDP datagrams, as for TPA.
    Udp,
}

/// Transport that `--transport` names.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per run")]
pub enum Transport {
    /// TCP of the kernel, with the congestion control of this name or the kernel's default.
    Kernel(Option<String>),
    /// One of our transports.
    Ours(Config),
}

/// Parses `--transport`.
pub fn transport(name: &str) -> Result<Transport, String> {
    match name.split_once(':') {
        Some(("kernel", congestion)) if !congestion.is_empty() => Ok(Transport::Kernel(Some(congestion.to_owned()))),
        None if name == "kernel" => Ok(Transport::Kernel(None)),
        _ => names::lookup(name).map(Transport::Ours).ok_or_else(|| {
            let near = nearest(name, names::table().iter().map(|entry| entry.name));
            let near = near.map(|near| format!(", did you mean {near}?")).unwrap_or_default();
            format!(
                "there is no such transport{near}; `meshpace transports` lists our transports, and `kernel` or `kernel:reno` is the TCP of this machine"
            )
        }),
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Error for a transport that runs only in the simulator.
pub fn only_simulated() -> io::Error {
    refused("flush runs only in the simulator: use meshpace run".to_owned())
}

/// Error for a TCP with `--interface udp`.
pub fn only_trains() -> io::Error {
    refused("--interface udp is only for quiet trains; TPA always uses UDP".to_owned())
}

impl Placement {
    /// Applies the options of the command line to the parameters of the transport, and checks the
    /// result.
    pub fn adjust(&self, config: &mut Config) -> io::Result<()> {
        if let Config::Flush(_) = config {
            return Err(only_simulated());
        }
        match (&mut *config, self.segment) {
            (Config::Tcp(tcp), Some(segment)) => tcp.segment = segment,
            (Config::Udp(udp), Some(segment)) => udp.segment = segment,
            (Config::Tpa(tpa), Some(segment)) => tpa.segment = segment,
            (Config::Train(train), Some(segment)) => train.segment = segment,
            (Config::Flush(_), Some(_)) | (_, None) => {}
        }
        match (&mut *config, self.max_window) {
            (Config::Train(train), Some(segments)) => train.max_window = segments.min(65535) as u16,
            (Config::Tcp(tcp), Some(segments)) => tcp.max_window = segments,
            (_, Some(_)) => return Err(refused("--max-window is only for a TCP".to_owned())),
            (_, None) => {}
        }
        config.check().map_err(|error| refused(error.to_string()))?;
        match config {
            Config::Train(trains) if self.interface == Interface::Udp => {
                tpa::Options { trains: Some(trains.clone()), ..tpa::Options::of(self.datagrams()) }.check()
            }
            _ => Ok(()),
        }
    }

    /// Parameters of the datagrams that carry quiet trains over UDP, with the segment length of the
    /// command line.
    fn datagrams(&self) -> meshpace_transport::tpa::Config {
        let default = meshpace_transport::tpa::Config::default();
        meshpace_transport::tpa::Config { segment: self.segment.unwrap_or(default.segment), ..default }
    }

    /// Checks that the command line has everything that a sender with this transport needs.
    pub fn check_path(&self, config: &Config) -> io::Result<()> {
        if needs_path_rate(config) && self.path_rate.is_none() {
            let text = "quiet trains need the data rate of the 802.11 channel: give it with --path-rate, such as --path-rate '2 Mbit/s'";
            return Err(refused(text.to_owned()));
        }
        Ok(())
    }

    fn path(&self) -> PathInfo {
        PathInfo {
            hops: self.hops.unwrap_or(1),
            rate: self.path_rate.unwrap_or(self.channel_rate),
            received_power_dbm: None,
        }
    }

    /// Number of hops from the command line; 1 if it is not given.
    pub fn hops(&self) -> u8 {
        self.hops.unwrap_or(1)
    }

    /// Returns the kind of interface.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// Returns the options of TPA. These commands repeat experiments, so a block that is not full
    /// waits for `fill_timeout`, as in the paper.
    ///
    /// # Errors
    ///
    /// If the file of the secret cannot be read, or does not contain a secret.
    pub fn tpa_options(&self, transport: meshpace_transport::tpa::Config) -> io::Result<tpa::Options> {
        let security = match &self.secret {
            _ if self.plain => tpa::Security::Plain,
            Some(file) => {
                caution::of_secret(file);
                tpa::Security::Shared(tpa::keys::read(file)?)
            }
            None => tpa::Security::Opportunistic,
        };
        let path: Arc<dyn tpa::PathSource> = match self.hops {
            Some(_) => Arc::new(tpa::path::Fixed(self.path())),
            None => Arc::new(tpa::path::TimeToLive { rate: self.path().rate }),
        };
        let keylog = self.keylog.as_deref().map(KeyLog::append).transpose()?.map(Arc::new);
        let mut options = tpa::Options { path: Some(path), security, keylog, ..tpa::Options::of(transport) };
        options.transport.waits_to_fill = true;
        Ok(options)
    }

    /// Returns the options for quiet trains over UDP.
    ///
    /// # Errors
    ///
    /// The errors of [`Placement::tpa_options`].
    pub fn train_options(&self, trains: meshpace_transport::train::Config) -> io::Result<tpa::Options> {
        let options = self.tpa_options(self.datagrams())?;
        Ok(tpa::Options { trains: Some(trains), ..options })
    }

    /// Creates a stack behind a TUN device. If `peer` is given, the function checks that it is
    /// reachable from there.
    pub fn device(&self, peer: Option<Ipv4Addr>) -> io::Result<Stack<Device>> {
        let address = self.address.unwrap_or(Ipv4Addr::new(10, 78, 0, 2));
        let host = Ipv4Addr::from(u32::from(address).wrapping_sub(1));
        let name = format!("meshpace{}", std::process::id());
        let device = Device::create(&name, host, address, self.mtu)?;
        // The check follows the creation of the device, because the peer may be the host's address
        // at the device.
        if let Some(peer) = peer {
            reachable(peer, address)?;
        }
        self.stack(device)
    }

    /// Creates a stack over raw sockets.
    pub fn raw(&self, peer: Option<Ipv4Addr>) -> io::Result<Stack<Raw>> {
        let address = match (self.address, peer) {
            (Some(address), _) => address,
            (None, Some(peer)) => way_to(peer)?,
            (None, None) => {
                return Err(refused("--interface raw needs --address: an address of this machine".to_owned()));
            }
        };
        self.stack(Raw::open(address, self.mtu)?)
    }

    fn stack<I: meshpace_live::tcp::Interface>(&self, interface: I) -> io::Result<Stack<I>> {
        let mut stack = Stack::new(interface, Limits { send_buffer: SEND_BUFFER, ..Limits::default() })?;
        stack.set_path(self.path(), self.hops.is_none());
        Ok(stack)
    }
}

/// True if the transport needs the data rate of its path.
fn needs_path_rate(config: &Config) -> bool {
    match config {
        Config::Train(_) => true,
        Config::Tcp(tcp) => matches!(tcp.pacing, pacing::Config::Trains(_)),
        Config::Udp(_) | Config::Tpa(_) | Config::Flush(_) => false,
    }
}

/// Returns the address of this machine from which packets to `peer` are sent.
fn way_to(peer: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("{peer}: {error}"));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // `connect` of a UDP socket sends no packet.
    socket.connect((peer, 9)).map_err(explain)?;
    match socket.local_addr()? {
        std::net::SocketAddr::V4(address) => Ok(*address.ip()),
        std::net::SocketAddr::V6(_) => Err(refused(format!("{peer}: there is no IPv4 route to it"))),
    }
}

/// Checks that packets from an address behind a TUN device can reach `peer`. They always reach this
/// machine; they reach other machines only if this machine forwards.
fn reachable(peer: Ipv4Addr, address: Ipv4Addr) -> io::Result<()> {
    if peer.is_loopback() {
        let host = Ipv4Addr::from(u32::from(address).wrapping_sub(1));
        let text =
            format!("{peer} cannot answer {address}, because it knows this machine as {host}; use --interface raw");
        return Err(io::Error::new(io::ErrorKind::NetworkUnreachable, text));
    }
    let is_here = way_to(peer)? == peer;
    let forwards = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|text| text.trim() == "1");
    if is_here || forwards {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::NetworkUnreachable,
        format!(
            "{peer} is another machine, and this machine does not forward packets for {address}: run sysctl -w net.ipv4.ip_forward=1, and give {peer} a route to {address}; or use --interface raw"
        ),
    ))
}

/// Reports an error if not all keys of connections could be written to the key log.
pub fn complain_of_lost_keys(keylog: Option<&KeyLog>) {
    if let Some(Err(error)) = keylog.map(KeyLog::check) {
        complain(&format!("--keylog: not all keys were written: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_by_name() {
        assert!(matches!(transport("kernel"), Ok(Transport::Kernel(None))));
        assert!(matches!(transport("kernel:reno"), Ok(Transport::Kernel(Some(name))) if name == "reno"));
        assert!(matches!(transport("tcp-ap+sack"), Ok(Transport::Ours(Config::Tcp(_)))));
        for wrong in ["", "kernel:", "reno", "tcp-ap:x"] {
            assert!(transport(wrong).is_err(), "{wrong}");
        }
    }
}
