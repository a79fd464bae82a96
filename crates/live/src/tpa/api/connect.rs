//! Opening connections from a port.

use super::attempts::Attempts;
use super::options::Options;
use super::port::{TpaPort, any_port};
use super::stream::{TpaStream, nanoseconds};
use crate::tpa::runtime::mailbox::Command;
use crate::tpa::runtime::shared::Shared;
use crate::tpa::runtime::socket::{Families, Socket};
use meshpace_core::{Duration, Time};
use meshpace_session::exchange::Exchange;
use meshpace_session::failure::{Failure, Reason};
use meshpace_session::framing::headers_to;
use meshpace_session::handshake::{InnerTransport, Terms};
use meshpace_session::settings::Settings;
use meshpace_transport::tpa;
use nix::libc;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

impl TpaPort {
    /// Opens a connection from this port and waits until it is open. If there are several
    /// addresses, the peer is the first one that answers ([`Attempts`]).
    ///
    /// # Errors
    ///
    /// No program listens at the address, or the peer does not answer. The peer requires another
    /// protection or has other keys. No route leads to the peer.
    pub fn connect(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        self.connect_timeout(address, self.options().connect_timeout)
    }

    /// Like [`TpaPort::connect`], but waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub fn connect_timeout(&self, address: impl ToSocketAddrs, timeout: Duration) -> io::Result<TpaStream> {
        self.attempts_of(address, timeout, self.inner())?.wait(Time::NEVER)
    }

    /// Prepares attempts to open a connection to one of these addresses. The attempts begin when
    /// the caller waits for them.
    ///
    /// # Errors
    ///
    /// This port can reach none of the addresses.
    pub fn attempts(&self, address: impl ToSocketAddrs) -> io::Result<Attempts> {
        self.attempts_of(address, self.options().connect_timeout, self.inner())
    }

    fn attempts_of(
        &self,
        address: impl ToSocketAddrs,
        timeout: Duration,
        inner: InnerTransport,
    ) -> io::Result<Attempts> {
        Ok(Attempts::new(self, self.reachable(address)?, timeout, inner))
    }

    /// Like [`TpaPort::connect`], but the connection uses TPA even if the options select quiet
    /// trains.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub fn connect_tpa(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        self.attempts_of(address, self.options().connect_timeout, InnerTransport::Tpa)?.wait(Time::NEVER)
    }

    /// Like [`TpaPort::connect`], for small messages, each of which is sent at once.
    ///
    /// The connection uses BBR if the options select quiet trains and the peer knows BBR. Otherwise
    /// it uses TPA, where a message waits until the previous one is acknowledged. The connection
    /// has its own UDP port, so that nodes with a queue per flow (FQ-CoDel) do not let messages
    /// wait behind bulk data. On loopback, where there are no such nodes, it shares this port.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub(crate) fn connect_for_messages(&self, address: SocketAddr) -> io::Result<TpaStream> {
        if self.inner() == InnerTransport::Tpa {
            return self.connect_tpa(address);
        }
        let mut local = self.local_addr()?;
        local.set_port(0);
        let own = if address.ip().is_loopback() {
            self.clone()
        } else {
            TpaPort::on(self.runtime(), local, self.options().clone())?
        };
        let stream = own.begin(address, self.options().connect_timeout, InnerTransport::Bbr)?;
        stream.wait_until_open()?;
        if stream.unsent().is_some() {
            return Ok(stream);
        }
        // The peer is an older build, which takes the request for one for quiet trains.
        stream.abort();
        self.connect_tpa(address)
    }

    /// Inner transport that the port's options select.
    fn inner(&self) -> InnerTransport {
        self.settings().inner()
    }

    /// Begins to open a connection to the first address that this port can reach, and returns at
    /// once, like `connect` on a non-blocking socket. The stream is non-blocking. Until
    /// [`TpaStream::is_open`], reading and writing return [`io::ErrorKind::WouldBlock`]. If opening
    /// fails, they return the reason.
    ///
    /// # Errors
    ///
    /// The address cannot be connected to.
    pub fn connect_nonblocking(&self, address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        let peer = self.reachable(address)?[0];
        let stream = self.begin(peer, self.options().connect_timeout, self.inner())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Begins to open a connection to one address.
    pub(super) fn begin(&self, peer: SocketAddr, timeout: Duration, inner: InnerTransport) -> io::Result<TpaStream> {
        self.check_process()?;
        let broadcast = peer.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
        if peer.port() == 0 || peer.ip().is_unspecified() || peer.ip().is_multicast() || broadcast {
            return Err(
                Failure::new(Reason::System(libc::EINVAL), format!("{peer}: not an address to connect to")).error()
            );
        }
        let config = self.fit(peer)?;
        let (port, runtime) = (self.id(), self.runtime());
        let settings = Settings { connect_timeout: timeout, ..Settings::clone(self.settings()) };
        let settings = Arc::new(settings).with(inner);
        let peer_key = settings.security.only_peer();
        let account = settings.account(peer.ip(), peer_key);
        let exchange = Exchange::new(&settings, Terms::of(&config).block(), account);
        let local = self.local_addr()?;
        let shared = Arc::new(Shared::new(runtime.next_id(), (local, peer), peer_key, exchange, runtime.mailbox()));
        let stream = TpaStream::new(Arc::clone(&shared), self.clone());
        let config = Box::new(config);
        runtime.send(Command::Connect { port, shared, settings, config })?;
        Ok(stream)
    }

    /// Returns those of the given addresses that this port's address families can reach: at least
    /// one.
    fn reachable(&self, address: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
        let (local, families) = (self.local_addr()?, self.families());
        let none = || {
            let other = if families == Families::V4 { "no IPv4 address" } else { "no IPv6 address" };
            Failure::new(Reason::System(libc::EAFNOSUPPORT), format!("{other}, and {local} reaches no other")).error()
        };
        let peers: Vec<SocketAddr> = address.to_socket_addrs()?.filter(|peer| families.reach(*peer)).collect();
        if peers.is_empty() { Err(none()) } else { Ok(peers) }
    }

    /// Configuration of the transport for the path to `peer`. Its segments are made smaller if the
    /// MTU of the path requires that.
    fn fit(&self, peer: SocketAddr) -> io::Result<tpa::Config> {
        let options = self.options();
        let mut config = tpa::Config { close_with_peer: false, ..options.transport.clone() };
        let probe = Socket::mtu_between(self.local_addr()?, peer);
        let mtu = probe.map_err(|error| Failure::of(&error, format!("{peer}: {error}")).error())?;
        let headers = headers_to(peer, options.security.protection());
        let most = mtu.saturating_sub(headers);
        if config.segment > most {
            if !options.fit_mtu || most == 0 {
                let message = format!(
                    "segments of {} bytes need an MTU of {}, the way to {peer} has {mtu}",
                    config.segment,
                    config.segment + headers
                );
                return Err(Failure::new(Reason::TooLong, message).error());
            }
            config.segment = most;
        }
        Ok(config)
    }
}

impl TpaStream {
    /// Opens a connection to an address and UDP port, and waits until it is open. The connection
    /// has its own local port with default options. If there are several addresses, the peer is the
    /// first one that answers ([`Attempts`]).
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<TpaStream> {
        let peers: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        TpaPort::reaching(&peers, Options::default())?.connect(&peers[..])
    }

    /// Like [`TpaStream::connect`] to one address, but waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub fn connect_timeout(address: &SocketAddr, timeout: std::time::Duration) -> io::Result<TpaStream> {
        TpaPort::bind(any_port(*address))?.connect_timeout(address, nanoseconds(timeout))
    }
}

#[cfg(test)]
mod tests {
    use crate::testbed::Namespace;
    use crate::tpa::handshake::Opening;
    use crate::tpa::{Options, Security, TpaPort};
    use crate::tun::ip;
    use meshpace_testing::{Class, skipped};
    use meshpace_transport::{Config, names};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    /// BBR in place of quiet trains; TPA is taken, too.
    fn options() -> Options {
        let Some(Config::Train(config)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
        Options { trains: Some(config), bbr: true, takes_tpa: true, security: Security::Plain, ..Options::default() }
    }

    /// An address from which `to` looks like an older build to one client: it does not see that requests ask for BBR.
    fn older(to: SocketAddr) -> SocketAddr {
        let [front, back] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let at = front.local_addr().unwrap();
        back.connect(to).unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            let (mut length, client) = front.recv_from(&mut buffer).unwrap();
            front.connect(client).unwrap();
            let (answers, toward) = (back.try_clone().unwrap(), front.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while let Ok(length) = answers.recv(&mut buffer) {
                    let _ = toward.send(&buffer[..length]);
                }
            });
            loop {
                let changed = Opening::decode(&buffer[..length]).filter(|(request, _)| request.trains).map(
                    |(mut request, noise)| {
                        request.segment.congested = false;
                        request.encode(noise, length)
                    },
                );
                let _ = back.send(changed.as_deref().unwrap_or(&buffer[..length]));
                match front.recv(&mut buffer) {
                    Ok(next) => length = next,
                    Err(_) => return,
                }
            }
        });
        at
    }

    #[test]
    fn messages_go_by_tpa_where_a_listener_does_not_know_bbr() {
        for knows_bbr in [true, false] {
            let opener = TpaPort::with_options("127.0.0.1:0", options()).unwrap();
            let listener = TpaPort::with_options("127.0.0.1:0", options()).unwrap().listen(4).unwrap();
            listener.set_timeout(Some(Duration::from_secs(60))).unwrap();
            let to = listener.local_addr().unwrap();
            let mut stream = opener.connect_for_messages(if knows_bbr { to } else { older(to) }).unwrap();
            // BBR alone tells how much it has not sent.
            assert_eq!(stream.unsent().is_some(), knows_bbr);
            stream.write_all(b"message").unwrap();
            // A connection of quiet trains that was opened before is reset.
            let mut said = None;
            while said.is_none() {
                let (mut accepted, _) = listener.accept().unwrap();
                let mut got = [0; 7];
                said = accepted.read_exact(&mut got).ok().map(|()| (accepted, got));
            }
            let (accepted, got) = said.unwrap();
            assert_eq!((&got, accepted.unsent().is_some()), (b"message", knows_bbr));
            [accepted, stream].iter().for_each(crate::tpa::TpaStream::abort);
        }
    }

    #[test]
    fn messages_have_a_port_of_their_own_unless_the_peer_is_on_loopback() {
        let add = |space: &Namespace| space.run(|| ip(&["address", "add", "10.9.0.1/32", "dev", "lo"]));
        let space = match Namespace::new().and_then(|space| add(&space).map(|()| space)) {
            Ok(space) => space,
            Err(error) => return skipped(Class::Rights, format!("no network namespaces here ({error}); needs root")),
        };
        space.run(|| {
            for (host, have_their_own) in [("10.9.0.1", true), ("127.0.0.1", false)] {
                let [opener, other] = [(); 2].map(|()| TpaPort::with_options((host, 0), options()).unwrap());
                let listener = other.listen(4).unwrap();
                let stream = opener.connect_for_messages(listener.local_addr().unwrap()).unwrap();
                assert_eq!(stream.local_addr().unwrap() != opener.local_addr().unwrap(), have_their_own, "{host}");
                stream.abort();
            }
        });
    }
}
