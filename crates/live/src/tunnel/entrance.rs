//! Ports of this machine where a tunnel takes connections, each with a thread, until they are closed.

use crate::accept;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A port whose thread takes connections.
#[derive(Debug)]
struct Entrance {
    listener: TcpListener,
    is_closed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The ports of one end, by their addresses. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Entrances(Arc<Mutex<BTreeMap<SocketAddr, Entrance>>>);

impl Entrances {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Entrance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands each connection that comes to `listener` to `take`, on a thread of its own; the address of the port.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub(super) fn open(
        &self,
        listener: TcpListener,
        mut take: impl FnMut(TcpStream) + Send + 'static,
    ) -> io::Result<SocketAddr> {
        let (local, own) = (listener.local_addr()?, listener.try_clone()?);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let thread = thread::Builder::new().name("forward".into()).spawn(move || {
            while let Some((tcp, _)) = accept::next(&own, &closed) {
                take(tcp);
            }
        })?;
        self.lock().insert(local, Entrance { listener, is_closed, thread });
        Ok(local)
    }

    /// Takes no more connections at `local`, which is free when this returns; those that were taken go on. Nothing if nobody listens there.
    pub(super) fn close(&self, local: SocketAddr) {
        if let Some(entrance) = self.lock().remove(&local) {
            entrance.close();
        }
    }

    /// The same at all of them.
    pub(super) fn close_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().for_each(Entrance::close);
    }
}

impl Entrance {
    fn close(self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the thread that waits for a connection: with an error, which it passes over, to find that it is closed.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_port_that_is_closed_is_free_and_what_it_took_goes_on() {
        let entrances = Entrances::default();
        let (taken, received) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = entrances.open(listener, move |tcp| taken.send(tcp).unwrap()).unwrap();
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
