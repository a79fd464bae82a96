//! Tests which cipher a connection gets, and that nobody between the two ends can change it.

use crate::common::{exchange, noise, quick};
use meshpace_core::Duration;
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_live::tpa::{Options, Security, TpaPort};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn with(security: &Security, aes: bool) -> Options {
    Options { security: security.clone(), aes, ..quick() }
}

#[test]
fn aes_is_taken_where_both_have_it() {
    let directory = tempfile::tempdir().unwrap();
    for (number, (opener, listener)) in
        [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate()
    {
        let log = directory.path().join(number.to_string());
        let keylog = Some(Arc::new(KeyLog::append(&log).unwrap()));
        let security = [Security::Opportunistic, Security::Shared([7; 32])][number % 2].clone();
        let server = TpaPort::with_options("127.0.0.1:0", with(&security, listener)).unwrap().listen(4).unwrap();
        let options = Options { keylog, ..with(&security, opener) };
        let client = TpaPort::with_options("127.0.0.1:0", options).unwrap();
        let client = client.connect(server.local_addr().unwrap()).unwrap();
        exchange(client, server.accept().unwrap().0, &noise(1, 30_000), b"in");
        let words = std::fs::read_to_string(&log).unwrap();
        let expected = if opener && listener { "TPA_KEY_AES" } else { "TPA_KEY" };
        let noted = || words.lines().filter(|line| !line.starts_with('#'));
        let same = noted().all(|line| line.split(' ').next() == Some(expected));
        assert!(same && noted().count() == 2, "{opener} {listener}: {words}");
    }
}

/// Forwards datagrams between a client and `server` until `done`. Messages that open connections
/// pass through `change`.
fn stand_between(relay: &UdpSocket, server: SocketAddr, done: &AtomicBool, change: impl Fn(&mut u8)) {
    let mut client = None;
    let mut buffer = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        let Ok((length, from)) = relay.recv_from(&mut buffer) else { continue };
        if from != server {
            client = Some(from);
        }
        if buffer[..8] == [0; 8] {
            change(&mut buffer[10]);
        }
        let to = if from == server { client } else { Some(server) };
        let _ = to.map(|to| relay.send_to(&buffer[..length], to));
    }
}

#[test]
fn whoever_takes_the_offer_out_under_way_gets_no_weaker_connection() {
    // The masks delete the chosen cipher, and the offered one together with the chosen one.
    for (mask, security) in [0xdf, 0xcf]
        .into_iter()
        .flat_map(|mask| [Security::Opportunistic, Security::Shared([7; 32])].map(|security| (mask, security)))
    {
        let server = TpaPort::with_options("127.0.0.1:0", with(&security, true)).unwrap().listen(4).unwrap();
        let address = server.local_addr().unwrap();
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        relay.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| stand_between(&relay, address, &done, |byte| *byte &= mask));
            let client = TpaPort::with_options("127.0.0.1:0", with(&security, true)).unwrap();
            let outcome = client.connect_timeout(relay.local_addr().unwrap(), Duration::from_millis(700));
            done.store(true, Ordering::Relaxed);
            let error = outcome.expect_err("no connection with another cipher");
            assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::ConnectionRefused), "{error}");
        });
        assert_eq!(server.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
