//! What a socket has become.

use meshpace_live::tpa::{TpaListener, TpaPort, TpaStream};
use std::sync::Arc;

/// What a socket has become.
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
