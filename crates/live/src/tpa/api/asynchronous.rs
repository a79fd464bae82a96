//! Streams and listeners for programs that use tokio: they implement its `AsyncRead` and
//! `AsyncWrite`. Available with the feature `tokio`.
//!
//! They do not need tokio's network or time drivers: the thread that runs the connections wakes the
//! tasks that wait. One task may read while another writes (`tokio::io::split`).

use super::listener::TpaListener;
use super::port::TpaPort;
use super::stream::TpaStream;
use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection. Dropping it does not wait; written data still arrive as long as the process
/// lives. `shutdown` (of tokio's `AsyncWriteExt`) waits until it has arrived.
#[derive(Debug)]
pub struct AsyncStream(TpaStream);

impl AsyncStream {
    /// Opens a connection from `port`.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::connect`].
    pub async fn connect(port: &TpaPort, address: SocketAddr) -> io::Result<AsyncStream> {
        let stream = port.connect_nonblocking(address)?;
        poll_fn(|context| stream.poll_open(context)).await?;
        Ok(AsyncStream(stream))
    }

    /// The underlying stream, for its addresses and counters.
    pub fn get_ref(&self) -> &TpaStream {
        &self.0
    }
}

impl TryFrom<TpaStream> for AsyncStream {
    type Error = io::Error;

    fn try_from(stream: TpaStream) -> io::Result<AsyncStream> {
        stream.set_nonblocking(true)?;
        Ok(AsyncStream(stream))
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let length = ready!(self.0.poll_read(context, into.initialize_unfilled()))?;
        into.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, from)
    }

    /// Like [`TpaStream::flush`]: does not wait until the data have arrived.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shutdown(Shutdown::Write)?;
        self.0.poll_finished(context)
    }
}

/// A listener for connections.
#[derive(Debug)]
pub struct AsyncListener(TpaListener);

impl AsyncListener {
    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaListener::accept`].
    pub async fn accept(&self) -> io::Result<(AsyncStream, SocketAddr)> {
        let (stream, peer) = poll_fn(|context| self.0.poll_accept(context)).await?;
        Ok((AsyncStream::try_from(stream)?, peer))
    }

    /// The underlying listener, for its address and counters.
    pub fn get_ref(&self) -> &TpaListener {
        &self.0
    }
}

impl From<TpaListener> for AsyncListener {
    fn from(listener: TpaListener) -> AsyncListener {
        AsyncListener(listener)
    }
}
