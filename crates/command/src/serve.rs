//! A small HTTP server for one page, on one thread.
//!
//! Clients may be hostile. Each client gets only a bounded share of memory, time and connections,
//! and none can block another. hyper does the parsing, framing and writing.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, ORIGIN, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::convert::Infallible;
use std::fs::File;
use std::future::ready;
use std::io::{self, Read};
use std::net::{IpAddr, TcpListener};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, LocalSet, yield_now};
use tokio::time::{Instant, sleep, timeout_at};

/// Longest head of a request, in bytes. Those of the page are below 1 kB; hyper requires at least 8
/// KiB.
const LONGEST_HEAD: usize = 16 << 10;
/// Largest number of headers in a request. Browsers send about fifteen.
const MOST_HEADERS: usize = 64;
/// Time in which a client has to send the whole head of its request.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time in which a client has to accept the next piece of its response. A slow client still gets a
/// large response.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// Largest piece of a response, in bytes.
const PIECE: usize = 64 << 10;
/// Largest number of open connections. A browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// Pause when the system has no descriptors for another connection.
const AGAIN: Duration = Duration::from_millis(50);

/// Body of a response: bytes in memory, or the next bytes of a file.
pub enum Content {
    /// Bytes in memory.
    Whole(Bytes),
    /// Part of a file: the file, and the number of bytes from its current position.
    Part(File, u64),
}

/// Serves until the process ends. `answer` gets only requests that have no body, that name this
/// machine by an address or as `localhost`, and that do not come from another page.
///
/// # Errors
/// Returns the error of the system if the event loop cannot be set up.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&Request<Incoming>) -> Response<Content> + 'static,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let is_loopback = listener.local_addr()?.ip().is_loopback();
    run(answer, is_loopback, async move |seats, answer| {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            seats.next(listener.accept().await.map(|(stream, _)| stream), &answer).await;
        }
    })
}

/// Serves like [`serve`], but at a Unix socket, whose permissions decide who may connect.
///
/// # Errors
/// As for [`serve`].
#[cfg(unix)]
pub fn serve_unix(
    listener: std::os::unix::net::UnixListener,
    answer: impl Fn(&Request<Incoming>) -> Response<Content> + 'static,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    run(answer, false, async move |seats, answer| {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        loop {
            seats.next(listener.accept().await.map(|(stream, _)| stream), &answer).await;
        }
    })
}

/// Runs an event loop in which `answer` gets the requests that are not refused.
fn run<A: Fn(&Request<Incoming>) -> Response<Content> + 'static>(
    answer: A,
    is_loopback: bool,
    listen: impl AsyncFnOnce(&mut Seats, Answer) -> io::Result<Infallible>,
) -> io::Result<Infallible> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let answer = guarded(answer, is_loopback);
    LocalSet::new().block_on(&runtime, async move { listen(&mut Seats::default(), answer).await })
}

/// Wraps `answer` so that it gets only requests that are not refused.
pub fn guarded(answer: impl Fn(&Request<Incoming>) -> Response<Content> + 'static, is_loopback: bool) -> Answer {
    Rc::new(move |request| match refusal(request, is_loopback) {
        Some((status, why)) => short(status, why),
        None => answer(request),
    })
}

/// Function that answers a request.
pub type Answer = Rc<dyn Fn(&Request<Incoming>) -> Response<Content>>;

/// Creates a response of one line of text.
pub fn short(status: StatusCode, line: &'static str) -> Response<Content> {
    let mut response = Response::new(Content::Whole(Bytes::from_static(line.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Status and reason if a request is refused before `answer` gets it.
fn refusal(request: &Request<Incoming>, is_loopback: bool) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let has_body = headers.get_all(CONTENT_LENGTH).iter().any(|length| length != "0");
    if has_body || headers.contains_key(TRANSFER_ENCODING) {
        return Some((StatusCode::PAYLOAD_TOO_LARGE, "no request here has a body\n"));
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // A foreign name that a name server resolves to this machine would give the foreign site's
    // pages the same origin as this server (DNS rebinding).
    if is_loopback && !host.is_some_and(is_this_machine) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "not here\n"));
    }
    let own = host.map(|host| format!("http://{host}"));
    let is_foreign = headers.get(ORIGIN).is_some_and(|origin| own.is_none_or(|own| origin != own.as_str()));
    is_foreign.then_some((StatusCode::FORBIDDEN, "not for other pages\n"))
}

/// True if a `Host` header names a machine without help of a name server. The port may differ, for
/// example behind a tunnel.
fn is_this_machine(host: &str) -> bool {
    let end = host.rfind(':').filter(|&colon| host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let name = &host[..end.unwrap_or(host.len())];
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// Open connections, oldest first.
#[derive(Default)]
struct Seats(Vec<Seat>);

struct Seat {
    /// True if the whole head of the connection's request has arrived.
    has_asked: Rc<Cell<bool>>,
    task: AbortHandle,
}

impl Seats {
    /// Processes the result of waiting for a client.
    async fn next(&mut self, client: io::Result<impl AsyncRead + AsyncWrite + Unpin + 'static>, answer: &Answer) {
        match client {
            Ok(stream) => self.take(stream, Rc::clone(answer)),
            // The system has no descriptors left, or the client has disconnected already.
            Err(_) => sleep(AGAIN).await,
        }
        // Connections with a request are served before the next one is accepted.
        yield_now().await;
    }

    /// Serves a connection. If too many are open, the oldest one without a request is closed. If
    /// all have a request, the new one is closed.
    fn take(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static, answer: Answer) {
        self.0.retain(|seat| !seat.task.is_finished());
        if self.0.len() >= MOST_CONNECTIONS {
            let Some(silent) = self.0.iter().position(|seat| !seat.has_asked.get()) else { return };
            self.0.remove(silent).task.abort();
        }
        let has_asked = Rc::new(Cell::new(false));
        let task = tokio::task::spawn_local(attend(stream, answer, Rc::clone(&has_asked))).abort_handle();
        self.0.push(Seat { has_asked, task });
    }
}

/// Answers the single request of a connection, as long as its client makes progress in time.
pub async fn attend(stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer, has_asked: Rc<Cell<bool>>) {
    let until = Rc::new(Cell::new(Instant::now() + HEAD_TIME));
    let service = service_fn(|request| {
        has_asked.set(true);
        let pieces = |content| Pieces { content, until: Rc::clone(&until) };
        ready(Ok::<_, Infallible>(answer(&request).map(pieces)))
    });
    // Without a second request, nothing has to be read after the first one: neither a body nor data
    // that a client sends in advance.
    let connection = http1::Builder::new()
        .keep_alive(false)
        .title_case_headers(true)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A client that disconnects is not an error.
    while timeout_at(until.get(), connection.as_mut()).await.is_err() && Instant::now() < until.get() {}
}

/// A response being sent. A client that accepts a piece gets time for the next one.
struct Pieces {
    content: Content,
    until: Rc<Cell<Instant>>,
}

impl Pieces {
    /// Number of bytes not sent yet.
    fn left(&self) -> u64 {
        match &self.content {
            Content::Whole(rest) => rest.len() as u64,
            Content::Part(_, left) => *left,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.until.set(Instant::now() + PIECE_TIME);
        let length = self.left().min(PIECE as u64) as usize;
        if length == 0 {
            return Poll::Ready(None);
        }
        let piece = match &mut self.content {
            Content::Whole(rest) => Ok(rest.split_to(length)),
            Content::Part(file, left) => piece_of(file, length).inspect(|piece| *left -= piece.len() as u64),
        };
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

/// Reads at least one byte of a file and at most `length`. Fails at the end of the file, because
/// the response has announced more bytes.
fn piece_of(file: &mut File, length: usize) -> io::Result<Bytes> {
    let mut piece = vec![0; length];
    let got = file.read(&mut piece)?;
    piece.truncate(got);
    if got == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(piece.into()) }
}

#[cfg(test)]
mod tests {
    use super::is_this_machine;

    #[test]
    fn only_an_address_or_localhost_names_this_machine() {
        for host in ["127.0.0.1:8000", "127.0.0.1", "localhost:1", "LocalHost", "[::1]:8000", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        let foreign = [
            "",
            ":80",
            "example.org",
            "example.org:8000",
            "127.0.0.1.example.org:8000",
            "localhost.example.org",
            "localhost:80a",
        ];
        for host in foreign {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
