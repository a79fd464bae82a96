//! Which known keys a listener takes connections from, where that is not the fixed list of its security.

use std::fmt;
use std::sync::Arc;

/// A decision about the public keys of peers. A listener asks it once for each handshake with keys, when the peer has proved that it holds
/// the private key. It runs on the thread of all connections: it may neither wait nor call functions of connections.
#[derive(Clone)]
pub struct Admission(Arc<Decide>);

type Decide = dyn Fn(&[u8; 32]) -> bool + Send + Sync;

impl Admission {
    /// Peers are admitted whose public keys `decide` returns true for.
    pub fn new(decide: impl Fn(&[u8; 32]) -> bool + Send + Sync + 'static) -> Admission {
        Admission(Arc::new(decide))
    }

    /// True if the holder of this key is admitted.
    pub(crate) fn admits(&self, key: &[u8; 32]) -> bool {
        (self.0)(key)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admission")
    }
}
