//! A UDP port with any number of connections on it, opened from either end.

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
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;

/// A bound UDP port. Cloning gives another handle of the same port; it stays open as long as a handle, a stream or a listener
/// of it does.
#[derive(Clone, Debug)]
pub struct TpaPort(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    local: SocketAddrV4,
    options: Arc<Options>,
    counters: Arc<Counters>,
    runtime: Handle,
}

impl TpaPort {
    /// Binds an IPv4 address and UDP port (0: any that is free) with default options.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TpaPort> {
        TpaPort::with_options(address, Options::default())
    }

    /// The same with options, served by the process's runtime.
    pub fn with_options(address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        TpaPort::on(&Handle::global()?, address, options)
    }

    /// The same, served by a runtime of its own.
    pub fn on(runtime: &Handle, address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        options.check()?;
        let local = first_v4(address)?;
        // The socket belongs to the network namespace of whoever asks, not to the runtime's.
        let socket =
            Socket::bind(local).map_err(|error| Failure::of(&error, format!("UDP port {local}: {error}")).error())?;
        let (id, local) = (runtime.next_id(), socket.local());
        let (options, counters) = (Arc::new(options), Arc::new(Counters::default()));
        runtime.send(Command::Bind { id, socket, options: Arc::clone(&options), counters: Arc::clone(&counters) });
        Ok(TpaPort(Arc::new(Inner { id, local, options, counters, runtime: runtime.clone() })))
    }

    /// Opens a connection from this port and waits until it is open.
    pub fn connect(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        self.connect_timeout(address, self.0.options.connect_timeout)
    }

    /// The same, waiting for at most `timeout`.
    pub fn connect_timeout(&self, address: impl ToSocketAddrs, timeout: Duration) -> io::Result<TpaStream> {
        let stream = self.begin(address, timeout)?;
        stream.wait_until_open()?;
        Ok(stream)
    }

    /// Begins to open a connection and returns at once: as a non-blocking `connect` does. The stream is non-blocking; until
    /// [`TpaStream::is_open`] reading and writing return [`io::ErrorKind::WouldBlock`], and should it never be open, the reason.
    pub fn connect_nonblocking(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        let stream = self.begin(address, self.0.options.connect_timeout)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn begin(&self, address: impl ToSocketAddrs, timeout: Duration) -> io::Result<TpaStream> {
        let peer = first_v4(address)?;
        if peer.port() == 0 || peer.ip().is_unspecified() || peer.ip().is_multicast() || peer.ip().is_broadcast() {
            return Err(Failure::new(libc::EINVAL, format!("{peer}: not an address to connect to")).error());
        }
        let inner = &self.0;
        let config = self.fit(peer)?;
        let id = inner.runtime.next_id();
        let terms = Terms::of(&config);
        let block = usize::from(terms.segment) * usize::from(terms.block_segments);
        let options = Arc::new(Options { connect_timeout: timeout, ..(*inner.options).clone() });
        let shared = Arc::new(Shared::new(id, inner.local, peer, block, options, inner.runtime.mailbox()));
        let stream = TpaStream::new(Arc::clone(&shared), self.clone());
        inner.runtime.send(Command::Connect { port: inner.id, shared, config: Box::new(config) });
        Ok(stream)
    }

    /// The transport for the way to `peer`: with smaller segments if its MTU asks for them.
    fn fit(&self, peer: SocketAddrV4) -> io::Result<tpa::Config> {
        let inner = &self.0;
        let mut config = tpa::Config { close_with_peer: false, ..inner.options.transport.clone() };
        let probe = Socket::mtu_between(*inner.local.ip(), peer);
        let mtu = probe.map_err(|error| Failure::of(&error, format!("{peer}: {error}")).error())?;
        let most = mtu.saturating_sub(tpa::HEADER_BYTES);
        if config.segment > most {
            if !inner.options.fit_mtu || most == 0 {
                let message = format!(
                    "segments of {} bytes need an MTU of {}, the way to {peer} has {mtu}",
                    config.segment,
                    config.segment + tpa::HEADER_BYTES
                );
                return Err(Failure::new(libc::EMSGSIZE, message).error());
            }
            config.segment = most;
        }
        Ok(config)
    }

    /// Accepts connections on this port; when `backlog` wait to be accepted, further requests are not answered.
    pub fn listen(&self, backlog: usize) -> io::Result<TpaListener> {
        let backlog = Arc::new(Backlog::new(backlog));
        self.0.runtime.send(Command::Listen { port: self.0.id, backlog: Arc::clone(&backlog) });
        Ok(TpaListener::new(self.clone(), backlog))
    }

    pub(super) fn unlisten(&self) {
        self.0.runtime.send(Command::Unlisten { port: self.0.id });
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local.into())
    }

    /// What it has received and not used.
    pub fn counters(&self) -> PortCounters {
        self.0.counters.read()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.runtime.send(Command::Release { port: self.id });
    }
}

/// The first IPv4 address of those given.
fn first_v4(address: impl ToSocketAddrs) -> io::Result<SocketAddrV4> {
    let mut others = false;
    for address in address.to_socket_addrs()? {
        match address {
            SocketAddr::V4(address) => return Ok(address),
            SocketAddr::V6(_) => others = true,
        }
    }
    let message = if others { "only IPv4 addresses are served" } else { "no address" };
    Err(Failure::new(libc::EAFNOSUPPORT, message).error())
}
