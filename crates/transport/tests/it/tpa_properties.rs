//! Properties of TPA that hold whatever the network or the peer does, tested with random runs. A
//! failure prints the seed that repeats it.

use crate::tpa_common::{Net, any_config, ms};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use meshpace_transport::tpa::{Config, Connection, Flags, Segment, State};
use meshpace_transport::{Arrival, Role, pump};

/// Runs `run` for each seed and prints the seed that failed.
fn for_seeds(seeds: u64, run: impl Fn(u64)) {
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn all_bytes_arrive_once_in_order_whatever_is_lost() {
    for_seeds(1500, |seed| {
        let mut rng = Rng::stream(seed, Purpose::Test, 20);
        let config = any_config(&mut rng);
        let bulk = u64::from(config.segment) * 60;
        let mut net = Net::new(&config, Duration::from_micros(100 + rng.below(80_000)));
        let (loss, duplication, reordering) =
            (rng.uniform_in(0.0, 0.25), rng.uniform_in(0.0, 0.1), rng.uniform_in(0.0, 0.2));
        // One direction loses everything for a while: the ACK inhibition of the paper's appendix B,
        // or the same in the other direction.
        let dead = rng.below(2) as usize;
        let from = ms(rng.below(3000));
        let until = from + Duration::from_millis(rng.below(12_000));
        let mut network = Rng::stream(seed, Purpose::Test, 21);
        let mut fate = |at: Time, end: usize, _: &Segment| {
            let u = network.uniform();
            if u < loss || (end == dead && (from..until).contains(&at)) {
                vec![]
            } else if u < loss + duplication {
                vec![Duration::ZERO, Duration::from_micros(network.below(50_000))]
            } else if u < loss + duplication + reordering {
                vec![Duration::from_micros(network.below(100_000))]
            } else {
                vec![Duration::ZERO]
            }
        };
        net.ends[0].connection.open(Time::ZERO);
        net.write(0, 1 + rng.below(bulk));
        if rng.below(2) == 0 {
            net.write(1, 1 + rng.below(bulk));
        }
        let answers = net.ends[1].written > 0;
        // While the transfer runs, the application writes and the network sends notices about
        // routes.
        for _ in 0..rng.below(6) {
            let until = net.now + Duration::from_micros(rng.below(600_000));
            net.drive(until, &mut fate);
            let (now, end) = (net.now, rng.below(2) as usize);
            match rng.below(3) {
                0 if end == 0 || answers => net.write(end, 1 + rng.below(bulk / 4 + 1)),
                1 => net.ends[end].connection.on_route_failure(now),
                _ => net.ends[end].connection.on_route_recovered(now),
            }
        }
        let now = net.now;
        net.ends[0].connection.close(now);
        if answers {
            net.ends[1].connection.close(now);
        }
        net.drive(Time(u64::MAX - 1), &mut fate);
        if net.ends[0].connection.state() == State::SynSent {
            panic!("the connection was never made");
        }
        net.assert_complete();
    });
}

#[test]
fn nothing_is_repeated_without_loss() {
    for_seeds(600, |seed| {
        let mut rng = Rng::stream(seed, Purpose::Test, 22);
        let mut config = any_config(&mut rng);
        config.rto.margin = Duration::from_millis(100);
        let mut net = Net::new(&config, Duration::from_micros(100 + rng.below(400_000)));
        net.ends[0].connection.open(Time::ZERO);
        net.write(0, 1 + rng.below(u64::from(config.segment) * 200));
        net.ends[0].connection.close(Time::ZERO);
        net.drive(Time(u64::MAX - 1), &mut |_, _, _| vec![Duration::ZERO]);
        net.assert_complete();
        let stats = net.ends[0].connection.stats();
        assert_eq!(stats.retransmissions, 0, "{config:?} {stats:?}");
        assert_eq!(net.ends[1].connection.stats().duplicate_segments_received, 0);
    });
}

/// A segment near the numbers that the endpoint expects, or far from them.
fn any_segment(rng: &mut Rng, near: &Segment) -> Segment {
    let mut pick = |values: &[u64]| values[rng.below(values.len() as u64) as usize];
    let block = |pick: &mut dyn FnMut(&[u64]) -> u64, block: u16| {
        let offset = pick(&[0, 0, 0, 1, 1, 2, 4095, 4094, 2048, 77]) as u16;
        (block + offset) % 4096
    };
    Segment {
        offset: 0,
        block: block(&mut pick, near.block),
        place: pick(&[0, 1, 2, 4, 1 << 11, 0xfff, 3, 1 << 12, 1 << 15]) as u16,
        ack_block: block(&mut pick, near.ack_block),
        ack_places: pick(&[0, 1, 2, 3, 7, 0xfff, 0xffff, 0b1010]) as u16,
        payload: pick(&[0, 0, 1, 1460, 1459, 536, 65535]) as u16,
        tx: pick(&[0, 1, 2, 3, 200, 255]) as u8,
        ack_tx: pick(&[0, 1, 2, 3, 12, 200, 255]) as u8,
        window: pick(&[0, 0, 1, 2, 255]) as u8,
        congested: pick(&[0, 1]) == 1,
        last: pick(&[0, 1]) == 1,
        flags: Flags(pick(&[0, 0, 0, 0x10, 0x10, 0x10, 0x02, 0x12, 0x01, 0x11, 0x17, 0x04]) as u8),
    }
}

#[test]
fn no_peer_crashes_an_endpoint_or_makes_it_spin() {
    for_seeds(1500, |seed| {
        let mut rng = Rng::stream(seed, Purpose::Test, 23);
        let config = any_config(&mut rng);
        let mut ends = [Connection::new(&config, Role::Sender), Connection::new(&config, Role::Receiver)];
        for end in &mut ends {
            end.open(Time::ZERO);
            end.write_endless(Time::ZERO);
        }
        let mut now = Time::ZERO;
        let mut last = Segment::default();
        for _ in 0..300 {
            now += Duration::from_micros(rng.below(200_000));
            for end in &mut ends {
                match rng.below(12) {
                    0 => end.on_route_failure(now),
                    1 => end.on_route_recovered(now),
                    2 => end.set_receive_window(now, [0, 1, 255][rng.below(3) as usize]),
                    // An occasional handshake, so that data can flow at all.
                    3 | 4 => {
                        let syn = if rng.below(2) == 0 { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
                        let segment =
                            Segment { flags: syn, window: 9, ack_block: config.first_block, ..Segment::default() };
                        end.on_segment(now, &segment, Arrival::default());
                    }
                    _ => {
                        let near = Segment { block: last.ack_block, ack_block: last.block, ..last };
                        let segment = any_segment(&mut rng, &near);
                        end.on_segment(now, &segment, Arrival { hops: rng.below(256) as u8, ..Arrival::default() });
                    }
                }
                let mut polled = 0;
                let wakeup = pump(end, now, |_, segment| {
                    last = segment;
                    polled += 1;
                    assert!(polled < 100, "it never stops sending");
                });
                assert!(wakeup > now, "due at once for ever");
            }
        }
        // A connected end that was not reset must wait for some event, because it has data.
        for end in &mut ends {
            let waits = matches!(end.state(), State::Established | State::SynSent | State::SynReceived);
            assert!(!waits || pump(end, now, |_, _| {}) != Time::NEVER, "wedged in {:?}", end.state());
        }
    });
}

#[test]
fn forged_acks_do_not_stop_a_transfer() {
    // A third party guesses. After every segment it sends ACKs of data that was never sent, ACKs of
    // other blocks, with closed windows, and data of old blocks. Everything still arrives once. A
    // closed window causes probes, but does not end the connection.
    for_seeds(300, |seed| {
        let mut rng = Rng::stream(seed, Purpose::Test, 24);
        let config = Config { segment: 1460, ..any_config(&mut rng) };
        let mut net = Net::new(&config, Duration::from_millis(5));
        net.ends[0].connection.open(Time::ZERO);
        net.write(0, 100_000);
        net.ends[0].connection.close(Time::ZERO);
        let mut fate = |_: Time, _: usize, _: &Segment| vec![Duration::ZERO];
        while net.step(Time(u64::MAX - 1), &mut fate) {
            let now = net.now;
            let block = net.ends[0].connection.sender().block_number();
            if net.ends[0].connection.state() != State::Established || rng.below(3) > 0 {
                continue;
            }
            let (ack_block, ack_places, ack_tx) = match rng.below(3) {
                // Places beyond those sent of a block that has just begun, with a transmission
                // number far away.
                0 => (block, 0xfff, 250),
                1 => ((block + 1 + rng.below(2000) as u16) % 4096, 0xfff, 1),
                _ => ((block + 4095) % 4096, 0xfff, 1),
            };
            let forged = Segment {
                ack_block,
                ack_places,
                ack_tx,
                window: rng.below(2) as u8,
                flags: Flags::ACK,
                ..Segment::default()
            };
            net.ends[0].connection.on_segment(now, &forged, Arrival::default());
            let old = Segment {
                block: (block + 4096 - 1 - rng.below(1000) as u16) % 4096,
                place: 1,
                payload: 1460,
                tx: 9,
                flags: Flags::NONE,
                ..Segment::default()
            };
            if net.ends[1].connection.delivered() > 0 && old.block != block {
                net.ends[1].connection.on_segment(now, &old, Arrival::default());
            }
        }
        net.assert_complete();
    });
}
