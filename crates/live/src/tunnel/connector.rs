//! The end of a tunnel that takes TCP connections and sends them through.

use super::counters::{Counters, End};
use super::dialing::Dialing;
use super::entrance::Entrances;
use super::far::Far;
use super::forward::{Forward, UdpForward};
use super::inlet::Inlet;
use super::pipe::{STACK, carry, reset};
use super::socks::{self, Reply};
use super::source;
use super::transparent::{Network, Transparent};
use super::within::Within;
use super::{Refusal, encode};
use crate::accept;
use crate::hosts::{self, Host};
use crate::tpa::{PortCounters, TpaPort, TpaStream};
use meshpace_core::Duration;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How long a client of SOCKS may take to say where it wants to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// How it is known where a connection is to go.
#[derive(Clone, Debug)]
enum Way {
    /// Always there.
    To(String),
    /// The client says so first.
    Socks,
    /// It is the address that the client believes to talk to.
    Transparent,
}

/// How streams get to the far end.
#[derive(Clone, Debug)]
enum Through {
    /// Each by a connection of its own, from this port to there.
    Connections(TpaPort, Host),
    /// All in one session.
    Session(Dialing),
}

/// Takes connections and sends them through.
#[derive(Clone, Debug)]
pub struct Connector {
    through: Through,
    /// The session that datagrams go in.
    datagrams: Dialing,
    counters: Counters,
    entrances: Entrances,
    /// Where datagrams are taken.
    inlets: Entrances,
    /// It is to open no more streams.
    has_ended: Arc<AtomicBool>,
    /// Somebody looks whether this machine's address changes.
    is_watched: Arc<AtomicBool>,
}

impl Connector {
    /// Through `port` to the exit at `far`, each stream by a connection of its own.
    pub fn new(port: TpaPort, far: impl Into<Host>) -> Connector {
        let (has_ended, far) = (Arc::default(), far.into());
        let datagrams = Dialing::new(port.clone(), far.clone(), Arc::clone(&has_ended));
        Connector::through(Through::Connections(port, far), datagrams, has_ended)
    }

    /// Through `port` to the exit at `far`, all streams in one session, whose bulk goes by the quiet trains of the port's options and what is
    /// small by their TPA. The session is opened with the first stream, and again after it has broken. Without trains in the options both go by
    /// TPA.
    pub fn in_session(port: TpaPort, far: impl Into<Host>) -> Connector {
        let has_ended = Arc::default();
        let dialing = Dialing::new(port, far.into(), Arc::clone(&has_ended));
        Connector::through(Through::Session(dialing.clone()), dialing, has_ended)
    }

    fn through(through: Through, datagrams: Dialing, has_ended: Arc<AtomicBool>) -> Connector {
        let (counters, entrances, inlets, is_watched) = Default::default();
        Connector { through, datagrams, counters, entrances, inlets, has_ended, is_watched }
    }

    /// What it does.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// What its UDP port has received and not used.
    pub fn port_counters(&self) -> PortCounters {
        match &self.through {
            Through::Connections(port, _) => port.counters(),
            Through::Session(dialing) => dialing.port_counters(),
        }
    }

    /// Begins to take connections for `forward`, on a thread of its own; the address they are taken at. `complain` is told of
    /// connections that do not come about.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or no thread can be had.
    pub fn serve(&self, forward: &Forward, complain: fn(&str)) -> io::Result<SocketAddr> {
        self.take(bind(&forward.local)?, Way::To(forward.target.clone()), complain)
    }

    /// The same at `local`, `address:port`, for clients of SOCKS 5, which say themselves where they want to go.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::serve`].
    pub fn serve_socks(&self, local: &str, complain: fn(&str)) -> io::Result<SocketAddr> {
        self.take(bind(local)?, Way::Socks, complain)
    }

    /// The same for all connections of this machine, and of those it forwards for, to `networks`, as long as what is returned
    /// lives.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::serve`]; no rights to change routes and packet filter, or no programs `nft` and `ip` to do it with.
    pub fn serve_networks(&self, networks: &[Network], complain: fn(&str)) -> io::Result<Transparent> {
        let (transparent, listeners) = Transparent::install(networks)?;
        for listener in listeners {
            self.take(listener, Way::Transparent, complain)?;
        }
        Ok(transparent)
    }

    /// Begins to take datagrams of UDP for `forward`, on a thread of its own; the address they are taken at. They go in a session, which is
    /// opened with the first of them, also where each stream has a connection of its own. `complain` is told, once in a row, why there is none.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::serve`].
    pub fn serve_datagrams(&self, forward: &UdpForward, complain: fn(&str)) -> io::Result<SocketAddr> {
        self.watch_source()?;
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", forward.local));
        let local = hosts::place(&forward.local).map_err(explain)?;
        let socket = UdpSocket::bind(&local[..]).map_err(explain)?;
        let local = socket.local_addr()?;
        let inlet = Inlet::new(socket, forward, &self.datagrams, &self.counters, complain)?;
        self.inlets.open(local, inlet.socket()?, "datagrams", move |is_closed| inlet.run(is_closed))?;
        Ok(local)
    }

    fn take(&self, listener: TcpListener, way: Way, complain: fn(&str)) -> io::Result<SocketAddr> {
        self.watch_source()?;
        let connector = self.clone();
        let (local, own) = (listener.local_addr()?, listener.try_clone()?);
        self.entrances.open(local, own.into(), "forward", move |is_closed| {
            while let Some((tcp, _)) = accept::next(&listener, is_closed) {
                let (connector, way) = (connector.clone(), way.clone());
                let one = move || {
                    // It ends when it has been counted, so that whoever sees it end finds it counted.
                    if let Err(error) = connector.stream(&tcp, way, complain) {
                        connector.counters.refused();
                        complain(&error.to_string());
                    }
                };
                // Without a thread the connection is closed.
                let _ = thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(one);
            }
        })?;
        Ok(local)
    }

    /// Has the far end told when this machine's address changes. Once is enough.
    fn watch_source(&self) -> io::Result<()> {
        if self.is_watched.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let far = match &self.through {
            Through::Connections(_, far) => far.clone(),
            Through::Session(dialing) => dialing.far().clone(),
        };
        source::watch(far, self.counters(), Arc::downgrade(&self.has_ended))
    }

    /// Takes no more connections at an address that [`Connector::serve`] or [`Connector::serve_socks`] has returned: it is free from now on.
    /// Streams that are open go on.
    pub fn close(&self, local: SocketAddr) {
        self.entrances.close(local);
    }

    /// Takes no more datagrams at an address that [`Connector::serve_datagrams`] has returned, and ends the flows of its clients, here and at the
    /// far end. It is free as soon as nothing that has come is handed to a client any more, and no session is being opened for it.
    pub fn close_datagrams(&self, local: SocketAddr) {
        self.inlets.close(local);
    }

    /// Takes no more connections and datagrams and breaks off all streams and flows, here and at the far end. Its UDP port is free once their
    /// threads have seen it.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.entrances.close_all();
        self.inlets.close_all();
        self.counters.break_off();
    }

    /// One connection, from its beginning to its end.
    fn stream(&self, mut tcp: &TcpStream, way: Way, complain: fn(&str)) -> io::Result<()> {
        let is_socks = matches!(way, Way::Socks);
        let target = match way {
            Way::To(target) => target,
            Way::Transparent => tcp.local_addr()?.to_string(),
            Way::Socks => {
                let target = socks::request(&mut Within::new(tcp, PATIENCE))?;
                tcp.set_read_timeout(None)?;
                target
            }
        };
        let (number, far) = match self.open(&target, complain) {
            Ok(opened) => opened,
            Err((refusal, error)) => {
                // A reset, not an end, where nothing was answered.
                let told = is_socks && socks::reply(&mut tcp, refusal.into()).is_ok();
                if !told {
                    reset(tcp);
                }
                return Err(io::Error::new(error.kind(), format!("{target}: {error}")));
            }
        };
        if is_socks && let Err(error) = socks::reply(&mut tcp, Reply::Succeeded) {
            far.abort();
            self.counters.close(number, End::Aborted);
            return Err(error);
        }
        let end = carry(tcp, &far, &self.counters);
        self.counters.close(number, end);
        Ok(())
    }

    /// A stream to a target, its number and the stream; or why there is none.
    fn open(&self, target: &str, complain: fn(&str)) -> Result<(u64, Arc<Far>), (Refusal, io::Error)> {
        let unreachable = |error| (Refusal::Unreachable, error);
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "a target of 1 to 255 bytes");
        let head = encode(target).ok_or_else(too_long).map_err(unreachable)?;
        match &self.through {
            Through::Connections(port, to) => {
                let begin = || {
                    let mut tpa = connect(port, to)?;
                    tpa.write_all(&head)?;
                    Ok(tpa)
                };
                let far = Arc::new(Far::Tpa(begin().map_err(unreachable)?));
                let number = self.counters.open(&far);
                let answered = far.wait_for_answer(false);
                self.opened(number, far, answered)
            }
            Through::Session(dialing) => loop {
                let (link, is_old) = dialing.session(&self.counters, complain).map_err(unreachable)?;
                let stream = match link.open(target) {
                    // It has broken just now.
                    Err(_) if is_old && (!link.is_alive() || link.is_doubted()) => continue,
                    opened => opened.map_err(unreachable)?,
                };
                let far = Arc::new(Far::Session(stream));
                let number = self.counters.open(&far);
                let answered = far.wait_for_answer(is_old);
                if answered.is_err() && is_old && (!link.is_alive() || link.is_doubted()) {
                    // The far end has begun anew, say, and nothing of this stream has left but where it goes.
                    self.counters.never_was(number);
                    continue;
                }
                return self.opened(number, far, answered);
            },
        }
    }

    /// A stream that was answered.
    fn opened(
        &self,
        number: u64,
        far: Arc<Far>,
        answered: Result<(), (Refusal, io::Error)>,
    ) -> Result<(u64, Arc<Far>), (Refusal, io::Error)> {
        if let Err(refused) = answered {
            far.abort();
            self.counters.close(number, End::Closed);
            return Err(refused);
        }
        Ok((number, far))
    }
}

/// A connection to the first of the far end's addresses that answers.
fn connect(port: &TpaPort, to: &Host) -> io::Result<TpaStream> {
    let stream = port.connect(&to.addresses()?[..]).inspect_err(|_| to.doubt())?;
    to.answered(stream.peer_addr()?);
    Ok(stream)
}

fn bind(local: &str) -> io::Result<TcpListener> {
    let bound = hosts::place(local).and_then(|addresses| TcpListener::bind(&addresses[..]));
    bound.map_err(|error| io::Error::new(error.kind(), format!("{local}: {error}")))
}
