//! A UDP port that carries any number of connections, opened by this end or by peers.

use super::options::Options;
use crate::Clock;
use crate::tpa::errno::errno_of;
use crate::tpa::runtime::Machine;
use crate::tpa::runtime::handle::Handle;
use crate::tpa::runtime::mailbox::Command;
use crate::tpa::runtime::socket::{Families, Socket, any_address};
use meshpace_session::counters::{Counters, PortCounters};
use meshpace_session::endpoint::Endpoint;
use meshpace_session::failure::{Failure, Reason};
use meshpace_session::settings::Settings;
use nix::libc;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A bound UDP port. A clone is another handle of the same port. The port stays open as long as one
/// of its handles, streams or listeners exists.
///
/// Ports, listeners and streams belong to the process that created them, because only that process
/// has the thread that runs them. In a child after `fork`, each of their methods that returns a
/// result fails with EBADF. The other methods do nothing and return the values of a connection
/// without traffic. Dropping one in the child neither waits nor sends. The child may create its
/// own, even on the same UDP port once the parent has closed it.
#[derive(Clone, Debug)]
pub struct TpaPort(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    local: SocketAddr,
    families: Families,
    options: Options,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    runtime: Handle,
}

impl TpaPort {
    /// Binds an address and UDP port with default options. Port 0 selects any free port.
    ///
    /// # Errors
    ///
    /// The address is in use or does not belong to this host, or the system cannot provide a
    /// socket.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TpaPort> {
        TpaPort::with_options(address, Options::default())
    }

    /// Like [`TpaPort::bind`], but with the given options. The process's runtime serves the port.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::bind`], and those of [`Options::check`].
    pub fn with_options(address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        TpaPort::on(&Handle::global()?, address, options)
    }

    /// Like [`TpaPort::with_options`], but served by the given runtime.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::with_options`]; the runtime has ended, or it belongs to the parent
    /// process.
    pub fn on(runtime: &Handle, address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        runtime.check_process()?;
        options.check()?;
        let local = first(address)?;
        // The socket belongs to the network namespace of the calling thread, not to that of the
        // runtime's thread.
        let socket =
            Socket::bind(local).map_err(|error| Failure::of(&error, format!("UDP port {local}: {error}")).error())?;
        let (id, local, families) = (runtime.next_id(), socket.local(), socket.families());
        runtime.watch(&socket, id)?;
        let (service, counters) = (options.service(), Arc::new(Counters::default()));
        let settings = Arc::clone(&service.settings);
        let endpoint = Endpoint::new(Clock.now(), local, Arc::clone(&settings), Arc::clone(&counters), &mut Machine)?;
        runtime.send(Command::Bind { id, socket, endpoint: Box::new(endpoint), service })?;
        Ok(TpaPort(Arc::new(Inner { id, local, families, options, settings, counters, runtime: runtime.clone() })))
    }

    /// Binds a port for connections to any of these addresses. The port has both address families
    /// if some addresses are IPv6 addresses and this host has IPv6. Without addresses it also has
    /// both, for peers whose addresses become known later.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::with_options`].
    pub fn reaching(peers: &[SocketAddr], options: Options) -> io::Result<TpaPort> {
        let v4 = (Ipv4Addr::UNSPECIFIED, 0);
        if !peers.is_empty() && peers.iter().all(SocketAddr::is_ipv4) {
            return TpaPort::with_options(v4, options);
        }
        match TpaPort::with_options((Ipv6Addr::UNSPECIFIED, 0), options.clone()) {
            Err(error) if errno_of(&error) == libc::EAFNOSUPPORT => TpaPort::with_options(v4, options),
            bound => bound,
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.0.id
    }

    pub(super) fn options(&self) -> &Options {
        &self.0.options
    }

    /// Settings of the port's sessions.
    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Checks that the calling process created the port and is not a child after `fork`.
    ///
    /// # Errors
    ///
    /// EBADF in the child.
    pub fn check_process(&self) -> io::Result<()> {
        self.0.runtime.check_process()
    }

    /// The local address that the port is bound to.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::check_process`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.0.local)
    }

    /// Address families that the port serves. A port bound to `[::]` usually serves IPv4 as well.
    pub fn families(&self) -> Families {
        self.0.families
    }

    /// Counters of the port, such as datagrams that were received but not used.
    pub fn counters(&self) -> PortCounters {
        self.0.counters.read()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.runtime.send(Command::Release { port: self.id });
    }
}

/// Returns the first of the given addresses.
fn first(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let none = || Failure::new(Reason::System(libc::EAFNOSUPPORT), "no address").error();
    address.to_socket_addrs()?.next().ok_or_else(none)
}

/// Address of any free port, in the address family of `peer`.
pub(crate) fn any_port(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(any_address(peer), 0)
}
