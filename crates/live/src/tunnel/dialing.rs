//! The session that the streams of a connector share: opened when the first wants it, and again when it has broken.

use super::counters::Counters;
use super::session::{Carrier, Link, NAME, Side, preamble};
use crate::Clock;
use crate::hosts::Host;
use crate::tpa::{PortCounters, Selector, TpaPort, TpaStream, random};
use meshpace_core::{Duration, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Opens sessions with one far end, one at a time. Cloning gives another handle.
#[derive(Clone, Debug)]
pub(super) struct Dialing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    port: TpaPort,
    far: Host,
    /// There are to be no more sessions.
    has_ended: Arc<AtomicBool>,
    state: Mutex<State>,
    changed: Condvar,
}

/// How long a session that seems to be dead is given to contradict once there is another, at least, and how many times as long as that took.
const PATIENCE: Duration = Duration::from_secs(1);
const TIMES: u64 = 2;

#[derive(Debug, Default)]
struct State {
    link: Option<Link>,
    /// Others that are not over: no streams are opened in them.
    former: Vec<Link>,
    /// Somebody opens one: the attempt, by its number, and the latest.
    busy: bool,
    attempt: u64,
    /// The attempt that failed last, and why.
    failed: Option<(u64, io::ErrorKind, String)>,
}

impl Dialing {
    /// From a port, whose options have trains or not, until `has_ended`.
    pub(super) fn new(port: TpaPort, far: Host, has_ended: Arc<AtomicBool>) -> Dialing {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Dialing(Arc::new(Inner { port, far, has_ended, state, changed }))
    }

    /// What its port has received and not used.
    pub(super) fn port_counters(&self) -> PortCounters {
        self.0.port.counters()
    }

    /// The session; whether it has been open before. All who wait for one attempt share what comes of it.
    ///
    /// # Errors
    ///
    /// There is no session with the far end, or this end has ended.
    pub(super) fn session(&self, counters: &Counters, complain: fn(&str)) -> io::Result<(Link, bool)> {
        let ended = || io::Error::new(io::ErrorKind::NotConnected, "this end of the tunnel ends");
        if self.has_ended() {
            return Err(ended());
        }
        let opened = self.open_or_share(counters, complain)?;
        // A session that is counted is broken off by whoever ends this end; one that came later, here.
        if self.has_ended() {
            opened.0.abort();
            return Err(ended());
        }
        Ok(opened)
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }

    fn open_or_share(&self, counters: &Counters, complain: fn(&str)) -> io::Result<(Link, bool)> {
        let inner = &*self.0;
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let since = state.attempt;
        while state.busy {
            state = inner.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            if let Some((attempt, kind, text)) = &state.failed
                && *attempt >= since
            {
                return Err(io::Error::new(*kind, text.clone()));
            }
        }
        state.former.retain(Link::is_alive);
        state.former.iter().filter(|link| link.is_idle()).for_each(Link::abort);
        if let Some(link) = state.link.as_ref().filter(|link| link.is_alive() && !link.is_doubted()) {
            return Ok((link.clone(), true));
        }
        state.busy = true;
        state.attempt += 1;
        let attempt = state.attempt;
        drop(state);
        let began = Clock.now();
        let dialled = self.dial(counters, complain);
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy = false;
        match &dialled {
            Ok(link) => {
                if let Some(former) = state.link.replace(link.clone()).filter(Link::is_alive) {
                    state.former.push(former.clone());
                    give_up(former, PATIENCE.max(Duration(TIMES * Clock.now().since(began).0)));
                }
            }
            Err(error) => state.failed = Some((attempt, error.kind(), error.to_string())),
        }
        inner.changed.notify_all();
        dialled.map(|link| (link, false))
    }

    /// The far end.
    pub(super) fn far(&self) -> &Host {
        &self.0.far
    }

    fn dial(&self, counters: &Counters, complain: fn(&str)) -> io::Result<Link> {
        let Inner { port, far, .. } = &*self.0;
        let mut name = [0; NAME];
        random(&mut name)?;
        // Of several addresses the first that answers; with one, both carriers open at the same time.
        let bulk = match &far.addresses()?[..] {
            [only] => port.connect_nonblocking(*only),
            several => port.connect(several),
        };
        let bulk = bulk.inspect_err(|_| far.doubt())?;
        bulk.set_nonblocking(true)?;
        let peer = bulk.peer_addr()?;
        let express = port.connect_for_messages(peer).inspect_err(|_| far.doubt())?;
        wait_until_open(&bulk).inspect_err(|_| far.doubt())?;
        far.answered(peer);
        for (carrier, stream) in [(Carrier::Express, &express), (Carrier::Bulk, &bulk)] {
            let preamble = preamble(carrier, &name);
            if stream.try_write(&preamble)? < preamble.len() {
                return Err(io::Error::new(io::ErrorKind::OutOfMemory, "no memory for the beginning of a session"));
            }
        }
        let link = Link::new(Side::Connects, [express, bulk])?;
        let (number, counted) = (counters.begin(&link), counters.clone());
        link.run(
            |_, _| {},
            |_, _, _| None,
            move |error| {
                counted.end(number);
                complain(&error.to_string());
            },
        )?;
        Ok(link)
    }
}

/// Ends a session of which the far end seems to know nothing any more, if nothing at all was heard in it for a while although the far end, which
/// is asked twice a second, has taken another. Who forges that it knows nothing cannot keep its answers back.
fn give_up(former: Link, patience: Duration) {
    let began = Clock.now();
    // Without a thread it is found out later.
    let _ = std::thread::Builder::new().name("give-up".into()).stack_size(super::pipe::STACK).spawn(move || {
        #[expect(clippy::disallowed_methods, reason = "real time: the far end is given some")]
        std::thread::sleep(std::time::Duration::from_nanos(patience.0));
        if former.doubted().is_some_and(|since| since <= began) {
            former.abort();
        }
    });
}

/// Waits until a connection that was begun is open.
fn wait_until_open(stream: &TpaStream) -> io::Result<()> {
    let selector = Selector::default();
    let waker = selector.waker(0);
    loop {
        match stream.poll_open(&Context::from_waker(&waker)) {
            Poll::Ready(opened) => return opened,
            Poll::Pending => drop(selector.wait(Time::NEVER)),
        }
    }
}
