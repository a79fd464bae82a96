//! Tests that the datagrams of an abort have left the host when the call returns. The process may
//! end right then, and with it the thread of its connections.

use crate::common::{listener, ms};
use crate::puppet::{Puppet, plain};
use meshpace_core::Duration;
use meshpace_live::generator::{Carrier, tpa::Tpa};
use meshpace_live::tpa::Options;
use meshpace_live::tpa::framing::decode_plain;
use meshpace_live::tpa::handshake::{Kind, Opening};
use meshpace_transport::tpa::{Flags, Segment};
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;

/// Number of trials of each kind: in a single trial the sending thread may be faster than the one
/// that checks.
const ROUNDS: usize = 30;

/// True if a reset is among the datagrams that have already arrived.
fn has_reset(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2048];
    while let Ok(length) = socket.recv(&mut buffer) {
        if decode_plain(&buffer[..length]).is_some_and(|(_, segment, _)| segment.flags.has(Flags::RST)) {
            return true;
        }
    }
    false
}

#[test]
fn who_waits_for_the_reset_to_leave_may_end_the_process() {
    let listener = listener(plain());
    for round in 0..ROUNDS {
        let puppet = Puppet::new(listener.local_addr().unwrap()).open();
        let stream = listener.accept().unwrap().0;
        stream.abort_timeout(ms(20_000)).unwrap();
        assert!(has_reset(&puppet.socket), "round {round}");
        // Aborts a connection that has ended.
        stream.abort_timeout(ms(20_000)).unwrap();
    }
}

/// Accepts a connection by hand.
fn accept(server: &UdpSocket) {
    let mut buffer = [0; 2048];
    let (_, client) = server.recv_from(&mut buffer).unwrap();
    let (request, _) = Opening::decode(&buffer).unwrap();
    let flags = Flags::SYN.with(Flags::ACK);
    let segment = Segment { block: 7, ack_block: request.segment.block, window: 255, flags, ..Segment::default() };
    let acceptance = Opening { kind: Kind::Acceptance, acceptor: 9, segment, ..request };
    server.send_to(&acceptance.encode(&[], 0), client).unwrap();
    server.connect(client).unwrap();
}

#[test]
fn a_sender_whose_time_is_over_has_told_its_peer() {
    for round in 0..ROUNDS {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut carrier = Tpa::new(server.local_addr().unwrap(), plain_options()).unwrap();
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| accept(&server));
            let until = meshpace_live::Clock.now() + Duration::from_secs(20);
            carrier.open(until, &AtomicBool::new(false)).unwrap();
            accepting.join().unwrap();
        });
        carrier.write(&[1; 1000]).unwrap();
        carrier.abort();
        assert!(has_reset(&server), "round {round}");
    }
}

fn plain_options() -> Options {
    Options { fit_mtu: false, ..plain() }
}
