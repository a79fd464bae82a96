//! Ports of this machine where a tunnel takes connections or datagrams, each with a thread, until they are closed.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// For how long whoever closes a port waits for its thread. One that takes connections ends at once; one that takes datagrams may be opening a
/// session for them, and ends after that.
const PATIENCE: Duration = Duration::from_millis(500);

/// A port whose thread takes what comes.
#[derive(Debug)]
struct Entrance {
    socket: OwnedFd,
    is_closed: Arc<AtomicBool>,
    /// Nothing ever comes here; its other end is gone once the thread has given the port back.
    ended: Receiver<()>,
}

/// The ports of one end, by their addresses. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Entrances(Arc<Mutex<BTreeMap<SocketAddr, Entrance>>>);

impl Entrances {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Entrance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `take` take what comes to the port at `local`, on a thread of this name, until it finds that it is closed. `socket` is a handle to the
    /// socket that `take` reads: shutting it down wakes the thread.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub(super) fn open(
        &self,
        local: SocketAddr,
        socket: OwnedFd,
        name: &str,
        take: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> io::Result<()> {
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let (end, ended) = channel();
        thread::Builder::new().name(name.into()).spawn(move || {
            take(&closed);
            drop(end);
        })?;
        self.lock().insert(local, Entrance { socket, is_closed, ended });
        Ok(())
    }

    /// Takes nothing more at `local`, which is free when this returns, or once the thread has ended what it is at; connections that were taken go
    /// on. Nothing if nobody listens there.
    pub(super) fn close(&self, local: SocketAddr) {
        let entrance = self.lock().remove(&local);
        if let Some(entrance) = entrance {
            entrance.shut();
            entrance.wait();
        }
    }

    /// The same at all of them.
    pub(super) fn close_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        all.values().for_each(Entrance::shut);
        all.into_values().for_each(Entrance::wait);
    }
}

impl Entrance {
    /// Has the thread end.
    fn shut(&self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the thread that waits for something to come: with an error, which it passes over, to find that it is closed. A socket of UDP says
        // that it is not connected, and is woken all the same.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// Waits until it has, for a while.
    fn wait(self) {
        drop(self.socket);
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_port_that_is_closed_is_free_and_what_it_took_goes_on() {
        let entrances = Entrances::default();
        let (taken, received) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (local, own) = (listener.local_addr().unwrap(), listener.try_clone().unwrap());
        let take = move |is_closed: &AtomicBool| {
            while let Some((tcp, _)) = accept::next(&listener, is_closed) {
                taken.send(tcp).unwrap();
            }
        };
        entrances.open(local, own.into(), "forward", take).unwrap();
        let mut client = TcpStream::connect(local).unwrap();
        let mut server = received.recv().unwrap();
        entrances.close(local);
        assert!(TcpStream::connect(local).is_err());
        drop(TcpListener::bind(local).unwrap());
        std::io::Write::write_all(&mut server, b"still here").unwrap();
        let mut got = [0; 10];
        std::io::Read::read_exact(&mut client, &mut got).unwrap();
        assert_eq!(&got, b"still here");
        // One that is not there is nothing to close.
        entrances.close(local);
        entrances.close_all();
    }
}
