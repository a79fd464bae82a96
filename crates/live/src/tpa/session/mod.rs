//! TPA over UDP without a socket, a clock, a thread or a random number of its own: what opens, carries, judges and ends connections.
//!
//! A [`endpoint::Endpoint`] is a port: it tells whose each datagram is, answers requests for connections, and keeps unfinished handshakes. A
//! [`connection::Connection`] is one connection; what it shares with its application is an [`exchange::Exchange`]. Both are told the
//! time and what arrived. What they send they put into an [`outbox::Outbox`], and they say when they want to be woken. What else they
//! need comes from whoever runs them, by way of [`host::Host`]. `runtime` runs them on sockets; the tests in `schedules` run them in
//! virtual time.

pub mod addresses;
pub mod admission;
pub mod buffers;
pub mod cipher;
pub mod connection;
pub(crate) mod content;
pub mod cookie;
pub mod counters;
pub mod endpoint;
pub mod engine;
pub mod exchange;
pub mod failure;
pub mod framing;
#[cfg(test)]
mod from_pages;
pub mod half_open;
pub mod handshake;
pub mod host;
pub mod message;
pub mod noise;
pub mod outbox;
pub mod path;
pub mod path_frame;
pub(crate) mod pieces;
pub(crate) mod places;
pub(crate) mod port;
pub mod presealed;
#[cfg(test)]
pub(crate) mod schedules;
pub mod seal;
pub mod security;
pub mod settings;
pub mod sources;
pub mod unpredictable;
