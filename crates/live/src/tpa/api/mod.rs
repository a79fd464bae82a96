//! TPA over UDP as applications see it: ports, listeners, streams, and what can be set about them.

#[cfg(feature = "tokio")]
pub mod asynchronous;
pub mod at_exit;
pub mod attempts;
mod closing;
mod connect;
pub mod descriptor;
pub mod key_list;
pub mod listener;
pub mod options;
pub mod path;
pub mod port;
pub mod secrets;
pub mod select;
pub mod stream;
