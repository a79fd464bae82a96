//! A UDP port with any number of connections on it, opened from either end.

use super::options::Options;
use crate::Clock;
use crate::tpa::runtime::Machine;
use crate::tpa::runtime::handle::Handle;
use crate::tpa::runtime::mailbox::Command;
use crate::tpa::runtime::socket::{Families, Socket, any_address};
use crate::tpa::session::counters::{Counters, PortCounters};
use crate::tpa::session::endpoint::Endpoint;
use crate::tpa::session::failure::{Failure, errno_of};
use crate::tpa::session::settings::Settings;
use nix::libc;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A bound UDP port. Cloning gives another handle of the same port; it stays open as long as a handle, a stream or a listener
/// of it does.
///
/// Ports, listeners and streams belong to the process that made them, which alone has the thread that runs them. In a child after `fork`
/// each of their calls that returns a result fails with EBADF; the others do nothing and return what a connection without traffic has.
/// Dropping one there neither waits nor sends. The child may make its own, also of the same UDP port once the parent has closed it.
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
    /// Those of [`TpaPort::with_options`]; the runtime has ended, or is one of the parent process.
    pub fn on(runtime: &Handle, address: impl ToSocketAddrs, options: Options) -> io::Result<TpaPort> {
        runtime.check_process()?;
        options.check()?;
        let local = first(address)?;
        // The socket belongs to the network namespace of whoever asks, not to the runtime's.
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

    /// A port for connections to any of these addresses: of both families if some are of IPv6, as far as this host has
    /// IPv6 at all. Without addresses it is one of both, for peers whose addresses are found later.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::with_options`].
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

    /// Settings of its sessions.
    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Checks that this is the process that made it, and not its child after `fork`.
    ///
    /// # Errors
    ///
    /// EBADF in the child.
    pub fn check_process(&self) -> io::Result<()> {
        self.0.runtime.check_process()
    }

    /// The address it is bound to.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::check_process`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.0.local)
    }

    /// The protocols that it serves: one of `[::]` serves IPv4, too.
    pub fn families(&self) -> Families {
        self.0.families
    }

    /// Its counters, such as datagrams received and not used.
    pub fn counters(&self) -> PortCounters {
        self.0.counters.read()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.runtime.send(Command::Release { port: self.id });
    }
}

/// The first address of those given.
fn first(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let none = || Failure::new(libc::EAFNOSUPPORT, "no address").error();
    address.to_socket_addrs()?.next().ok_or_else(none)
}

/// A port for connections to `peer`: any that is free, of the right family.
pub(crate) fn any_port(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(any_address(peer), 0)
}
