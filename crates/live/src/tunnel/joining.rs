//! How many sessions a peer may have.

use super::session::Link;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions of the holder of a key, where keys are known, or else from one source. A peer that has begun anew needs a second one until
/// the first is known to be dead.
const SESSIONS: usize = 16;

/// The sessions of an exit, oldest first. They count for the source where their peers are now, not where these have begun. Cloning gives
/// another handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining(Arc<Mutex<Vec<Link>>>);

impl Joining {
    /// A session has begun. If its peer has too many, the oldest of them that carries nothing is ended.
    ///
    /// # Errors
    ///
    /// All of them carry streams.
    pub(super) fn begin(&self, link: &Link) -> io::Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(Link::is_alive);
        let payer = link.payer();
        let of_peer: Vec<Link> = all.iter().filter(|other| other.payer() == payer).cloned().collect();
        if of_peer.len() >= SESSIONS {
            let whose = payer.map_or("this peer".to_owned(), |payer| payer.to_string());
            let crowded =
                || io::Error::other(format!("{SESSIONS} sessions of {whose} carry streams, which is the most"));
            of_peer.iter().find(|other| other.is_idle()).ok_or_else(crowded)?.abort();
        }
        // Who has begun anew has left others behind: they are found out sooner if they are asked.
        of_peer.iter().for_each(Link::probe);
        all.push(link.clone());
        Ok(())
    }

    /// Forgets sessions that are over.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(Link::is_alive);
    }
}
