//! Decision about the public keys from which a listener takes connections, where a program decides
//! instead of the fixed list in the listener's security settings.

use std::fmt;
use std::sync::Arc;

/// A decision about the public keys of peers.
///
/// A listener asks once for each handshake with keys, after the peer has proved that it holds the
/// private key. The decision runs on the thread of all connections: it must neither block nor call
/// functions of connections.
#[derive(Clone)]
pub struct Admission(Arc<Decide>);

type Decide = dyn Fn(&[u8; 32]) -> bool + Send + Sync;

impl Admission {
    /// Creates a decision that admits the peers for whose public keys `decide` returns true.
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
