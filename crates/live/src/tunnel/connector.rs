//! The end of a tunnel that takes TCP connections and sends them through.

use super::counters::{Counters, End};
use super::pipe::{STACK, break_off, carry};
use super::{Refusal, encode};
use crate::tpa::{TpaPort, TpaStream};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

/// A port here and where its connections go, seen from the far end: `[address:]port:host:port`, as ssh's -L has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The own address and port.
    pub local: String,
    /// The target, `host:port`.
    pub target: String,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Forward, String> {
        let wrong = || format!("{text}: expected [ADDRESS:]PORT:HOST:PORT");
        // From the right, since IPv6 addresses have colons of their own, in brackets.
        let (rest, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let split = if rest.ends_with(']') { rest.rfind(":[") } else { rest.rfind(':') };
        let (local, host) = rest.split_at(split.ok_or_else(wrong)?);
        let host = &host[1..];
        let local = if local.contains(':') { local.to_owned() } else { format!("127.0.0.1:{local}") };
        let own = local.rsplit_once(':').map(|(_, port)| port);
        if own.is_none_or(|port| port.parse::<u16>().is_err()) || port.parse::<u16>().is_err() || host.is_empty() {
            return Err(wrong());
        }
        Ok(Forward { local, target: format!("{host}:{port}") })
    }
}

/// Takes connections on the ports of its forwards.
#[derive(Debug)]
pub struct Connector {
    port: TpaPort,
    far: SocketAddr,
    counters: Counters,
}

impl Connector {
    /// Through `port` to the exit at `far`.
    pub fn new(port: TpaPort, far: SocketAddr) -> Connector {
        Connector { port, far, counters: Counters::default() }
    }

    /// What it does.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Begins to take connections for `forward`, on a thread of its own; the address they are taken at. `complain` is told of
    /// connections that do not come about.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or no thread can be had.
    pub fn serve(&self, forward: &Forward, complain: fn(&str)) -> io::Result<SocketAddr> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", forward.local));
        let listener = TcpListener::bind(&forward.local).map_err(explain)?;
        let (local, far) = (listener.local_addr()?, self.far);
        let (port, counters, target) = (self.port.clone(), self.counters.clone(), forward.target.clone());
        thread::Builder::new().name("forward".into()).spawn(move || {
            for tcp in listener.incoming() {
                // One that is gone already, or no descriptor left: the next one may do better.
                let Ok(tcp) = tcp else { continue };
                let (port, counters, target) = (port.clone(), counters.clone(), target.clone());
                let one = move || {
                    if let Err(error) = stream(&port, far, tcp, &target, &counters) {
                        counters.refused();
                        complain(&format!("{target}: {error}"));
                    }
                };
                // Without a thread the connection is closed.
                let _ = thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(one);
            }
        })?;
        Ok(local)
    }
}

/// One connection, from its beginning to its end.
fn stream(port: &TpaPort, far: SocketAddr, tcp: TcpStream, target: &str, counters: &Counters) -> io::Result<()> {
    let begun = begin(port, far, target);
    let tpa = match begun {
        Ok(tpa) => Arc::new(tpa),
        Err(error) => {
            // A reset, not an end: nothing was answered.
            let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            let _ = nix::sys::socket::setsockopt(&tcp, nix::sys::socket::sockopt::Linger, &linger);
            return Err(error);
        }
    };
    let number = counters.open(&tpa);
    let mut answer = [0];
    let end = match (&*tpa).read_exact(&mut answer) {
        Ok(()) if answer == [0] => carry(tcp, &tpa, counters),
        outcome => {
            break_off(&tcp, &tpa);
            counters.close(number, End::Closed);
            return Err(outcome.err().unwrap_or_else(|| io::Error::other(Refusal::of(answer[0]).to_string())));
        }
    };
    counters.close(number, end);
    Ok(())
}

fn begin(port: &TpaPort, far: SocketAddr, target: &str) -> io::Result<TpaStream> {
    let head =
        encode(target).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a target of 1 to 255 bytes"))?;
    let mut tpa = port.connect(far)?;
    tpa.write_all(&head)?;
    Ok(tpa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_written_as_for_ssh() {
        let forward = |text: &str| text.parse::<Forward>().map(|forward| (forward.local, forward.target));
        let is = |text: &str, local: &str, target: &str| {
            assert_eq!(forward(text), Ok((local.to_owned(), target.to_owned())));
        };
        is("8080:host:80", "127.0.0.1:8080", "host:80");
        is("0.0.0.0:8080:host:80", "0.0.0.0:8080", "host:80");
        is("8080:[::1]:80", "127.0.0.1:8080", "[::1]:80");
        is("[::]:8080:[fe80::1]:80", "[::]:8080", "[fe80::1]:80");
        for bad in ["", "8080", "8080:host", "x:host:80", "8080:host:x", "8080::80", "99999:host:80"] {
            assert!(forward(bad).is_err(), "{bad}");
        }
    }
}
