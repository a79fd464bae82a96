//! Protocol of TPA over UDP without a socket, a clock, a thread or random numbers of its own. The
//! modules here open connections, carry and check their datagrams, and end them.
//!
//! A [`endpoint::Endpoint`] is a port. It finds the connection of each datagram, answers requests
//! for connections, and stores unfinished handshakes. A [`connection::Connection`] is one
//! connection, and an [`exchange::Exchange`] is the state that it shares with its application. The
//! caller passes the time and the received datagrams to both. They put datagrams to be sent into an
//! [`outbox::Outbox`] and report when they have to be called next. Everything else that they need
//! they get from the program that runs them, through [`host::Host`]. `runtime` runs them on
//! sockets, and the tests in `schedules` run them in virtual time.

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
