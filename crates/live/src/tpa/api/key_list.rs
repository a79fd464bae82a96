//! A list of peers' keys that can be changed while a listener uses it.

use meshpace_session::Admission;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Set of public keys of peers. A clone refers to the same set.
#[derive(Clone, Debug, Default)]
pub struct KeyList(Arc<RwLock<BTreeSet<[u8; 32]>>>);

impl KeyList {
    /// Replaces the contents of the list. Connections that are already open stay open.
    pub fn set(&self, keys: impl IntoIterator<Item = [u8; 32]>) {
        let keys = keys.into_iter().collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// True if the list contains the key.
    pub fn contains(&self, key: &[u8; 32]) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Creates a rule for [`Options::admission`](crate::tpa::Options::admission): it admits a
    /// connecting peer if the list contains the peer's key.
    pub fn admission(&self) -> Admission {
        let list = self.clone();
        Admission::new(move |key| list.contains(key))
    }
}
