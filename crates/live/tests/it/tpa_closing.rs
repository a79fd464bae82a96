//! Tests that closing works as for kernel sockets: in any order, at the same time, over a lossy
//! link, and for calls that wait meanwhile.

use crate::common::{listener, ms, noise, pair, quick};
use meshpace_core::Duration;
use meshpace_live::Clock;
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::{Options, TpaPort, TpaStream};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

/// Time that closing takes, in seconds.
fn seconds_to_close(stream: TpaStream) -> f64 {
    let began = Clock.now();
    stream.close().unwrap();
    Clock.now().since(began).as_secs_f64()
}

#[test]
fn closing_does_not_wait_for_the_peer_to_close() {
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        let (mut client, mut server) = pair(Options::default());
        client.write_all(b"the last word").unwrap();
        server.read_exact(&mut [0; 13]).unwrap();
        took[0].push(seconds_to_close(client));
        // The peer, which closes later, still gets an answer.
        assert_eq!(server.read(&mut [0; 10]).unwrap(), 0);
        took[1].push(seconds_to_close(server));
    }
    // An earlier version waited for half a second. A busy machine delays some of the trials.
    for took in took {
        assert!(took.iter().any(|seconds| *seconds < 0.4), "{took:?}");
    }
}

#[test]
fn both_orders_and_both_at_once_end_well_over_a_link_that_loses() {
    let options = quick();
    let listener = listener(options.clone());
    let bad =
        |seed| Impairment { delay: Duration::from_millis(2), loss: Loss::Random(0.05), seed, ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), bad(1), bad(2), false).unwrap();
    let port = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    for round in 0..12 {
        let client = port.connect(relay.address()).unwrap();
        let server = listener.accept().unwrap().0;
        let said = noise(round, 20_000);
        for end in [&client, &server] {
            (&mut &*end).write_all(&said).unwrap();
            end.set_linger(ms(120_000)).unwrap();
        }
        // Each end closes after it has read everything. Otherwise the peer would be told that data
        // was lost.
        for end in [&client, &server] {
            let mut got = vec![0; said.len()];
            (&mut &*end).read_exact(&mut got).unwrap();
            assert!(got == said);
        }
        match round % 3 {
            0 => {
                client.close().unwrap();
                server.close().unwrap();
            }
            1 => {
                server.close().unwrap();
                client.close().unwrap();
            }
            _ => std::thread::scope(|scope| {
                let ends = [client, server].map(|end| scope.spawn(move || end.close()));
                ends.into_iter().for_each(|end| end.join().unwrap().unwrap());
            }),
        }
    }
}

#[test]
fn closing_here_wakes_who_reads_with_an_error_and_shutting_down_with_the_end() {
    let (client, _server) = pair(Options::default());
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| (&client).read(&mut [0; 10]));
        std::thread::park_timeout(ms(100));
        client.finish().unwrap();
        let error = reading.join().unwrap().unwrap_err();
        assert_eq!(meshpace_live::tpa::errno_of(&error), nix::libc::EBADF, "{error}");
    });
    let (client, _server) = pair(Options::default());
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| (&client).read(&mut [0; 10]));
        std::thread::park_timeout(ms(100));
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!(reading.join().unwrap().unwrap(), 0);
    });
}

#[test]
fn sending_takes_all_or_what_fits_in_time() {
    let (client, server) = pair(Options::default());
    client.set_write_timeout(Some(ms(200))).unwrap();
    let sent = client.send(&noise(1, 3_000_000)).unwrap();
    assert!(sent > 0 && sent < 3_000_000, "{sent}");
    assert_eq!(client.send(b"more").unwrap_err().kind(), ErrorKind::WouldBlock);
    client.set_write_timeout(None).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| std::io::copy(&mut &server, &mut std::io::sink()).unwrap());
        assert_eq!(client.send(&noise(2, 3_000_000)).unwrap(), 3_000_000);
        client.shutdown(Shutdown::Write).unwrap();
    });
}
