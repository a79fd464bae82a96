//! Tests how long data waits until its block is full, in virtual time with 30 ms in each direction,
//! by the paper's rule and by that of hosts.

use crate::tpa_common::{Net, ms};
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::{Config, Segment, ack, names};

const SEGMENT: u64 = 1460;

/// Configuration as on sockets: the end of a block is acknowledged at once. `waits` selects the
/// paper's rule, with its timeout of 100 ms.
fn config(window: u8, waits: bool) -> Config {
    Config { ack_block_end: true, waits_to_fill: waits, ..names::plain(window, ack::Rule::EveryOther) }
}

/// A connection that was opened long before 1000 ms and has nothing to send at that time.
fn open(config: &Config) -> Net {
    let mut net = Net::new(config, Duration::from_millis(30));
    net.ends[0].connection.open(Time::ZERO);
    net.drive(ms(1000), &mut deliver);
    net.record.clear();
    net
}

fn deliver(_: Time, _: usize, _: &Segment) -> Vec<Duration> {
    vec![Duration::ZERO]
}

/// Writes, and lets the connection handle this write before the next one.
fn write(net: &mut Net, end: usize, bytes: u64) {
    net.write(end, bytes);
    net.flush(&mut deliver);
}

/// Data segments of an end: time in ms, and payload in bytes.
fn data(net: &Net, end: usize) -> Vec<(u64, u16)> {
    let of_end = net.record.iter().filter(|line| line.1 == end && line.2.payload > 0);
    of_end.map(|line| (line.0.0 / 1_000_000, line.2.payload)).collect()
}

/// Time in ms until the answer to messages of `sizes` bytes arrives. The messages are written at
/// once, and the answer requires all of them.
fn answered_after(config: &Config, sizes: &[u64]) -> u64 {
    let mut net = open(config);
    sizes.iter().for_each(|size| write(&mut net, 0, *size));
    let asked: u64 = sizes.iter().sum();
    while net.ends[1].connection.delivered() < asked {
        assert!(net.step(ms(10_000), &mut deliver), "the question never arrived");
    }
    write(&mut net, 1, 8);
    while net.ends[0].connection.delivered() < 8 {
        assert!(net.step(ms(10_000), &mut deliver), "the answer never arrived");
    }
    net.now.0 / 1_000_000 - 1000
}

#[test]
fn questions_and_answers_wait_for_round_trips_alone() {
    let hosts = config(2, false);
    // One round trip. A second write waits for the acknowledgement of the first, which takes one
    // more.
    assert_eq!(answered_after(&hosts, &[8]), 60);
    assert_eq!(answered_after(&hosts, &[8, 8]), 120);
    assert_eq!(answered_after(&hosts, &[1000, 500]), 120);
    // The paper's rule adds its timeout to the question and to the answer.
    assert_eq!(answered_after(&config(2, true), &[8]), 260);
}

#[test]
fn what_is_written_meanwhile_joins_a_block_whose_last_segment_has_not_left() {
    let mut net = open(&config(2, false));
    // Two of the three segments leave. The window holds back the third, which has 80 bytes.
    write(&mut net, 0, 2 * SEGMENT + 80);
    assert_eq!(data(&net, 0), [(1000, 1460), (1000, 1460)]);
    for _ in 0..10 {
        write(&mut net, 0, 400);
    }
    net.drive(ms(5000), &mut deliver);
    // 4080 bytes: two full segments and one of 1160, as if all had been written at once.
    assert_eq!(data(&net, 0)[2..], [(1060, 1460), (1060, 1460), (1120, 1160)]);
    // A block whose last segment has left is closed. Later data waits for its acknowledgement.
    net.record.clear();
    write(&mut net, 0, 2000);
    write(&mut net, 0, 400);
    net.drive(ms(9000), &mut deliver);
    assert_eq!(data(&net, 0), [(5000, 1460), (5000, 540), (5060, 400)]);
    assert_eq!(net.ends[1].connection.delivered(), 2 * SEGMENT + 80 + 4000 + 2400);
}

#[test]
fn a_push_ends_the_wait_of_what_was_written() {
    let mut net = open(&config(2, true));
    write(&mut net, 0, 100);
    net.drive(ms(1010), &mut deliver);
    net.ends[0].connection.push(net.now);
    net.drive(ms(1020), &mut deliver);
    assert_eq!(data(&net, 0), [(1010, 100)]);
    // The push also works behind a block in flight. Data written after the push waits as before.
    write(&mut net, 0, 200);
    net.ends[0].connection.push(net.now);
    net.drive(ms(1075), &mut deliver);
    write(&mut net, 0, 300);
    net.drive(ms(5000), &mut deliver);
    assert_eq!(data(&net, 0)[1..], [(1070, 200), (1175, 300)]);
}

#[test]
fn the_rule_can_be_changed_while_data_wait() {
    let mut net = open(&config(2, true));
    write(&mut net, 0, 100);
    net.drive(ms(1010), &mut deliver);
    net.ends[0].connection.set_waits_to_fill(net.now, false);
    net.drive(ms(2000), &mut deliver);
    net.ends[0].connection.set_waits_to_fill(net.now, true);
    write(&mut net, 0, 100);
    net.drive(ms(5000), &mut deliver);
    assert_eq!(data(&net, 0), [(1010, 100), (2100, 100)]);
}

/// Number of data segments of a transfer of 2 MB. Its application writes `chunk` bytes at a time
/// into a ring of `ring` bytes until the ring is full. It continues when a quarter of the ring is
/// free, like threads that wait for a socket.
fn frames(config: &Config, ring: u64, chunk: u64) -> usize {
    const BYTES: u64 = 2_000_000;
    let mut net = open(config);
    while net.ends[1].connection.delivered() < BYTES {
        let room = |net: &Net| ring - (net.ends[0].written - net.ends[0].connection.acknowledged());
        let is_awake = room(&net) >= ring / 4;
        while is_awake && room(&net) > 0 && net.ends[0].written < BYTES {
            let bytes = chunk.min(room(&net)).min(BYTES - net.ends[0].written);
            write(&mut net, 0, bytes);
        }
        assert!(net.step(ms(1_000_000), &mut deliver), "it stands still");
    }
    assert_eq!(net.ends[0].connection.stats().retransmissions, 0);
    data(&net, 0).len()
}

#[test]
fn a_bulk_transfer_needs_no_more_frames_than_by_the_papers_rule() {
    for window in [2, 3, 12] {
        for ring in [2 * 12 * SEGMENT, 256 << 10] {
            for chunk in [1, 3, 4, 8, 16, 64].map(|kilo| kilo * 1024) {
                let [paper, hosts] = [true, false].map(|waits| frames(&config(window, waits), ring, chunk));
                // If the first write leaves completely and does not fill its last segment, one
                // additional segment is needed.
                let leaves_whole = chunk.div_ceil(SEGMENT) <= u64::from(window);
                assert!(
                    hosts <= paper + usize::from(leaves_whole),
                    "window {window}, ring {ring}, chunks of {chunk}: {paper} by the paper's rule, {hosts} by that of hosts"
                );
            }
        }
    }
}
