//! Measures throughput over the loopback and processor time per gigabyte: kernel TCP without and
//! with TLS, QUIC (quinn) and TPA over UDP, plain and encrypted.
//!
//! `cargo run --release -- [MEGABYTES] [PAIRS] [NAME]`; with NAME only the kinds whose name
//! contains it. Every run sends from one thread of this process to another, which counts the bytes.
//! Processor time is that of the process, kernel included. All kinds run once per pair, in
//! alternating order, so that other work of the machine affects all of them equally. The output has
//! medians, and the medians of each pair's ratios to the first kind, QUIC.

use meshpace_live::tpa::{Options, Runtime, Security, TpaPort};
use meshpace_transport::tpa::ack::Rule;
use nix::sys::resource::{UsageWho, getrusage};
use quinn::rustls;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

const CHUNK: usize = 64 << 10;

fn cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the kernel counts");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Rate in Gbit/s and processor seconds per GB.
fn measure(name: &str, bytes: u64, transfer: impl FnOnce(u64) -> u64) -> [f64; 2] {
    let (start, before) = (Instant::now(), cpu());
    let got = transfer(bytes);
    let (wall, used) = (start.elapsed().as_secs_f64(), cpu() - before);
    assert_eq!(got, bytes, "{name}: not everything arrived");
    let outcome = [bytes as f64 * 8e-9 / wall, used / (bytes as f64 / 1e9)];
    eprintln!("{name:44} {:8.2} Gbit/s {:8.2} CPU s/GB", outcome[0], outcome[1]);
    outcome
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn send(mut stream: impl Write, bytes: u64) {
    let chunk = vec![7u8; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(CHUNK as u64) as usize;
        stream.write_all(&chunk[..part]).expect("the receiver is there");
        left -= part as u64;
    }
}

fn receive(mut stream: impl Read) -> u64 {
    let mut chunk = vec![0; CHUNK];
    let mut got = 0;
    loop {
        match stream.read(&mut chunk).expect("the sender is there") {
            0 => return got,
            length => got += length as u64,
        }
    }
}

fn tcp(bytes: u64) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let sender = std::thread::spawn(move || send(TcpStream::connect(address).expect("it listens"), bytes));
    let got = receive(listener.accept().expect("it connects").0);
    sender.join().expect("no panic");
    got
}

/// TPA, with both ends on one thread or each on its own.
fn tpa(bytes: u64, options: Options, two: bool) -> u64 {
    let first = Runtime::start().expect("a thread");
    let second = if two { Runtime::start().expect("a thread") } else { first.clone() };
    let listener =
        TpaPort::on(&first, "127.0.0.1:0", options.clone()).expect("a free port").listen(1).expect("listens");
    let address = listener.local_addr().expect("bound");
    let sender = std::thread::spawn(move || {
        let stream =
            TpaPort::on(&second, "127.0.0.1:0", options).expect("a free port").connect(address).expect("it listens");
        send(&stream, bytes);
        stream.close().expect("all arrives");
    });
    let stream = listener.accept().expect("it connects").0;
    let got = receive(&stream);
    stream.close().expect("closed");
    sender.join().expect("no panic");
    got
}

fn options(security: Security, window: u8, segment: u32) -> Options {
    let mut options = Options { security, ..Options::default() };
    options.transport.congestion.window = window;
    options.transport.segment = segment;
    options.transport.ack = Rule::EveryWindow;
    options.send_buffer = 2 << 20;
    options.receive_buffer = 2 << 20;
    options
}

/// TLS 1.3 for both ends, with AES-256-GCM, which rustls prefers, or with ChaCha20-Poly1305.
fn tls(chacha: bool) -> (rustls::ServerConfig, rustls::ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = rustls::pki_types::CertificateDer::from(made.cert);
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut provider = rustls::crypto::ring::default_provider();
    if chacha {
        provider
            .cipher_suites
            .sort_by_key(|suite| suite.suite() != rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    let (provider, versions) = (Arc::new(provider), [&rustls::version::TLS13]);
    let server = rustls::ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions);
    let server = server.expect("TLS 1.3").with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into());
    let mut server = server.expect("usable");
    server.ignore_client_order = true;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let client = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
    (server, client.expect("TLS 1.3").with_root_certificates(roots).with_no_client_auth())
}

/// The kernel's TCP with TLS by rustls, AES-256-GCM.
fn tcp_with_tls(bytes: u64) -> u64 {
    let (mut server, client) = tls(false);
    // Nobody would read the tickets, and an end that closes with unread data resets the connection.
    server.send_tls13_tickets = 0;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let sender = std::thread::spawn(move || {
        let name = "localhost".try_into().expect("a name");
        let session = rustls::ClientConnection::new(Arc::new(client), name).expect("usable");
        let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(address).expect("it listens"));
        send(&mut stream, bytes);
        stream.conn.send_close_notify();
        stream.flush().expect("the receiver is there");
    });
    let session = rustls::ServerConnection::new(Arc::new(server)).expect("usable");
    let got = receive(rustls::StreamOwned::new(session, listener.accept().expect("it connects").0));
    sender.join().expect("no panic");
    got
}

/// QUIC.
fn quic(bytes: u64, chacha: bool) -> u64 {
    let (server, client) = tls(chacha);
    let server = quinn::crypto::rustls::QuicServerConfig::try_from(server).expect("usable");
    let server_config = quinn::ServerConfig::with_crypto(Arc::new(server));
    let client = quinn::crypto::rustls::QuicClientConfig::try_from(client).expect("usable");
    let client_config = quinn::ClientConfig::new(Arc::new(client));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (tell, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        runtime().block_on(async {
            let endpoint = quinn::Endpoint::server(server_config, "127.0.0.1:0".parse().expect("one")).expect("a port");
            tell.send(endpoint.local_addr().expect("bound")).expect("it waits");
            let connection = endpoint.accept().await.expect("one").await.expect("open");
            let mut stream = connection.accept_uni().await.expect("one");
            let mut got = 0;
            while let Some(chunk) = stream.read_chunk(CHUNK, true).await.expect("data") {
                got += chunk.bytes.len() as u64;
            }
            connection.close(0u32.into(), b"");
            endpoint.wait_idle().await;
            got
        })
    });
    let address = told.recv().expect("an address");
    runtime().block_on(async {
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().expect("one")).expect("a port");
        endpoint.set_default_client_config(client_config);
        let connection = endpoint.connect(address, "localhost").expect("tries").await.expect("open");
        let mut stream = connection.open_uni().await.expect("one");
        let chunk = vec![7u8; CHUNK];
        let mut left = bytes;
        while left > 0 {
            let part = left.min(CHUNK as u64) as usize;
            stream.write_all(&chunk[..part]).await.expect("the receiver is there");
            left -= part as u64;
        }
        stream.finish().expect("open");
        let _ = stream.stopped().await;
        connection.closed().await;
    });
    server.join().expect("no panic")
}

/// A kind of transport: its name, the divisor of the bytes that it sends, and the function that
/// sends them.
type Kind = (String, u64, Box<dyn Fn(u64) -> u64>);

fn kinds() -> Vec<Kind> {
    let mut kinds: Vec<Kind> = vec![
        ("QUIC (quinn), AES-GCM".into(), 1, Box::new(|bytes| quic(bytes, false))),
        ("kernel TCP".into(), 1, Box::new(tcp)),
    ];
    kinds.push(("kernel TCP with TLS (rustls), AES-GCM".into(), 1, Box::new(tcp_with_tls)));
    kinds.push(("QUIC (quinn), ChaCha20-Poly1305".into(), 1, Box::new(|bytes| quic(bytes, true))));
    for (window, segment) in [(12, 1460), (12, 8960), (3, 1460)] {
        for security in [Security::Opportunistic, Security::Plain] {
            let name = match security {
                Security::Plain => "plain",
                _ => "encrypted",
            };
            let part = if window == 3 { 5 } else { 1 };
            let options = options(security, window, segment);
            let run = move |bytes| tpa(bytes, options.clone(), true);
            kinds.push((format!("TPA* {name}, cwnd_max {window}, {segment} B"), part, Box::new(run)));
        }
    }
    kinds
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text: String| text.parse().expect("a number"));
    let (megabytes, pairs) = (number(200), number(5));
    let name = arguments.next().unwrap_or_default();
    let mut kinds = kinds();
    kinds.retain(|kind| kind.0.contains(&name));
    let mut outcomes = vec![Vec::new(); kinds.len()];
    for pair in 0..pairs {
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        if pair % 2 == 1 {
            order.reverse();
        }
        for kind in order {
            let (name, part, transfer) = &kinds[kind];
            outcomes[kind].push(measure(name, megabytes * 1_000_000 / part, transfer));
        }
    }
    println!(
        "{megabytes} MB, {pairs} pairs; medians (lowest to highest), and those of the ratios to the first of each pair"
    );
    for ((name, ..), outcome) in kinds.iter().zip(&outcomes) {
        let own = |index: usize| spread(outcome.iter().map(|outcome| outcome[index]).collect());
        let ratio = |index: usize| {
            spread(outcome.iter().zip(&outcomes[0]).map(|(own, first)| own[index] / first[index]).collect())
        };
        println!("{name:36} | {} Gbit/s | {} | {} CPU s/GB | {}", own(0), ratio(0), own(1), ratio(1));
    }
}

/// Median, lowest and highest value.
fn spread(values: Vec<f64>) -> String {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({lowest:.2} to {highest:.2})", median(values))
}
