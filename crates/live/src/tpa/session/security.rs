//! How datagrams are protected, and from whom.

use super::handshake::Protection;
use curve25519_dalek::montgomery::MontgomeryPoint;

/// How datagrams are protected, and from whom.
#[derive(Clone, PartialEq, Eq)]
pub enum Security {
    /// A random tag of 64 bits in every datagram: whoever cannot read the packets can forge nothing. Whoever can read them can
    /// forge them. For experiments.
    Plain,
    /// Encrypted, with whoever answers: whoever reads packets learns nothing and can forge nothing. Somebody who stands
    /// between the two ends while they connect can pose as each to the other.
    Opportunistic,
    /// Encrypted, with whoever knows this secret.
    Shared([u8; 32]),
    /// Encrypted, with the holders of known keys (X25519). Whoever opens a connection knows exactly one peer.
    Keys {
        /// Our own private key.
        own: [u8; 32],
        /// Public keys of the peers.
        peers: Vec<[u8; 32]>,
    },
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are not for logs.
        write!(f, "Security({:?})", self.protection())
    }
}

impl Security {
    /// As it stands in a request.
    pub fn protection(&self) -> Protection {
        match self {
            Security::Plain => Protection::Plain,
            Security::Opportunistic => Protection::Nn,
            Security::Shared(_) => Protection::NnPsk0,
            Security::Keys { .. } => Protection::Ik,
        }
    }

    /// Whether the peer proves that it is the one that is meant: by a secret, or by known keys.
    pub fn knows_peer(&self) -> bool {
        matches!(self, Security::Shared(_) | Security::Keys { .. })
    }

    /// The public key of a private one.
    pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
    }
}
