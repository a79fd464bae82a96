//! How many sessions a source may have.

use super::session::Link;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions from one address. Who has begun anew needs a second one until the first is known to be dead.
const SESSIONS: usize = 16;

/// What an exit has of sessions, by address, oldest first. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining(Arc<Mutex<BTreeMap<IpAddr, Vec<Link>>>>);

impl Joining {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Vec<Link>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session from `source` has begun. If there are too many, the oldest that carries nothing is ended.
    ///
    /// # Errors
    ///
    /// All of them carry streams.
    pub(super) fn begin(&self, link: &Link, source: IpAddr) -> io::Result<()> {
        let mut all = self.lock();
        let sessions = all.entry(source).or_default();
        sessions.retain(Link::is_alive);
        if sessions.len() >= SESSIONS {
            let idle = sessions.iter().position(Link::is_idle);
            let crowded =
                || io::Error::other(format!("{SESSIONS} sessions of {source} carry streams, which is the most"));
            sessions.remove(idle.ok_or_else(crowded)?).abort();
        }
        // Who has begun anew has left others behind: they are found out sooner if they are asked.
        sessions.iter().for_each(Link::probe);
        sessions.push(link.clone());
        Ok(())
    }

    /// A session from `source` is over.
    pub(super) fn end(&self, source: IpAddr) {
        let mut all = self.lock();
        if let Some(sessions) = all.get_mut(&source) {
            sessions.retain(Link::is_alive);
            if sessions.is_empty() {
                all.remove(&source);
            }
        }
    }
}
