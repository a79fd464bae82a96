//! hyper's HTTP/1.1 server over TPA on tokio.

use crate::common::{listener, quick};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use meshpace_live::tpa::TpaPort;
use meshpace_live::tpa::asynchronous::{AsyncListener, AsyncStream};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// The bytes of a body that hyper sends, in one piece.
struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    type Data = io::Cursor<Vec<u8>>;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<http_body::Frame<Self::Data>>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(io::Cursor::new(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Answers a request with its path, and its body from the last byte to the first.
async fn reverse(request: Request<Incoming>) -> hyper::Result<Response<Whole>> {
    let path = request.uri().path().to_owned();
    let mut body = pin!(request.into_body());
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        bytes.extend(frame?.into_data().into_iter().flatten());
    }
    bytes.reverse();
    Ok(Response::new(Whole(Some([path.as_bytes(), &bytes].concat()))))
}

/// Reads an answer. Returns its first line and its body.
async fn answer(from: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> (String, Vec<u8>) {
    let (mut first, mut length) = (String::new(), None);
    from.read_line(&mut first).await.unwrap();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).await.unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = Some(value.trim().parse().unwrap());
        }
    }
    let mut body = vec![0; length.expect("a length")];
    from.read_exact(&mut body).await.unwrap();
    (first, body)
}

#[test]
fn hyper_answers_two_hundred_requests_on_one_connection() {
    let listener = listener(quick());
    let address = listener.local_addr().unwrap();
    let port = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let server = tokio::spawn(async move {
            let (stream, _) = AsyncListener::from(listener).accept().await.unwrap();
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(reverse)).await.unwrap();
        });
        let stream = AsyncStream::connect(&port, address).await.unwrap();
        let (from, mut to) = tokio::io::split(stream);
        let mut from = BufReader::new(from);
        for number in 0..200usize {
            let body: Vec<u8> = (0..100 * number).map(|at| (at % 251) as u8).collect();
            // Head and body are two writes.
            let head = format!("POST /{number} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
            to.write_all(head.as_bytes()).await.unwrap();
            to.write_all(&body).await.unwrap();
            let expected: Vec<u8> =
                format!("/{number}").into_bytes().into_iter().chain(body.into_iter().rev()).collect();
            let (first, got) = answer(&mut from).await;
            assert_eq!(first, "HTTP/1.1 200 OK\r\n");
            assert!(got == expected, "request {number}: {} bytes", got.len());
        }
        to.shutdown().await.unwrap();
        server.await.unwrap();
    });
}
