//! Time of questions and answers over loopback, encrypted: QUIC (quinn) and TPA over UDP.
//!
//! `cargo run --release --bin latency -- [RUNS] [QUESTIONS] [NAME=PROGRAM...]`. A question is 8 bytes in
//! one write, 8 bytes in each of two writes, or a request of HTTP/1.1; the answer has 8 bytes, or 2
//! bytes of body. Each run opens a connection and asks one question after the other. All kinds run in
//! turn, so that the load of the machine meets all of them alike. The table has the median of the runs,
//! and the least and greatest, in ms per question.
//!
//! quinn and one kind of TPA run on tokio, and their HTTP is hyper's, at both ends; another kind of TPA
//! has two threads that wait. A PROGRAM (`clients/`) is called with `one`, `two` or `http` and the number
//! of questions, prints the milliseconds per question, and is left out where it prints nothing.

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use meshpace_live::tpa::asynchronous::{AsyncListener, AsyncStream};
use meshpace_live::tpa::{Options, TpaPort};
use quinn::rustls::RootCertStore;
use quinn::rustls::crypto::ring::default_provider;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, join};

/// Both directions of a connection.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for T {}

type Stream = Box<dyn Duplex>;

/// What is asked.
#[derive(Clone, Copy, PartialEq)]
enum Question {
    OneWrite,
    TwoWrites,
    Http,
}

impl Question {
    const ALL: [Question; 3] = [Question::OneWrite, Question::TwoWrites, Question::Http];

    fn word(self) -> &'static str {
        match self {
            Question::OneWrite => "one",
            Question::TwoWrites => "two",
            Question::Http => "http",
        }
    }

    fn writes(self) -> usize {
        if self == Question::TwoWrites { 2 } else { 1 }
    }
}

/// Owner of the ports of a pair of streams while the streams are used.
type Keep = Box<dyn std::any::Any + Send>;

fn port() -> TpaPort {
    TpaPort::with_options("127.0.0.1:0", Options::default()).expect("a free port")
}

async fn tpa() -> (Stream, Stream, Keep) {
    let listener = AsyncListener::from(port().listen(1).expect("listens"));
    let address = listener.get_ref().local_addr().expect("bound");
    let client = port();
    let (client, server) = tokio::join!(AsyncStream::connect(&client, address), listener.accept());
    (Box::new(client.expect("it listens")), Box::new(server.expect("it connects").0), Box::new(listener))
}

async fn quic() -> (Stream, Stream, Keep) {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let (certificate, secret) = (key.cert.der().clone(), PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], secret.into()).expect("a key");
    let server = quinn::Endpoint::server(config, "127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = server.local_addr().expect("bound");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let mut client = quinn::Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    client.set_default_client_config(quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots"));
    let connecting = client.connect(address, "localhost").expect("a name");
    let accepting = async { server.accept().await.expect("it connects").await.expect("it connects") };
    let (near, far) = tokio::join!(async { connecting.await.expect("it listens") }, accepting);
    let (mut send, receive) = near.open_bi().await.expect("a stream");
    // A peer learns of a stream when its first byte arrives.
    send.write_all(b"!").await.expect("the peer is there");
    let (answers, mut questions) = far.accept_bi().await.expect("a stream");
    questions.read_exact(&mut [0; 1]).await.expect("the peer is there");
    let keep = Box::new((server, client, near, far));
    (Box::new(join(receive, send)), Box::new(join(questions, answers)), keep)
}

/// Milliseconds per question since `start`.
fn each(start: Instant, count: u32) -> f64 {
    start.elapsed().as_secs_f64() * 1e3 / f64::from(count)
}

/// Asks `count` questions in turn. Returns the milliseconds per question.
async fn ask(mut client: Stream, mut server: Stream, question: Question, count: u32) -> f64 {
    let answers = tokio::spawn(async move {
        let mut asked = vec![0; 8 * question.writes()];
        while server.read_exact(&mut asked).await.is_ok() {
            server.write_all(b"answered").await.expect("the peer is there");
        }
    });
    let start = Instant::now();
    for _ in 0..count {
        for _ in 0..question.writes() {
            client.write_all(b"question").await.expect("the peer is there");
        }
        client.read_exact(&mut [0; 8]).await.expect("the peer is there");
    }
    let took = each(start, count);
    answers.abort();
    took
}

/// The same for requests of HTTP.
async fn request(client: Stream, server: Stream, count: u32) -> f64 {
    let answer = |_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("ok")))) };
    let serving = tokio::spawn(async move {
        let builder = hyper::server::conn::http1::Builder::new();
        let _ = builder.serve_connection(TokioIo::new(server), service_fn(answer)).await;
    });
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(client)).await.expect("the peer is there");
    let carrying = tokio::spawn(connection);
    let start = Instant::now();
    for _ in 0..count {
        sender.ready().await.expect("the peer is there");
        let request = Request::get("/").header("host", "x").body(Empty::<Bytes>::new()).expect("a request");
        let response = sender.send_request(request).await.expect("an answer");
        let body = response.into_body().collect().await.expect("an answer").to_bytes();
        assert_eq!(&body[..], b"ok");
    }
    let took = each(start, count);
    carrying.abort();
    serving.abort();
    took
}

async fn on_tokio((client, server, keep): (Stream, Stream, Keep), question: Question, count: u32) -> Option<f64> {
    let took = match question {
        Question::Http => request(client, server, count).await,
        _ => ask(client, server, question, count).await,
    };
    drop(keep);
    Some(took)
}

/// TPA with two threads that wait. There is no HTTP for these.
fn on_threads(question: Question, count: u32) -> Option<f64> {
    if question == Question::Http {
        return None;
    }
    let listener = port().listen(1).expect("listens");
    let address = listener.local_addr().expect("bound");
    let answers = std::thread::spawn(move || {
        let mut server = listener.accept().expect("it connects").0;
        let mut asked = vec![0; 8 * question.writes()];
        while server.read_exact(&mut asked).is_ok() {
            server.write_all(b"answered").expect("the peer is there");
        }
    });
    let mut client = port().connect(address).expect("it listens");
    let start = Instant::now();
    for _ in 0..count {
        for _ in 0..question.writes() {
            client.write_all(b"question").expect("the peer is there");
        }
        client.read_exact(&mut [0; 8]).expect("the peer is there");
    }
    let took = each(start, count);
    client.close().expect("the peer is there");
    answers.join().expect("it ends with the connection");
    Some(took)
}

fn by_program(command: &str, question: Question, count: u32) -> Option<f64> {
    let mut words = command.split_whitespace();
    let mut program = Command::new(words.next().expect("a program"));
    let output = program.args(words).args([question.word(), &count.to_string()]).output().expect(command);
    let said = String::from_utf8(output.stdout).expect("a number");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    (!said.trim().is_empty()).then(|| said.trim().parse().expect("a number"))
}

#[tokio::main]
async fn main() {
    let (programs, numbers): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.contains('='));
    let mut numbers = numbers.iter().map(|argument| argument.parse::<u32>().expect("a number"));
    let (runs, count) = (numbers.next().unwrap_or(7), numbers.next().unwrap_or(200));
    let programs: Vec<_> = programs.iter().map(|program| program.split_once('=').expect("NAME=PROGRAM")).collect();
    let built_in = ["quinn, tokio", "TPA, tokio", "TPA, threads"];
    default_provider().install_default().expect("nobody else did");
    for question in Question::ALL {
        let mut took = vec![Vec::new(); built_in.len() + programs.len()];
        for _ in 0..runs {
            for (kind, took) in took.iter_mut().enumerate() {
                took.extend(match kind {
                    0 => on_tokio(quic().await, question, count).await,
                    1 => on_tokio(tpa().await, question, count).await,
                    2 => tokio::task::block_in_place(|| on_threads(question, count)),
                    other => {
                        let program = programs[other - built_in.len()].1;
                        tokio::task::block_in_place(|| by_program(program, question, count))
                    }
                });
            }
        }
        let names = built_in.iter().copied().chain(programs.iter().map(|program| program.0));
        for (name, mut took) in names.zip(took).filter(|(_, took)| !took.is_empty()) {
            took.sort_by(f64::total_cmp);
            let (least, median, most) = (took[0], took[took.len() / 2], took[took.len() - 1]);
            println!("{:4} | {name:12} | {median:.3} ms ({least:.3} to {most:.3})", question.word());
        }
    }
}
