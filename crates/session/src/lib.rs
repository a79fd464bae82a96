//! TPA over UDP as a state machine: handshake, encryption, reliable streams of bytes, and peers that
//! change their addresses.
//!
//! The crate has no socket, clock, thread or source of randomness. The program passes in the time,
//! random bytes and received datagrams. It sends the datagrams that it gets in return, and calls
//! again at the time that the session names. Equal inputs give equal datagrams. So a session can
//! run in a program's own event loop, in a simulator, in a browser or under a fuzzer.
//! `meshpace-live` runs it on sockets, with the interface of `std::net`; the format of the datagrams
//! is described in `docs/wire.md` of the repository.
//!
//! A [`Port`] is an address with its connections. An [`Exchange`] is what a connection shares with
//! its application: it reads and writes the bytes of the two streams, and says how the connection
//! has ended. [`Settings`] has the protection of the datagrams ([`Security`]), the transport inside
//! them, limits and timeouts.
//!
//! # Example
//!
//! Two ends in memory exchange messages over a wire that loses every fourth datagram. Then one of
//! them moves to another address, and the connection goes on.
//!
//! ```
//! use meshpace_session::{Arrived, Duration, Port, Randomness, Security, Settings, Time};
//! use std::fs::File;
//! use std::io::{self, Read};
//! use std::net::SocketAddr;
//!
//! /// Random bytes of the operating system.
//! struct Random(File);
//!
//! impl Randomness for Random {
//!     fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
//!         self.0.read_exact(bytes)
//!     }
//! }
//!
//! /// An end: a port, its address, the bytes that its application still has to write, and the
//! /// bytes that it has read.
//! struct End {
//!     port: Port,
//!     address: SocketAddr,
//!     says: &'static [u8],
//!     heard: Vec<u8>,
//! }
//!
//! impl End {
//!     fn new(now: Time, address: &str, listens: bool, says: &'static [u8]) -> io::Result<End> {
//!         let address = address.parse().map_err(io::Error::other)?;
//!         let random = Random(File::open("/dev/urandom")?);
//!         let port = Port::new(now, address, Settings::new(Security::Opportunistic), listens, random)?;
//!         Ok(End { port, address, says, heard: Vec::new() })
//!     }
//!
//!     /// Reads and writes what is possible now, and runs the connection.
//!     fn act(&mut self, id: u64, now: Time) {
//!         if let Some(exchange) = self.port.exchange(id) {
//!             let mut buffer = [0; 1500];
//!             while let Some(Ok(length @ 1..)) = exchange.read(&mut buffer) {
//!                 self.heard.extend_from_slice(&buffer[..length]);
//!             }
//!             if let Some(Ok(length)) = exchange.write(self.says) {
//!                 self.says = &self.says[length..];
//!             }
//!         }
//!         if let Some(over) = self.port.update(id, now) {
//!             println!("the connection with {} is over: {:?}", over.peer(), over.exchange.phase);
//!         }
//!     }
//! }
//!
//! struct World {
//!     now: Time,
//!     ends: [End; 2],
//!     /// Datagrams in flight: time of arrival, source, destination, bytes.
//!     wire: Vec<(Time, SocketAddr, SocketAddr, Vec<u8>)>,
//!     sent: u32,
//! }
//!
//! impl World {
//!     fn run_until(&mut self, is_done: impl Fn(&[End; 2]) -> bool) {
//!         while !is_done(&self.ends) {
//!             // Each datagram arrives after 10 ms, or is lost.
//!             for end in &mut self.ends {
//!                 for (to, bytes) in end.port.leaving() {
//!                     self.sent += 1;
//!                     if self.sent % 4 != 0 {
//!                         self.wire.push((self.now + Duration::from_millis(10), end.address, to, bytes));
//!                     }
//!                 }
//!             }
//!             // Time passes until the next arrival or timer.
//!             let arrivals = self.wire.iter().map(|(at, ..)| *at);
//!             let timers = self.ends.iter().map(|end| end.port.next_wakeup());
//!             self.now = arrivals.chain(timers).min().expect("two timers").max(self.now);
//!             assert!(self.now < Time::ZERO + Duration::from_secs(60), "something is wrong");
//!             let now = self.now;
//!             for (_, from, to, mut bytes) in self.wire.extract_if(.., |(at, ..)| *at <= now) {
//!                 // Nobody has the address that an end has left.
//!                 let Some(end) = self.ends.iter_mut().find(|end| end.address == to) else { continue };
//!                 let arrived = end.port.receive(now, from, &mut bytes, |_| ());
//!                 if let Arrived::Told(id) | Arrived::Accepted(id) = arrived {
//!                     end.act(id, now);
//!                 }
//!             }
//!             for end in &mut self.ends {
//!                 for id in end.port.wake(now) {
//!                     end.act(id, now);
//!                 }
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> io::Result<()> {
//! let now = Time::ZERO;
//! let client = End::new(now, "192.0.2.1:4000", false, b"hello")?;
//! let server = End::new(now, "198.51.100.1:4000", true, b"welcome")?;
//! let mut world = World { now, ends: [client, server], wire: Vec::new(), sent: 0 };
//!
//! let to = world.ends[1].address;
//! let id = world.ends[0].port.open(now, to, ())?;
//! world.ends[0].act(id, now);
//! world.run_until(|[client, server]| client.heard == b"welcome" && server.heard == b"hello");
//!
//! // The client moves. Its next datagram comes from the new address, and the server follows once
//! // the client has answered a challenge there.
//! world.ends[0].address = ([203, 0, 113, 9], 5000).into();
//! world.ends[0].says = b" again";
//! world.ends[0].act(id, world.now);
//! world.run_until(|[client, server]| {
//!     let peers: Vec<SocketAddr> =
//!         server.port.connections().filter_map(|id| Some(server.port.party(id)?.peer())).collect();
//!     server.heard == b"hello again" && peers == [client.address]
//! });
//!
//! // The client closes. Both ends learn that everything has arrived.
//! if let Some(exchange) = world.ends[0].port.exchange(id) {
//!     exchange.close();
//! }
//! world.ends[0].act(id, world.now);
//! world.run_until(|[client, _]| client.port.party(id).is_none_or(|party| party.exchange.has_delivered()));
//! # Ok(())
//! # }
//! ```
//!
//! # What the program has to do
//!
//! - Time never goes back. Any origin will do: the session only compares times.
//! - [`Randomness`] has to be fit for cryptographic keys.
//! - Errors that the network reports about datagrams (ICMP) can be passed to [`Port::complain`]. A
//!   session also works without them, and learns more slowly that a peer is gone.
//! - The buffers of all connections together are bounded by [`Limits::buffers`].
//!
//! # Stability
//!
//! The items of this page are the interface. The modules that the documentation does not show are
//! for `meshpace-live`, and may change with any version.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]

#[doc(hidden)]
pub mod addresses;
mod admission;
#[doc(hidden)]
pub mod budget;
mod buffers;
#[doc(hidden)]
pub mod cipher;
#[doc(hidden)]
pub mod connection;
#[doc(hidden)]
pub mod content;
#[doc(hidden)]
pub mod cookie;
#[doc(hidden)]
pub mod counters;
#[doc(hidden)]
pub mod endpoint;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod exchange;
#[doc(hidden)]
pub mod failure;
#[doc(hidden)]
pub mod framing;
#[cfg(test)]
mod from_pages;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod half_open;
#[doc(hidden)]
pub mod handshake;
mod host;
#[doc(hidden)]
pub mod message;
#[doc(hidden)]
pub mod networks;
#[doc(hidden)]
pub mod noise;
#[doc(hidden)]
pub mod outbox;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod path_frame;
mod pieces;
#[doc(hidden)]
pub mod places;
mod port;
mod presealed;
#[doc(hidden)]
pub mod ring;
#[cfg(test)]
mod schedules;
#[doc(hidden)]
pub mod seal;
mod security;
#[doc(hidden)]
pub mod seeded;
#[doc(hidden)]
pub mod settings;
mod sources;
#[doc(hidden)]
pub mod unpredictable;

pub use admission::Admission;
#[doc(inline)]
pub use budget::{Bounds, Budget, Refusal};
#[doc(inline)]
pub use connection::Report;
#[doc(inline)]
pub use counters::PortCounters;
#[doc(inline)]
pub use exchange::{Delivery, Exchange, Phase};
#[doc(inline)]
pub use failure::{Failure, Reason, TpaError};
#[doc(inline)]
pub use handshake::Tag;
pub use host::Randomness;
#[doc(hidden)]
pub use host::{Host, random};
pub use meshpace_core::{Duration, Time};
#[doc(inline)]
pub use path::PathSource;
pub use port::{Arrived, Party, Port};
pub use security::Security;
#[doc(inline)]
pub use settings::{Beside, Limits, Settings};
