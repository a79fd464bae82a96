//! The session that the streams of a connector share: opened when the first wants it, and again when it has broken.

use super::counters::Counters;
use super::session::{Carrier, Link, NAME, Side, preamble};
use crate::tpa::{Selector, TpaPort, TpaStream, random};
use meshpace_core::Time;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Opens sessions with one far end, one at a time. Cloning gives another handle.
#[derive(Clone, Debug)]
pub(super) struct Dialing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    port: TpaPort,
    far: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    link: Option<Link>,
    /// Somebody opens one: the attempt, by its number, and the latest.
    busy: bool,
    attempt: u64,
    /// The attempt that failed last, and why.
    failed: Option<(u64, io::ErrorKind, String)>,
}

impl Dialing {
    /// From a port, whose options have trains.
    pub(super) fn new(port: TpaPort, far: SocketAddr) -> Dialing {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Dialing(Arc::new(Inner { port, far, state, changed }))
    }

    /// The session; whether it has been open before. All who wait for one attempt share what comes of it.
    ///
    /// # Errors
    ///
    /// There is no session with the far end.
    pub(super) fn session(&self, counters: &Counters, complain: fn(&str)) -> io::Result<(Link, bool)> {
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
        if let Some(link) = state.link.as_ref().filter(|link| link.is_alive()) {
            return Ok((link.clone(), true));
        }
        state.busy = true;
        state.attempt += 1;
        let attempt = state.attempt;
        drop(state);
        let dialled = self.dial(counters, complain);
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy = false;
        match &dialled {
            Ok(link) => state.link = Some(link.clone()),
            Err(error) => state.failed = Some((attempt, error.kind(), error.to_string())),
        }
        inner.changed.notify_all();
        dialled.map(|link| (link, false))
    }

    fn dial(&self, counters: &Counters, complain: fn(&str)) -> io::Result<Link> {
        let Inner { port, far, .. } = &*self.0;
        let mut name = [0; NAME];
        random(&mut name)?;
        // Both at the same time.
        let bulk = port.connect_nonblocking(*far)?;
        let express = port.connect_tpa(*far)?;
        wait_until_open(&bulk)?;
        for (carrier, stream) in [(Carrier::Express, &express), (Carrier::Bulk, &bulk)] {
            stream.try_write(&preamble(carrier, &name))?;
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
