//! Users of the connections of a machine.

use super::stream::Application;
use meshpace_session::handshake::Tag;

/// User of a connection.
#[derive(Debug)]
pub(crate) enum Seat {
    /// An application whose stream is the connection, with the tag of the end that opened it.
    Stream(Tag, Application),
    /// A session of a tunnel, of which the connection is a carrier.
    Carrier,
    /// An accepting tunnel that has not yet received the whole preamble; the bytes received so far.
    Newcomer(Vec<u8>),
}
