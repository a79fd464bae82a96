//! The end of a tunnel where its streams come out: connects each to its target.

use super::Refusal;
use super::counters::{Counters, End};
use super::far::Far;
use super::hall::{Hall, Ready};
use super::joining::Joining;
use super::outlet::Outlet;
use super::pipe::{STACK, carry};
use super::reach;
use super::room::Room;
use super::session::{Flow, Link, Side, Sink};
use crate::accept;
use crate::tpa::{PortCounters, Selector, TpaListener, TpaStream};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::thread;

/// Where streams and datagrams may go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Allowed {
    /// Wherever this host can go.
    Anywhere,
    /// To these targets as they are asked for: `host:port`, or `udp:host:port` for datagrams.
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
    allowed: Arc<RwLock<Allowed>>,
    counters: Counters,
}

/// An exit that takes streams.
#[derive(Debug)]
pub struct Service {
    listener: Arc<TpaListener>,
    thread: thread::JoinHandle<io::Error>,
    counters: Counters,
}

impl Service {
    /// Whether nobody takes streams any more.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// What its port has received and not used.
    pub fn port_counters(&self) -> PortCounters {
        self.listener.counters()
    }

    /// Takes no more streams and flows and breaks off all there are, here and at their far ends. The UDP port is free once their threads have seen it.
    pub fn end(self) {
        self.listener.close();
        // It ends with the error that the listener is closed.
        let _ = self.thread.join();
        self.counters.break_off();
    }
}

impl Exit {
    /// To targets that are allowed.
    pub fn new(allowed: Allowed) -> Exit {
        Exit { allowed: Arc::new(RwLock::new(allowed)), counters: Counters::default() }
    }

    /// Where streams and flows of datagrams may go from now on. Those that are open go on.
    pub fn allow(&self, allowed: Allowed) {
        *self.allowed.write().unwrap_or_else(PoisonError::into_inner) = allowed;
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
    pub fn serve(&self, listener: TpaListener, complain: fn(&str)) -> io::Result<Service> {
        let serving = Serving {
            allowed: Arc::clone(&self.allowed),
            counters: self.counters.clone(),
            joining: Joining::default(),
            room: Room::default(),
            complain,
        };
        let listener = Arc::new(listener);
        let taken = Arc::clone(&listener);
        let thread = thread::Builder::new().name("exit".into()).spawn(move || serving.serve(&taken))?;
        Ok(Service { listener, thread, counters: self.counters() })
    }
}

/// What the threads of an exit share.
#[derive(Clone)]
struct Serving {
    allowed: Arc<RwLock<Allowed>>,
    counters: Counters,
    joining: Joining,
    room: Room,
    complain: fn(&str),
}

/// The token of the listener.
const LISTENER: u64 = 0;

impl Serving {
    /// Takes connections until nobody brings any; why.
    fn serve(&self, listener: &TpaListener) -> io::Error {
        let selector = Selector::default();
        let mut hall = Hall::new(LISTENER + 1);
        selector.waker(LISTENER).wake();
        loop {
            for token in selector.wait(hall.next_wakeup()) {
                if token != LISTENER {
                    self.dispatch(hall.look(&selector, token));
                    continue;
                }
                let waker = selector.waker(LISTENER);
                while let Poll::Ready(accepted) = listener.poll_accept(&Context::from_waker(&waker)) {
                    match accepted.and_then(|(stream, peer)| hall.enter(&selector, stream, peer)) {
                        Ok(ready) => self.dispatch(ready),
                        Err(error) => return error,
                    }
                }
            }
            while let Some(gone) = hall.give_up() {
                self.dispatch(Some(gone));
            }
        }
    }

    /// Does what a connection is for.
    fn dispatch(&self, ready: Option<Ready>) {
        match ready {
            None => {}
            Some(Ready::Stream(stream, peer, target)) => {
                self.begin(Far::Tpa(stream), target, peer);
            }
            Some(Ready::Session(carriers, peer)) => {
                if let Err(error) = self.session(carriers, peer) {
                    (self.complain)(&format!("{peer}: {error}"));
                }
            }
            Some(Ready::Malformed(stream, peer, error)) => {
                self.counters.refused();
                // Who has said something else may want to know; nobody waits until it does.
                let _ = Far::Tpa(stream).answer(Refusal::Malformed as u8);
                (self.complain)(&format!("{peer}: {error}"));
            }
            Some(Ready::Gone(peer, error)) => {
                self.counters.refused();
                (self.complain)(&format!("{peer}: {error}"));
            }
        }
    }

    /// A stream has a thread from now on, if there is room for it.
    fn begin(&self, far: Far, target: String, peer: SocketAddr) {
        let Some(place) = self.room.take(peer.ip()) else {
            self.counters.refused();
            let _ = far.answer(Refusal::Crowded as u8);
            return (self.complain)(&format!("{peer}: {target}: too many streams of this far end"));
        };
        let (serving, far) = (self.clone(), Arc::new(far));
        let own = Arc::clone(&far);
        let one = move || {
            own.wait_when_asked();
            if let Err(error) = serving.stream(own, &target) {
                (serving.complain)(&format!("{peer}: {error}"));
            }
            drop(place);
        };
        if thread::Builder::new().name("stream".into()).stack_size(STACK).spawn(one).is_err() {
            // There is no thread for it, and none of ours is to wait for what becomes of it.
            far.abort();
        }
    }

    /// A session begins.
    fn session(&self, carriers: [TpaStream; 2], peer: SocketAddr) -> io::Result<()> {
        let link = Link::new(Side::Accepts, carriers)?;
        self.joining.begin(&link)?;
        let number = self.counters.begin(&link);
        let (serving, flows, over) = (self.clone(), self.clone(), self.clone());
        let run = link.run(
            move |stream, target| serving.begin(Far::Session(stream), target, peer),
            move |flow, _, target| flows.flow(flow, target, peer),
            move |error| {
                over.counters.end(number);
                over.joining.clear();
                (over.complain)(&error.to_string());
            },
        );
        if run.is_err() {
            link.abort();
            self.counters.end(number);
        }
        run
    }

    /// A flow of datagrams begins: where they go, if anywhere.
    fn flow(&self, flow: Flow, target: String, peer: SocketAddr) -> Option<Arc<dyn Sink>> {
        let refuse = |flow: Flow, why: Refusal| {
            flow.refuse(why);
            (self.complain)(&format!("{peer}: udp:{target}: {why}"));
            None
        };
        let place = match self.room.take(peer.ip()) {
            Some(place) if self.permits(&format!("udp:{target}")) => place,
            Some(_) => return refuse(flow, Refusal::Forbidden),
            None => return refuse(flow, Refusal::Crowded),
        };
        let outlet = Arc::new(Outlet::new(self.counters.clone(), flow.store()));
        let (own, serving) = (Arc::clone(&outlet), self.clone());
        // Looking up a name takes its time, and the session has none for that.
        let carry = move || {
            match own.open(&target) {
                Ok(socket) => own.carry_back(&flow, &socket),
                Err(error) => {
                    flow.refuse(if accept::lacks_room(&error) { Refusal::Crowded } else { Refusal::Unreachable });
                    (serving.complain)(&format!("{peer}: udp:{target}: {error}"));
                }
            }
            drop(place);
        };
        thread::Builder::new().name("datagrams".into()).stack_size(STACK).spawn(carry).ok()?;
        Some(outlet)
    }

    /// Whether somebody may go there now.
    fn permits(&self, target: &str) -> bool {
        self.allowed.read().unwrap_or_else(PoisonError::into_inner).permits(target)
    }

    /// One stream, from its beginning to its end.
    fn stream(&self, far: Arc<Far>, target: &str) -> io::Result<()> {
        let connected = match self.permits(target) {
            true => reach::connect(target, || far.is_wanted().is_ok()),
            false => Err((Refusal::Forbidden, io::Error::other("nobody may go there"))),
        };
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
                told.and(Err(io::Error::new(error.kind(), format!("{target}: {error}"))))
            }
        }
    }
}
