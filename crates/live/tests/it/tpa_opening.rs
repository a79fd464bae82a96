//! Tests that segments fit the path, when the handshake loses long packets, all packets, or both.

use crate::common::{exchange, listener, noise, quick};
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::{Options, TpaPort};

/// UDP payload on paths with an MTU of 1500, 1280 and 576 bytes.
const LONG: usize = 1500 - 28;
const MIDDLE: usize = 1280 - 28;
const SHORT: usize = 576 - 28;

/// Options with segments for an MTU of 1500 bytes, as they would be without the loopback's large
/// MTU.
fn options() -> Options {
    let mut options = quick();
    options.transport.segment = LONG as u32 - 44;
    options
}

/// Opens a connection over a path that applies `there` to the opener's packets. Returns the longest
/// datagram of the transfer that follows.
fn longest(there: Impairment) -> usize {
    let listener = listener(options());
    let relay = Relay::new(listener.local_addr().unwrap(), there, Impairment::default(), true).unwrap();
    let client = TpaPort::with_options("127.0.0.1:0", options()).unwrap().connect(relay.address()).unwrap();
    let server = listener.accept().unwrap().0;
    relay.take_record();
    exchange(client, server, &noise(1, 60_000), &noise(2, 60_000));
    let passed = relay.take_record();
    passed.iter().filter(|passed| passed.copies > 0).map(|passed| passed.bytes.len()).max().unwrap()
}

#[test]
fn where_long_packets_vanish_segments_are_as_long_as_passes() {
    for passes in [MIDDLE, SHORT] {
        assert_eq!(longest(Impairment { largest: passes, ..Impairment::default() }), passes);
    }
}

#[test]
fn packets_lost_whatever_their_length_do_not_make_segments_shorter() {
    // Packets by their order: 0 is the request for a cookie, 1 the first padded request. Padded
    // requests and their short escorts follow in turn.
    for lost in [&[1, 2, 3, 4, 5, 6][..], &[1, 2, 4], &[1, 2, 3, 4, 5, 7]] {
        let loss = Loss::Indices(lost.iter().copied().collect());
        assert_eq!(longest(Impairment { loss, ..Impairment::default() }), LONG, "{lost:?}");
    }
}
