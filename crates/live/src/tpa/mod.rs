//! TPA over UDP: streams and listeners in the manner of `std::net`.
//!
//! TPA, section 3.1 and appendix A: the segment's header is 12 bytes behind UDP's, which brings ports and checksum. The
//! paper's three processes (data, sender, receiver) are a ring of bytes on either side and one thread that runs all
//! connections of a process. `docs/wire.md` has the formats.
//!
//! ```no_run
//! use meshpace_live::tpa::{TpaListener, TpaStream};
//! use std::io::{Read, Write};
//!
//! let listener = TpaListener::bind("127.0.0.1:4000")?;
//! let mut client = TpaStream::connect("127.0.0.1:4000")?;
//! let (mut server, peer) = listener.accept()?;
//! client.write_all(b"hello")?;
//! client.close()?;
//! let mut text = String::new();
//! server.read_to_string(&mut text)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod ahead;
#[cfg(feature = "tokio")]
pub mod asynchronous;
pub mod cipher;
mod connection;
pub mod cookie;
pub mod cover;
mod engine;
mod half_open;
mod handle;
pub mod handshake;
pub(crate) mod kernel_route;
pub mod keylog;
pub mod keys;
mod listener;
mod noise;
mod options;
mod outbox;
pub mod path;
pub(crate) mod port;
mod route_metric;
mod runtime;
mod seal;
pub mod secrets;
mod select;
mod shared;
pub mod socket;
mod sources;
mod stream;

pub use handle::Handle as Runtime;
pub use listener::{BACKLOG, PortCounters, TpaListener};
pub use options::{Limits, Options, Security};
pub use path::PathSource;
pub use port::TpaPort;
pub(crate) use runtime::random;
pub use select::Selector;
pub use shared::{TpaError, errno_of};
pub use stream::TpaStream;
