//! A list of peers' keys that can be changed while a listener uses it.

use crate::tpa::session::admission::Admission;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Public keys of peers. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct KeyList(Arc<RwLock<BTreeSet<[u8; 32]>>>);

impl KeyList {
    /// The list from now on. Connections that are open stay open.
    pub fn set(&self, keys: impl IntoIterator<Item = [u8; 32]>) {
        let keys = keys.into_iter().collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// True if the key is on it.
    pub fn contains(&self, key: &[u8; 32]) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Admits the peers whose keys are on it when they connect: for [`Options::admission`](crate::tpa::Options::admission).
    pub fn admission(&self) -> Admission {
        let list = self.clone();
        Admission::new(move |key| list.contains(key))
    }
}
