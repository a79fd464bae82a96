//! States of a socket.

use meshpace_live::tpa::{TpaListener, TpaPort, TpaStream};
use std::sync::Arc;

/// State of a socket.
#[derive(Clone)]
pub(crate) enum State {
    /// `tpa_socket` made it.
    Fresh,
    /// `tpa_bind` gave it a port.
    Bound(TpaPort),
    /// `tpa_listen` has it listen.
    Listening(Arc<TpaListener>),
    /// It is connected, or on the way to be.
    Connected(Arc<TpaStream>),
}
