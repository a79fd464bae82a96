//! Where datagrams go that come from the far end.

use crate::tunnel::Refusal;
use std::fmt::Debug;

/// Where datagrams of a flow go that come from the far end.
pub(in crate::tunnel) trait Sink: Debug + Send + Sync {
    /// One has come. It is not to wait for anything: others wait behind it.
    fn deliver(&self, datagram: &[u8]);

    /// The far end has ended the flow, for this reason if there is one.
    fn on_end(&self, _why: Option<Refusal>) {}
}
