//! Where the two carriers of a session find each other, and how many sessions a source may have.

use super::session::{Link, NAME};
use crate::tpa::TpaStream;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sessions from one address. Who has begun anew needs a second one until the first is known to be dead.
const SESSIONS: usize = 16;

/// What an exit has of sessions. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Bulk carriers whose sessions have not begun.
    waiting: BTreeMap<[u8; NAME], (TpaStream, IpAddr)>,
    /// Sessions by address, oldest first.
    sessions: BTreeMap<IpAddr, Vec<Link>>,
}

impl Joining {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bulk carrier from `source` waits until its session takes it.
    ///
    /// # Errors
    ///
    /// Nobody did within `patience`, or another one has its name.
    pub(super) fn leave(
        &self,
        name: [u8; NAME],
        carrier: TpaStream,
        source: IpAddr,
        patience: Duration,
    ) -> io::Result<()> {
        let mut state = self.lock();
        if state.waiting.contains_key(&name) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a second bulk carrier of a session"));
        }
        state.waiting.insert(name, (carrier, source));
        self.0.arrived.notify_all();
        let is_there = |state: &mut State| state.waiting.contains_key(&name);
        let (mut state, result) =
            self.0.arrived.wait_timeout_while(state, patience, is_there).unwrap_or_else(PoisonError::into_inner);
        match state.waiting.remove(&name) {
            Some(_) if result.timed_out() => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "a bulk carrier without a session"))
            }
            _ => Ok(()),
        }
    }

    /// The bulk carrier of the session of this name, from `source` too, as soon as it is there.
    ///
    /// # Errors
    ///
    /// It was not within `patience`.
    pub(super) fn take(&self, name: [u8; NAME], source: IpAddr, patience: Duration) -> io::Result<TpaStream> {
        let is_missing = |state: &mut State| state.waiting.get(&name).is_none_or(|(_, from)| *from != source);
        let (mut state, _) = self
            .0
            .arrived
            .wait_timeout_while(self.lock(), patience, is_missing)
            .unwrap_or_else(PoisonError::into_inner);
        let missing = is_missing(&mut state);
        let taken = if missing { None } else { state.waiting.remove(&name) };
        self.0.arrived.notify_all();
        let none = || io::Error::new(io::ErrorKind::TimedOut, "a session without a bulk carrier");
        taken.map(|(carrier, _)| carrier).ok_or_else(none)
    }

    /// A session from `source` has begun. If there are too many, the oldest that carries nothing is ended.
    ///
    /// # Errors
    ///
    /// All of them carry streams.
    pub(super) fn begin(&self, link: &Link, source: IpAddr) -> io::Result<()> {
        let mut state = self.lock();
        let sessions = state.sessions.entry(source).or_default();
        sessions.retain(Link::is_alive);
        if sessions.len() >= SESSIONS {
            let idle = sessions.iter().position(Link::is_idle);
            let crowded =
                || io::Error::other(format!("{SESSIONS} sessions of {source} carry streams, which is the most"));
            sessions.remove(idle.ok_or_else(crowded)?).abort();
        }
        sessions.push(link.clone());
        Ok(())
    }

    /// A session from `source` is over.
    pub(super) fn end(&self, source: IpAddr) {
        let mut state = self.lock();
        if let Some(sessions) = state.sessions.get_mut(&source) {
            sessions.retain(Link::is_alive);
            if sessions.is_empty() {
                state.sessions.remove(&source);
            }
        }
    }
}
