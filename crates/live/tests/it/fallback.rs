//! TPA where the peer has it, TCP where it has not: who wins, who is remembered, and for how long.
#![expect(clippy::disallowed_methods, reason = "memory fades with the clock")]

use crate::common::{listener, ms, noise, nowhere, quick};
use meshpace_core::Duration;
use meshpace_live::fallback::{Dialer, Race, Stream};
use meshpace_live::testbed::{Impairment, Relay};
use meshpace_live::tpa::{Options, TpaPort};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, UdpSocket};

/// A TCP that says everything again, and its address.
fn tcp_echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got).and_then(|_| stream.write_all(&got));
        }
    });
    address
}

/// An exchange over whatever it is; whether that is TPA.
fn exchange(mut stream: Stream) -> bool {
    let said = noise(1, 20_000);
    stream.write_all(&said).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == said, "{} bytes", got.len());
    matches!(stream, Stream::Tpa(_))
}

/// Requests for TPA that a socket which answers nothing has received since the last call.
fn requests(silent: &UdpSocket) -> usize {
    silent.set_nonblocking(true).unwrap();
    (0..).take_while(|_| silent.recv(&mut [0; 2048]).is_ok()).count()
}

#[test]
fn a_peer_with_tpa_gets_it_even_if_its_tcp_is_faster() {
    let echo = tcp_echo();
    // TPA over a path of 60 ms, in two round trips; TCP without any, to the same number.
    let slow = || Impairment { delay: Duration::from_millis(30), ..Impairment::default() };
    let tpa = listener(quick());
    let relay = Relay::new(tpa.local_addr().unwrap(), slow(), slow(), false).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = tpa.accept() {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got).and_then(|_| stream.write_all(&got));
        }
    });
    // A front that passes datagrams on, at the port that TCP has.
    let front = UdpSocket::bind(echo).unwrap();
    let (back, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), relay.address());
    back.connect(to).unwrap();
    let (there, answers) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    let (tell, client) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut buffer, mut told) = ([0; 65_536], false);
        while let Ok((length, from)) = there.recv_from(&mut buffer) {
            if !std::mem::replace(&mut told, true) {
                let _ = tell.send(from);
            }
            let _ = back.send(&buffer[..length]);
        }
    });
    std::thread::spawn(move || {
        let Ok(client) = client.recv() else { return };
        let mut buffer = [0; 65_536];
        while let Ok(length) = answers.recv(&mut buffer) {
            let _ = front.send_to(&buffer[..length], client);
        }
    });
    let race = Race { head_start: Duration::ZERO, patience: Duration::from_secs(60), ..Race::default() };
    let dialer = Dialer::new(quick(), race);
    assert!(exchange(dialer.connect(echo).unwrap()));
    assert!(exchange(dialer.connect(echo).unwrap()), "and again, by memory");
    drop(relay);
}

#[test]
fn a_peer_without_tpa_is_remembered_for_a_while() {
    let echo = tcp_echo();
    // Its firewall drops UDP.
    let silent = UdpSocket::bind(echo).unwrap();
    let memory = Duration::from_secs(2);
    let race = Race { head_start: Duration::from_millis(20), patience: Duration::from_millis(100), memory };
    let dialer = Dialer::new(quick(), race);
    assert!(!exchange(dialer.connect(echo).unwrap()));
    assert!(requests(&silent) > 0, "TPA was not tried");
    let remembered = std::time::Instant::now();
    assert!(!exchange(dialer.connect(echo).unwrap()));
    if remembered.elapsed() < ms(1500) {
        assert_eq!(requests(&silent), 0, "a peer that had none is asked again at once");
    }
    std::thread::sleep(ms(2100));
    requests(&silent);
    assert!(!exchange(dialer.connect(echo).unwrap()));
    assert!(requests(&silent) > 0, "it may have TPA by now");
    // Another one, whose memory is its own.
    assert!(!exchange(Dialer::new(quick(), race).connect(echo).unwrap()));
    assert!(requests(&silent) > 0);
}

#[test]
fn refused_at_once_or_changed_meanwhile() {
    // Nobody has the UDP port: the host says so, and no time is to pass before TCP, however long TPA may be alone.
    let echo = tcp_echo();
    let race = Race {
        head_start: Duration::from_secs(3600),
        patience: Duration::from_secs(3600),
        memory: Duration::from_secs(3600),
    };
    let dialer = Dialer::new(quick(), race);
    assert!(!exchange(dialer.connect(echo).unwrap()));
    // Neither: both reasons.
    let error = dialer.connect(nowhere()).unwrap_err().to_string();
    assert!(error.contains("neither TPA (") && error.contains("nor TCP ("), "{error}");
    // A peer that had TPA and lost it.
    let port = TpaPort::with_options(echo, Options::default()).unwrap();
    let tpa = port.listen(4).unwrap();
    let other = Dialer::new(quick(), race);
    let opened = other.connect(echo).unwrap();
    assert!(matches!(opened, Stream::Tpa(_)));
    drop((tpa.accept().unwrap(), opened));
    drop((tpa, port));
    let start = std::time::Instant::now();
    while UdpSocket::bind(echo).is_err() {
        assert!(start.elapsed() < ms(20_000), "the port is not given back");
        std::thread::sleep(ms(10));
    }
    assert!(!exchange(other.connect(echo).unwrap()));
}
