//! When the FIN leaves, in virtual time over 30 ms each way: behind the acknowledgement of the last block, or ahead of it.

use crate::tpa_common::{Net, ms};
use meshpace_core::{Duration, Time};
use meshpace_transport::Arrival;
use meshpace_transport::flags::Flags;
use meshpace_transport::tpa::{Config, End, Segment, State, ack, names};

/// As on sockets, where nobody closes for the application.
fn config(fin_follows: bool) -> Config {
    let plain = names::plain(2, ack::Rule::EveryOther);
    Config { ack_block_end: true, waits_to_fill: false, close_with_peer: false, fin_follows, ..plain }
}

fn deliver(_: Time, _: usize, _: &Segment) -> Vec<Duration> {
    vec![Duration::ZERO]
}

/// Drops the first segment of the first end for which `chosen` holds, and no other.
fn dropping_first(chosen: impl Fn(&Segment) -> bool) -> impl FnMut(Time, usize, &Segment) -> Vec<Duration> {
    let mut dropped = false;
    move |_, from, segment| {
        if from == 0 && !dropped && chosen(segment) {
            dropped = true;
            return vec![];
        }
        vec![Duration::ZERO]
    }
}

/// Runs a connection that is idle and open when its first end writes `bytes` at 1000 ms and closes
/// `after` milliseconds later; `fate` decides about its segments. Returns two times after the close,
/// in ms: when the ACK of the FIN arrives, and when each copy of the FIN was sent.
fn closed_after(
    config: &Config,
    (bytes, after): (u64, u64),
    fate: &mut dyn FnMut(Time, usize, &Segment) -> Vec<Duration>,
) -> (u64, Vec<u64>) {
    let mut net = Net::new(config, Duration::from_millis(30));
    net.ends[0].connection.open(Time::ZERO);
    net.drive(ms(1000), &mut deliver);
    net.record.clear();
    net.write(0, bytes);
    net.drive(ms(1000 + after), fate);
    net.now = ms(1000 + after);
    net.ends[0].connection.close(net.now);
    while !net.ends[0].connection.sender().is_finished() {
        assert!(net.step(ms(60_000), fate), "it never finishes");
    }
    let since = |at: Time| at.0 / 1_000_000 - 1000 - after;
    let finished = since(net.now);
    // The other end closes, too, and both are done.
    net.ends[1].connection.close(net.now);
    net.drive(ms(120_000), fate);
    net.assert_complete();
    let fins = net.record.iter().filter(|line| line.1 == 0 && line.2.flags.has(Flags::FIN));
    (finished, fins.map(|line| since(line.0)).collect())
}

#[test]
fn closing_after_fresh_data_takes_one_round_trip() {
    assert_eq!(closed_after(&config(false), (100, 0), &mut deliver), (120, vec![60]));
    assert_eq!(closed_after(&config(true), (100, 0), &mut deliver), (60, vec![0]));
    // Closed while the block is in flight.
    assert_eq!(closed_after(&config(true), (100, 20), &mut deliver), (60, vec![0]));
    // Three segments in a window of two: the FIN follows the last one.
    assert_eq!(closed_after(&config(true), (3000, 0), &mut deliver), (120, vec![60]));
    // Nothing in flight: the FIN leaves at once by either rule.
    for follows in [false, true] {
        assert_eq!(closed_after(&config(follows), (100, 500), &mut deliver), (60, vec![0]));
    }
}

#[test]
fn a_copy_that_is_lost_or_comes_before_its_block_is_repeated() {
    // Lost: its own timer repeats it.
    let (finished, fins) =
        closed_after(&config(true), (100, 0), &mut dropping_first(|segment| segment.flags.has(Flags::FIN)));
    assert_eq!((fins.len(), fins[0]), (2, 0));
    assert_eq!(finished, fins[1] + 60);
    // The block is lost, so that the receiver drops the copy: it is repeated when the block has been repaired.
    let (finished, fins) = closed_after(&config(true), (100, 0), &mut dropping_first(|segment| segment.payload > 0));
    assert!(fins.len() >= 2, "{fins:?}");
    assert_eq!(finished, fins[fins.len() - 1] + 60);
}

#[test]
fn a_peer_that_has_block_and_fin_is_believed_although_its_acks_were_lost() {
    for bytes in [100, 3000, 17520] {
        let mut fate = |now: Time, from: usize, _: &Segment| match from {
            1 if now > ms(1000) && now < ms(1500) => vec![],
            _ => vec![Duration::ZERO],
        };
        let (finished, _) = closed_after(&config(true), (bytes, 0), &mut fate);
        assert!((500..30_000).contains(&finished), "{bytes} bytes: {finished} ms");
    }
}

#[test]
fn an_ack_of_a_copy_that_cannot_have_arrived_ends_the_connection() {
    // The block of the FIN skips the transmissions 1 to 5. The copy is number 6; a peer that has not
    // received it names a skipped number, or a later one that was not sent yet.
    let open = State::Established;
    let deceived = State::Ended(End::Deceived);
    for (ack_tx, expected, acknowledged) in
        [(6, open, 100), (7, open, 0), (1, deceived, 0), (5, deceived, 0), (0, deceived, 0)]
    {
        let mut net = Net::new(&config(true), Duration::from_millis(30));
        net.ends[0].connection.open(Time::ZERO);
        net.drive(ms(1000), &mut deliver);
        net.ends[0].connection.skip_next(|| 5);
        net.write(0, 100);
        net.ends[0].connection.close(net.now);
        net.drive(ms(1001), &mut deliver);
        let fin = net.record.iter().find(|line| line.1 == 0 && line.2.flags.has(Flags::FIN)).expect("sent ahead");
        assert_eq!((fin.2.block, fin.2.tx), (1, 6));
        let ack = Segment { ack_block: 1, ack_places: 1, ack_tx, window: 9, flags: Flags::ACK, ..Segment::default() };
        let connection = &mut net.ends[0].connection;
        connection.on_segment(ms(1001), &ack, Arrival::default());
        assert_eq!((connection.state(), connection.stats().acked_bytes), (expected, acknowledged), "{ack_tx}");
    }
}
