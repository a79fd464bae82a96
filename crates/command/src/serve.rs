//! A small HTTP server for one page, on one thread.
//!
//! Whoever can connect may be hostile: no client gets more than a bounded share of memory, time and connections, and none stops another.
//! Parsing, framing and writing are hyper's.

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

/// The longest head of a request, bytes. The page's own are below 1 kB; hyper wants 8 KiB or more.
const LONGEST_HEAD: usize = 16 << 10;
/// The most headers of a request. Browsers send some fifteen.
const MOST_HEADERS: usize = 64;
/// In this time a client has to send the whole head of its request.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// In this time a client has to take the next piece of its answer. A slow one gets a large answer all the same.
const PIECE_TIME: Duration = Duration::from_secs(30);
/// The largest piece of an answer, bytes.
const PIECE: usize = 64 << 10;
/// Connections at a time. A browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// Time to wait when the system has no descriptors for another connection.
const AGAIN: Duration = Duration::from_millis(50);

/// Body of an answer: bytes in memory, or the next bytes of a file.
pub enum Content {
    /// In memory.
    Whole(Bytes),
    /// As many bytes of a file as the second field says, from where it stands.
    Part(File, u64),
}

/// Serves until the process ends. `answer` gets requests without a body that name this machine by an address or as `localhost`,
/// and come from no other page.
///
/// # Errors
/// The system's, if the event loop cannot be set up.
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

/// The same at a Unix socket, whose permissions say who may ask.
///
/// # Errors
/// Those of [`serve`].
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

/// Runs an event loop with what answers requests that are not refused.
fn run<A: Fn(&Request<Incoming>) -> Response<Content> + 'static>(
    answer: A,
    is_loopback: bool,
    listen: impl AsyncFnOnce(&mut Seats, Answer) -> io::Result<Infallible>,
) -> io::Result<Infallible> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let answer = guarded(answer, is_loopback);
    LocalSet::new().block_on(&runtime, async move { listen(&mut Seats::default(), answer).await })
}

/// What answers requests that are not refused, and refuses the others.
pub fn guarded(answer: impl Fn(&Request<Incoming>) -> Response<Content> + 'static, is_loopback: bool) -> Answer {
    Rc::new(move |request| match refusal(request, is_loopback) {
        Some((status, why)) => short(status, why),
        None => answer(request),
    })
}

/// Function that answers a request.
pub type Answer = Rc<dyn Fn(&Request<Incoming>) -> Response<Content>>;

/// An answer of one line.
pub fn short(status: StatusCode, line: &'static str) -> Response<Content> {
    let mut response = Response::new(Content::Whole(Bytes::from_static(line.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Why a request is refused before anybody looks at what it asks for.
fn refusal(request: &Request<Incoming>, is_loopback: bool) -> Option<(StatusCode, &'static str)> {
    let headers = request.headers();
    let has_body = headers.get_all(CONTENT_LENGTH).iter().any(|length| length != "0");
    if has_body || headers.contains_key(TRANSFER_ENCODING) {
        return Some((StatusCode::PAYLOAD_TOO_LARGE, "no request here has a body\n"));
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // A name that somebody else's server resolves to this machine would make its pages of one origin with this one.
    if is_loopback && !host.is_some_and(is_this_machine) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "not here\n"));
    }
    let own = host.map(|host| format!("http://{host}"));
    let is_foreign = headers.get(ORIGIN).is_some_and(|origin| own.is_none_or(|own| origin != own.as_str()));
    is_foreign.then_some((StatusCode::FORBIDDEN, "not for other pages\n"))
}

/// True if a `Host` names a machine in a way that no name server has a part in. The port may be another one, of a tunnel.
fn is_this_machine(host: &str) -> bool {
    let end = host.rfind(':').filter(|&colon| host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let name = &host[..end.unwrap_or(host.len())];
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// The connections that are open, oldest first.
#[derive(Default)]
struct Seats(Vec<Seat>);

struct Seat {
    /// True if the whole head of its request is there.
    has_asked: Rc<Cell<bool>>,
    task: AbortHandle,
}

impl Seats {
    /// Handles the result of waiting for a client.
    async fn next(&mut self, client: io::Result<impl AsyncRead + AsyncWrite + Unpin + 'static>, answer: &Answer) {
        match client {
            Ok(stream) => self.take(stream, Rc::clone(answer)),
            // No descriptors are left, or the client is gone already.
            Err(_) => sleep(AGAIN).await,
        }
        // Whoever has asked is heard before the next one comes.
        yield_now().await;
    }

    /// Serves a connection. If there are too many, the oldest of those that have not asked for anything makes room, or else the
    /// new one is closed.
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

/// Answers the one request of a connection, as long as its client comes on.
pub async fn attend(stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer, has_asked: Rc<Cell<bool>>) {
    let until = Rc::new(Cell::new(Instant::now() + HEAD_TIME));
    let service = service_fn(|request| {
        has_asked.set(true);
        let pieces = |content| Pieces { content, until: Rc::clone(&until) };
        ready(Ok::<_, Infallible>(answer(&request).map(pieces)))
    });
    // Without a second request there is nothing to be read after the first, be it a body or what a client sends in advance.
    let connection = http1::Builder::new()
        .keep_alive(false)
        .title_case_headers(true)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A client that has gone away is no failure.
    while timeout_at(until.get(), connection.as_mut()).await.is_err() && Instant::now() < until.get() {}
}

/// An answer on its way. Whoever takes a piece gets time for the next.
struct Pieces {
    content: Content,
    until: Rc<Cell<Instant>>,
}

impl Pieces {
    /// Bytes that are left.
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

/// At least one byte of a file and at most `length`. An error if there is none: the length of the answer was told before.
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
