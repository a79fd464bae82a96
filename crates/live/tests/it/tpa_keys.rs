//! Tests of the peer's key: who is connected, and a listener that decides by the key.

use crate::common::{exchange, listener, ms, noise, quick};
use meshpace_core::Duration;
use meshpace_live::tpa::handshake::Kind;
use meshpace_live::tpa::{Admission, KeyList, Options, Security, TpaListener, TpaPort, TpaStream, keys};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key pair: private and public key.
type Pair = ([u8; 32], [u8; 32]);

fn pairs<const N: usize>() -> [Pair; N] {
    [(); N].map(|()| keys::generate().unwrap())
}

/// A listener with known keys that asks `admission`.
fn asking(own: [u8; 32], admission: Admission) -> TpaListener {
    let security = Security::Keys { own, peers: Vec::new() };
    listener(Options { security, admission: Some(admission), ..quick() })
}

/// Connects as the holder of a key. If a refusal were not believed, the call would take two minutes
/// and return another error.
fn connect(own: [u8; 32], hub: [u8; 32], to: SocketAddr) -> std::io::Result<TpaStream> {
    let security = Security::Keys { own, peers: vec![hub] };
    let options = Options { security, connect_timeout: Duration::from_secs(120), ..quick() };
    TpaPort::with_options("127.0.0.1:0", options)?.connect(to)
}

fn is_refused(result: std::io::Result<TpaStream>) -> bool {
    let error = result.unwrap_err();
    error.kind() == ErrorKind::ConnectionRefused
        && error.to_string().ends_with("refuses the connection: it does not admit this end's key")
}

#[test]
fn each_end_knows_whose_key_the_other_has() {
    let [(own, hub), (first, of_first), (second, of_second)] = pairs();
    let listener = asking(own, Admission::new(|_| true));
    let to = listener.local_addr().unwrap();
    for (private, public) in [(first, of_first), (second, of_second)] {
        let client = connect(private, hub, to).unwrap();
        let server = listener.accept().unwrap().0;
        assert_eq!((client.peer_key().unwrap(), server.peer_key().unwrap()), (Some(hub), Some(public)));
        exchange(client, server, &noise(1, 30_000), b"and back");
    }
    // If no peer has a key, none is returned.
    for security in [Security::Plain, Security::Opportunistic, Security::Shared([7; 32])] {
        let (client, server) = crate::common::pair(Options { security, ..quick() });
        assert_eq!((client.peer_key().unwrap(), server.peer_key().unwrap()), (None, None));
    }
    // A connection that is being opened has no peer yet whose identity is proved.
    let security = Security::Keys { own: first, peers: vec![hub] };
    let port = TpaPort::with_options("127.0.0.1:0", Options { security, ..quick() }).unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stream = port.connect_nonblocking(silent.local_addr().unwrap()).unwrap();
    assert_eq!(stream.peer_key().unwrap(), None);
}

#[test]
fn who_is_not_on_the_list_is_told_so_and_counted_and_the_list_can_change() {
    let [(own, hub), (first, of_first), (second, of_second)] = pairs();
    let list = KeyList::default();
    list.set([of_first]);
    let listener = asking(own, list.admission());
    let to = listener.local_addr().unwrap();
    assert!(is_refused(connect(second, hub, to)));
    assert_eq!(listener.counters().refused, 1);
    let client = connect(first, hub, to).unwrap();
    let server = listener.accept().unwrap().0;
    list.set([of_second]);
    assert!(is_refused(connect(first, hub, to)));
    assert_eq!(listener.counters().refused, 2);
    let other = connect(second, hub, to).unwrap();
    assert_eq!(listener.accept().unwrap().0.peer_key().unwrap(), Some(of_second));
    drop(other);
    // Open connections stay open.
    exchange(client, server, &noise(1, 30_000), b"and back");
    // A fixed list of keys gives the same answer.
    let fixed = Options { security: Security::Keys { own, peers: vec![of_first] }, ..quick() };
    let fixed = crate::common::listener(fixed);
    assert!(is_refused(connect(second, hub, fixed.local_addr().unwrap())));
    assert_eq!(fixed.counters().refused, 1);
}

#[test]
fn each_handshake_asks_once_and_a_key_that_is_nobodys_is_not_asked_about() {
    let [(own, hub), (first, of_first)] = pairs();
    let asked = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&asked);
    let admission = Admission::new(move |key| {
        counts.fetch_add(1, Ordering::Relaxed);
        *key == of_first
    });
    let listener = asking(own, admission.clone());
    for _ in 0..3 {
        drop(connect(first, hub, listener.local_addr().unwrap()).unwrap());
        drop(listener.accept().unwrap());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    // The admission decides about keys. It is an error if there are no known keys.
    let none = Options { admission: Some(admission), ..quick() };
    let error = TpaPort::with_options("127.0.0.1:0", none).unwrap_err();
    assert!(error.to_string().starts_with("admission: "), "{error}");
    assert!(Security::is_weak(&[0; 32]) && !Security::is_weak(&of_first));
}

/// A relay to `server` that replaces the kind of every acceptance and refusal by `kind`.
fn changing(server: SocketAddr, kind: Kind) -> SocketAddr {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = front.local_addr().unwrap();
    back.connect(server).unwrap();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(ms(20_000))).unwrap();
    }
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let (length, client) = front.recv_from(&mut buffer).unwrap();
        back.send(&buffer[..length]).unwrap();
        let (to, from) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok(length) = from.recv(&mut buffer) {
                let _ = to.send(&buffer[..length]);
            }
        });
        while let Ok(length) = back.recv(&mut buffer) {
            let opens = buffer[..8] == [0; 8];
            if opens && [Kind::Acceptance as u8, Kind::Refusal as u8].contains(&buffer[9]) {
                buffer[9] = kind as u8;
            }
            let _ = front.send_to(&buffer[..length], client);
        }
    });
    address
}

#[test]
fn nobody_on_the_way_makes_a_refusal_of_an_acceptance() {
    let [(own, hub), (first, of_first)] = pairs();
    let list = KeyList::default();
    list.set([of_first]);
    let listener = asking(own, list.admission());
    let by = changing(listener.local_addr().unwrap(), Kind::Refusal);
    let client = connect(first, hub, by).unwrap();
    exchange(client, listener.accept().unwrap().0, &noise(1, 30_000), b"and back");
}
