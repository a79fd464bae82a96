//! The end of a tunnel where its streams come out: connects each to its target.

use super::counters::{Counters, End};
use super::pipe::{STACK, carry};
use super::within::Within;
use super::{Refusal, decode};
use crate::tpa::{TpaListener, TpaStream};
use meshpace_core::Duration;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
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

    /// Begins to take streams from `listener`, on a thread of its own. `complain` is told of those that are not connected.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub fn serve(&self, listener: TpaListener, complain: fn(&str)) -> io::Result<thread::JoinHandle<io::Error>> {
        let (allowed, counters) = (Arc::new(self.allowed.clone()), self.counters.clone());
        thread::Builder::new().name("exit".into()).spawn(move || {
            loop {
                let (tpa, peer) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) => return error,
                };
                let (allowed, counters) = (Arc::clone(&allowed), counters.clone());
                let one = move || {
                    if let Err(error) = stream(tpa, &allowed, &counters) {
                        complain(&format!("{peer}: {error}"));
                    }
                };
                // Without a thread the stream is reset.
                let _ = thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(one);
            }
        })
    }
}

/// One stream, from its beginning to its end.
fn stream(tpa: TpaStream, allowed: &Allowed, counters: &Counters) -> io::Result<()> {
    let asked = decode(&mut Within::new(&tpa, PATIENCE));
    tpa.set_read_timeout(None)?;
    let connected = match &asked {
        Ok(target) if allowed.permits(target) => connect(target),
        Ok(_) => Err((Refusal::Forbidden, io::Error::other("nobody may go there"))),
        Err(error) => Err((Refusal::Malformed, io::Error::new(error.kind(), error.to_string()))),
    };
    let tpa = Arc::new(tpa);
    let number = counters.open(&tpa);
    match connected {
        Ok(tcp) => {
            let end = match (&*tpa).write_all(&[0]) {
                Ok(()) => carry(&tcp, &tpa, counters),
                Err(_) => End::Aborted,
            };
            counters.close(number, end);
            Ok(())
        }
        Err((refusal, error)) => {
            let told = (&*tpa).write_all(&[refusal as u8]).and_then(|()| tpa.finish());
            counters.close(number, End::Refused);
            let target = asked.unwrap_or_default();
            told.and(Err(io::Error::new(error.kind(), format!("{target}: {error}"))))
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
