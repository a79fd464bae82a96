//! Users of a connection.

use super::stream::Application;
use crate::tpa::session::handshake::Tag;

/// User of a connection.
#[derive(Debug)]
pub(crate) enum Seat {
    /// An application, whose stream it is; the tag of who has opened it.
    Stream(Tag, Application),
    /// A tunnel.
    Carrier,
    /// A tunnel that does not know yet for what: what has come of the preamble.
    Newcomer(Vec<u8>),
}
