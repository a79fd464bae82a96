//! Tests TPA over UDP on tokio: many connections on one thread, in both directions at once.

use crate::common::{listener, noise, nowhere, quick};
use meshpace_live::tpa::asynchronous::{AsyncListener, AsyncStream};
use meshpace_live::tpa::{Options, TpaPort};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Runs `work` on a runtime without threads, network or timers.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn fifty_connections_on_one_thread_both_ways_at_once() {
    // Buffers of a few blocks, so that writers have to wait.
    let options = Options { send_buffer: 40_000, receive_buffer: 60_000, ..quick() };
    let listener = listener(options.clone());
    let address = listener.local_addr().unwrap();
    let port = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    run(async {
        let server = tokio::spawn(async move {
            let listener = AsyncListener::from(listener);
            let mut echoes = Vec::new();
            for _ in 0..50 {
                let (stream, _) = listener.accept().await.unwrap();
                echoes.push(tokio::spawn(async move {
                    let (mut from, mut to) = tokio::io::split(stream);
                    tokio::io::copy(&mut from, &mut to).await.unwrap();
                    to.shutdown().await.unwrap();
                }));
            }
            for echo in echoes {
                echo.await.unwrap();
            }
        });
        let mut clients = Vec::new();
        for seed in 0..50 {
            let port = port.clone();
            clients.push(tokio::spawn(async move {
                let stream = AsyncStream::connect(&port, address).await.unwrap();
                let (mut from, mut to) = tokio::io::split(stream);
                let said = noise(seed, 100_000 + seed as usize);
                let expected = said.clone();
                let writing = tokio::spawn(async move {
                    to.write_all(&said).await.unwrap();
                    to.shutdown().await.unwrap();
                });
                let mut got = Vec::new();
                from.read_to_end(&mut got).await.unwrap();
                assert!(got == expected, "stream {seed}: {} bytes", got.len());
                writing.await.unwrap();
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        server.await.unwrap();
    });
}

#[test]
fn what_cannot_be_opened_or_is_broken_off_is_an_error() {
    let listener = listener(quick());
    let address = listener.local_addr().unwrap();
    let port = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
    run(async {
        let error = AsyncStream::connect(&port, nowhere()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        let (client, accepted) = tokio::join!(AsyncStream::connect(&port, address), async {
            let listener = AsyncListener::from(listener);
            listener.accept().await
        });
        let (mut client, (server, _)) = (client.unwrap(), accepted.unwrap());
        server.get_ref().abort();
        let error = client.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    });
}
