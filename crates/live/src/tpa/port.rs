//! A UDP port with any number of connections on it, opened from either end.

use super::cover::overhead;
use super::handle::{Command, Handle};
use super::handshake::Terms;
use super::listener::{Backlog, Counters, PortCounters, TpaListener};
use super::options::Options;
use super::shared::{Failure, Shared};
use super::socket::Socket;
use super::stream::TpaStream;
use meshpace_core::Duration;
use meshpace_transport::tpa;
use nix::libc;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A bound UDP port. Cloning gives another handle of the same port; it stays open as long as a handle, a stream or a listener
/// of it does.
#[derive(Clone, Debug)]
pub struct TpaPort(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    local: SocketAddr,
    options: Arc<Options>,
    counters: Arc<Counters>,
    runtime: Handle,
}

impl TpaPort {
    /// Binds an address and UDP port (0: any that is free) with default options.
    ///
    /// # Errors
    ///
    /// The address is in use or not this host's, or the system gives no socket.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TpaPort> {
        TpaPort::with_options(address, Options::default())
    }

    /// The same with options, served by the process's runtime.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::bind`], and those of [`Options::check`].
    pub fn with_options(address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        TpaPort::on(&Handle::global()?, address, options)
    }

    /// The same, served by a runtime of its own.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::with_options`]; the runtime has ended.
    pub fn on(runtime: &Handle, address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        options.check()?;
        let local = first(address)?;
        // The socket belongs to the network namespace of whoever asks, not to the runtime's.
        let socket =
            Socket::bind(local).map_err(|error| Failure::of(&error, format!("UDP port {local}: {error}")).error())?;
        let (id, local) = (runtime.next_id(), socket.local());
        runtime.watch(&socket, id)?;
        let (options, counters) = (Arc::new(options), Arc::new(Counters::default()));
        runtime.send(Command::Bind { id, socket, options: Arc::clone(&options), counters: Arc::clone(&counters) })?;
        Ok(TpaPort(Arc::new(Inner { id, local, options, counters, runtime: runtime.clone() })))
    }

    /// Opens a connection from this port and waits until it is open.
    ///
    /// # Errors
    ///
    /// Nobody listens there or nobody answers, the peer wants other protection or has other keys, or there is no way.
    pub fn connect(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        self.connect_timeout(address, self.0.options.connect_timeout)
    }

    /// The same, waiting for at most `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::connect`].
    pub fn connect_timeout(&self, address: impl ToSocketAddrs, timeout: Duration) -> io::Result<TpaStream> {
        let stream = self.begin(address, timeout, true)?;
        stream.wait_until_open()?;
        Ok(stream)
    }

    /// [`TpaPort::connect`], but of TPA also where the options have trains.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::connect`].
    pub fn connect_tpa(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        let stream = self.begin(address, self.0.options.connect_timeout, false)?;
        stream.wait_until_open()?;
        Ok(stream)
    }

    /// Begins to open a connection and returns at once: as a non-blocking `connect` does. The stream is non-blocking; until
    /// [`TpaStream::is_open`] reading and writing return [`io::ErrorKind::WouldBlock`], and should it never be open, the reason.
    ///
    /// # Errors
    ///
    /// The address cannot be connected to.
    pub fn connect_nonblocking(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        let stream = self.begin(address, self.0.options.connect_timeout, true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn begin(&self, address: impl ToSocketAddrs, timeout: Duration, trains: bool) -> io::Result<TpaStream> {
        let peer = self.choose(address)?;
        let broadcast = peer.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
        if peer.port() == 0 || peer.ip().is_unspecified() || peer.ip().is_multicast() || broadcast {
            return Err(Failure::new(libc::EINVAL, format!("{peer}: not an address to connect to")).error());
        }
        let inner = &self.0;
        let config = self.fit(peer)?;
        let id = inner.runtime.next_id();
        let terms = Terms::of(&config);
        let mut options = Options { connect_timeout: timeout, ..(*inner.options).clone() };
        options.trains = options.trains.filter(|_| trains);
        let options = Arc::new(options);
        let shared = Arc::new(Shared::new(id, inner.local, peer, terms.block(), options, inner.runtime.mailbox()));
        let stream = TpaStream::new(Arc::clone(&shared), self.clone());
        inner.runtime.send(Command::Connect { port: inner.id, shared, config: Box::new(config) })?;
        Ok(stream)
    }

    /// The first address of those given that this port's family can reach.
    fn choose(&self, address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
        let local = self.0.local;
        let none = || {
            let family = if local.is_ipv4() { "IPv4" } else { "IPv6" };
            Failure::new(libc::EAFNOSUPPORT, format!("no {family} address, and {local} reaches no other")).error()
        };
        address.to_socket_addrs()?.find(|peer| peer.is_ipv4() == local.is_ipv4()).ok_or_else(none)
    }

    /// The transport for the way to `peer`: with smaller segments if its MTU asks for them.
    fn fit(&self, peer: SocketAddr) -> io::Result<tpa::Config> {
        let inner = &self.0;
        let mut config = tpa::Config { close_with_peer: false, ..inner.options.transport.clone() };
        let probe = Socket::mtu_between(inner.local.ip(), peer);
        let mtu = probe.map_err(|error| Failure::of(&error, format!("{peer}: {error}")).error())?;
        let headers = headers_to(peer, &inner.options);
        let most = mtu.saturating_sub(headers);
        if config.segment > most {
            if !inner.options.fit_mtu || most == 0 {
                let message = format!(
                    "segments of {} bytes need an MTU of {}, the way to {peer} has {mtu}",
                    config.segment,
                    config.segment + headers
                );
                return Err(Failure::new(libc::EMSGSIZE, message).error());
            }
            config.segment = most;
        }
        Ok(config)
    }

    /// Accepts connections on this port; when `backlog` wait to be accepted, further requests are not answered.
    ///
    /// # Errors
    ///
    /// The runtime has ended.
    pub fn listen(&self, backlog: usize) -> io::Result<TpaListener> {
        let backlog = Arc::new(Backlog::new(backlog));
        self.0.runtime.send(Command::Listen { port: self.0.id, backlog: Arc::clone(&backlog) })?;
        Ok(TpaListener::new(self.clone(), backlog))
    }

    pub(super) fn unlisten(&self) {
        let _ = self.0.runtime.send(Command::Unlisten { port: self.0.id });
    }

    /// # Errors
    ///
    /// This is a child of the process that made it.
    pub(super) fn check(&self) -> io::Result<()> {
        self.0.runtime.mailbox().check_process()
    }

    /// The address it is bound to.
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local)
    }

    /// What it has received and not used.
    pub fn counters(&self) -> PortCounters {
        self.0.counters.read()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.runtime.send(Command::Release { port: self.id });
    }
}

/// Bytes of a datagram to `peer` besides the payload, with IP's header and UDP's.
pub(super) fn headers_to(peer: SocketAddr, options: &Options) -> u32 {
    let ip = if peer.is_ipv4() { 20 } else { 40 };
    ip + 8 + overhead(options.security.protection())
}

/// The first address of those given.
fn first(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let none = || Failure::new(libc::EAFNOSUPPORT, "no address").error();
    address.to_socket_addrs()?.next().ok_or_else(none)
}

/// A port for connections to `peer`: any that is free, of the right family.
pub(crate) fn any_port(peer: SocketAddr) -> SocketAddr {
    let all = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    SocketAddr::new(all, 0)
}
