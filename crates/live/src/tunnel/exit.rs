//! The end of a tunnel where its streams come out: connects each to its target.

use super::counters::{Counters, End};
use super::far::Far;
use super::joining::Joining;
use super::pipe::{STACK, carry};
use super::session::{Carrier, Link, Side, Stream};
use super::within::Within;
use super::{Beginning, Refusal, decode};
use crate::tpa::{TpaListener, TpaStream};
use meshpace_core::Duration;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// How long a stream may take to say where it is to go, and a target to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where streams may go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Allowed {
    /// Wherever this host can go.
    Anywhere,
    /// To these targets, `host:port` as they are asked for.
    These(Vec<String>),
}

impl Allowed {
    fn permits(&self, target: &str) -> bool {
        match self {
            Allowed::Anywhere => true,
            Allowed::These(targets) => targets.iter().any(|allowed| allowed == target),
        }
    }
}

/// Takes streams and connects them.
#[derive(Debug)]
pub struct Exit {
    allowed: Allowed,
    counters: Counters,
}

impl Exit {
    /// To targets that are allowed.
    pub fn new(allowed: Allowed) -> Exit {
        Exit { allowed, counters: Counters::default() }
    }

    /// What it does.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Begins to take streams and sessions from `listener`, on a thread of its own. `complain` is told of streams that are not connected, and of
    /// sessions that are over.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub fn serve(&self, listener: TpaListener, complain: fn(&str)) -> io::Result<thread::JoinHandle<io::Error>> {
        let serving = Serving {
            allowed: Arc::new(self.allowed.clone()),
            counters: self.counters.clone(),
            joining: Joining::default(),
            complain,
        };
        thread::Builder::new().name("exit".into()).spawn(move || {
            loop {
                let (tpa, peer) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) => return error,
                };
                let serving = serving.clone();
                // Without a thread the stream is reset.
                let _ = thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(move || {
                    if let Err(error) = serving.connection(tpa, peer) {
                        complain(&format!("{peer}: {error}"));
                    }
                });
            }
        })
    }
}

/// What the threads of an exit share.
#[derive(Clone)]
struct Serving {
    allowed: Arc<Allowed>,
    counters: Counters,
    joining: Joining,
    complain: fn(&str),
}

impl Serving {
    /// One connection, from its beginning to its end; of one that is a carrier to where its session takes it.
    fn connection(&self, tpa: TpaStream, peer: SocketAddr) -> io::Result<()> {
        let asked = decode(&mut Within::new(&tpa, PATIENCE));
        tpa.set_read_timeout(None)?;
        let patience = std::time::Duration::from_nanos(PATIENCE.0);
        match asked {
            Ok(Beginning::Stream(target)) => self.stream(Far::Tpa(tpa), Ok(target)),
            Ok(Beginning::Carrier(Carrier::Bulk, name)) => {
                tpa.set_nonblocking(true)?;
                self.joining.leave(name, tpa, peer.ip(), patience)
            }
            Ok(Beginning::Carrier(Carrier::Express, name)) => {
                let bulk = self.joining.take(name, peer.ip(), patience)?;
                self.session([tpa, bulk], peer)
            }
            Err(error) => self.stream(Far::Tpa(tpa), Err(error)),
        }
    }

    /// A session begins.
    fn session(&self, carriers: [TpaStream; 2], peer: SocketAddr) -> io::Result<()> {
        let link = Link::new(Side::Accepts, carriers)?;
        self.joining.begin(&link, peer.ip())?;
        let number = self.counters.begin(&link);
        let (serving, over) = (self.clone(), self.clone());
        let run = link.run(
            move |stream, target| serving.asked(stream, target, peer),
            move |error| {
                over.counters.end(number);
                over.joining.end(peer.ip());
                (over.complain)(&error.to_string());
            },
        );
        if run.is_err() {
            link.abort();
            self.counters.end(number);
        }
        run
    }

    /// The far end of a session wants a stream.
    fn asked(&self, stream: Stream, target: String, peer: SocketAddr) {
        let serving = self.clone();
        let one = move || {
            if let Err(error) = serving.stream(Far::Session(stream), Ok(target)) {
                (serving.complain)(&format!("{peer}: {error}"));
            }
        };
        // Without a thread the stream is reset.
        let _ = thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(one);
    }

    /// One stream, from its beginning to its end.
    fn stream(&self, far: Far, asked: io::Result<String>) -> io::Result<()> {
        let connected = match &asked {
            Ok(target) if self.allowed.permits(target) => connect(target),
            Ok(_) => Err((Refusal::Forbidden, io::Error::other("nobody may go there"))),
            Err(error) => Err((Refusal::Malformed, io::Error::new(error.kind(), error.to_string()))),
        };
        let far = Arc::new(far);
        let number = self.counters.open(&far);
        match connected {
            Ok(tcp) => {
                let end = match far.answer(0) {
                    Ok(()) => carry(&tcp, &far, &self.counters),
                    Err(_) => End::Aborted,
                };
                self.counters.close(number, end);
                Ok(())
            }
            Err((refusal, error)) => {
                let told = far.answer(refusal as u8);
                self.counters.close(number, End::Refused);
                let target = asked.unwrap_or_default();
                told.and(Err(io::Error::new(error.kind(), format!("{target}: {error}"))))
            }
        }
    }
}

fn connect(target: &str) -> Result<TcpStream, (Refusal, io::Error)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    let addresses = target.to_socket_addrs().map_err(|error| (Refusal::Unreachable, error))?;
    for address in addresses {
        match TcpStream::connect_timeout(&address, std::time::Duration::from_nanos(PATIENCE.0)) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = error,
        }
    }
    let refused = last.kind() == io::ErrorKind::ConnectionRefused;
    Err((if refused { Refusal::Refused } else { Refusal::Unreachable }, last))
}
