//! TPA over UDP: streams and listeners similar to those of `std::net`.
//!
//! The format follows TPA, section 3.1 and appendix A: the segment's header has 12 bytes and
//! follows the UDP header, which provides ports and checksum. The paper has three processes (data,
//! sender, receiver). Here these are a ring buffer at either end and one thread that runs all
//! connections of a process. `docs/wire.md` describes the formats.
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

mod api;
mod errno;
#[cfg(test)]
mod hostile_live;
mod runtime;

#[cfg(feature = "tokio")]
pub use api::asynchronous;
pub use api::at_exit::finish_process;
pub use api::attempts::Attempts;
pub use api::descriptor::Descriptor;
pub use api::key_list::KeyList;
pub use api::listener::{BACKLOG, TpaListener};
pub use api::options::{MOST_BUFFER, Options};
pub use api::path::PathSource;
pub use api::port::TpaPort;
pub(crate) use api::port::any_port;
pub use api::select::Selector;
pub use api::stream::TpaStream;
pub use api::{path, secrets};
pub use errno::errno_of;
pub(crate) use meshpace_session::places;
pub use meshpace_session::{Admission, Limits, PortCounters, Reason, Security, TpaError};
pub use meshpace_session::{cipher, cookie, framing, handshake};
pub use runtime::handle::Handle as Runtime;
pub(crate) use runtime::random;
pub use runtime::{keylog, keys, socket};
