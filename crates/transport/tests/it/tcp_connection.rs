//! Conversations of two full-duplex TCP connections on a virtual clock.

use crate::common::duplex::{DELAY, Duplex, none};
use crate::common::{Fate, From, Line, Pair, ms, tcp_of};
use meshpace_core::{Duration, Time};
use meshpace_transport::closing::SYN_ACK_ATTEMPTS;
use meshpace_transport::tcp::closing::{CHALLENGES, PATIENCE, TIME_WAIT};
use meshpace_transport::tcp::{Agreed, Connection, End, Flags, Profile, Segment};
use meshpace_transport::{Arrival, Config, Machine, Output, names, tcp};

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
const FIN_ACK: Flags = Flags::FIN.with(Flags::ACK);

#[test]
fn one_way_a_host_says_what_an_agent_of_ns2_says() {
    // With data in one direction the two profiles must send the same segments at the same times
    // under the same losses. They differ in what they retransmit, not in what they send.
    for entry in names::table() {
        let Config::Tcp(config) = (entry.build)() else { continue };
        for every in [0, 7, 19, 45] {
            let mut count = 0;
            let mut lost = move || {
                count += 1;
                every > 0 && count % every == 0
            };
            let mut again = lost;
            let bytes = 200 * 1460 + 77;
            let mut agents = Pair::new(&Config::Tcp(config.clone()), DELAY, 7);
            agents.sender.open(Time::ZERO);
            agents.sender.write(Time::ZERO, bytes);
            agents.sender.close(Time::ZERO);
            agents.drive(ms(300_000), &mut |line: &Line| {
                if line.from == From::Sender && line.segment.payload() > 0 && lost() {
                    Fate::Lose
                } else {
                    Fate::Deliver
                }
            });
            let mut hosts = Duplex::new(&config);
            hosts.ends[0].open(Time::ZERO);
            hosts.ends[0].write(Time::ZERO, bytes);
            hosts.ends[0].close(Time::ZERO);
            hosts.drive(ms(300_000), &mut |side, segment| side == 0 && segment.payload > 0 && again());
            // Hosts do not announce a small opening of the window, as RFC 9293, section 3.8.6.2.2,
            // requires.
            let plain = |at: Time, side, s: Segment| (at, side, Segment { window: 0, ..s });
            let agents: Vec<_> =
                agents.record.iter().map(|l| plain(l.at, usize::from(l.from == From::Receiver), tcp_of(l))).collect();
            let said: Vec<_> = hosts.record.iter().map(|&(at, side, s, _)| plain(at, side, s)).collect();
            // At least 200 segments, one ACK for eight of them, and the handshake.
            assert!(agents.len() > 225, "{}", entry.name);
            for (ours, theirs) in said.iter().zip(&agents) {
                assert_eq!(ours, theirs, "{} losing every {every}", entry.name);
            }
            assert_eq!(said.len(), agents.len(), "{} losing every {every}", entry.name);
            assert_eq!(hosts.ends.each_ref().map(Connection::end), [Some(End::Closed); 2]);
        }
    }
}

#[test]
fn both_ways_at_once_acknowledgements_ride_on_data() {
    // Delayed ACKs: a segment waits up to 100 ms for its ACK. Data that the other end sends
    // meanwhile carries the ACK.
    let Some(Config::Tcp(config)) = names::lookup("newreno+delack") else { panic!("it is in the table") };
    let mut pair = Duplex::new(&config);
    pair.ends[0].open(Time::ZERO);
    pair.drive(ms(100), &mut none);
    pair.ends[0].write(ms(100), 1000);
    pair.drive(ms(150), &mut none);
    pair.ends[1].write(ms(150), 700);
    pair.drive(ms(200), &mut none);
    pair.ends[0].write(ms(200), 500);
    pair.drive(ms(1000), &mut none);
    assert_eq!(
        pair.said()[3..],
        [
            (100, 0, ACK, 0, 0, 1000),
            (150, 1, ACK, 0, 1000, 700),
            (200, 0, ACK, 1000, 700, 500),
            // 230 ms plus the delay of the ACK.
            (330, 1, ACK, 700, 1500, 0),
        ]
    );
    assert_eq!(pair.ends.each_ref().map(Connection::delivered), [700, 1500]);
}

#[test]
fn an_end_that_has_closed_goes_on_receiving() {
    // RFC 9293, section 3.6: a half-closed connection. The client sends its last data and receives
    // a long answer.
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.closes_after = [false; 2];
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 100);
    pair.ends[0].close(Time::ZERO);
    pair.drive(ms(200), &mut none);
    assert!(pair.ends[1].peer_has_closed() && pair.ends.iter().all(|end| end.end().is_none()));
    pair.ends[1].write(ms(200), 100_000);
    pair.ends[1].close(ms(200));
    pair.drive(ms(20_000), &mut none);
    assert_eq!(pair.ends[0].delivered(), 100_000);
    assert_eq!(pair.ends.each_ref().map(Connection::end), [Some(End::Closed); 2]);
    // The end that closed first waits for late segments. The other end can be removed.
    assert!(!pair.ends[0].is_forgotten(pair.now) && pair.ends[1].is_forgotten(pair.now));
    assert!(pair.ends[0].is_forgotten(pair.now + TIME_WAIT));
}

#[test]
fn a_lost_last_acknowledgement_is_repeated_in_time_wait() {
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].close(Time::ZERO);
    let mut lost = 0;
    pair.drive(ms(20_000), &mut |side, s| {
        let last = side == 0 && s.flags == ACK && s.seq == 1 && s.ack == 1;
        lost += u32::from(last);
        last && lost <= 2
    });
    assert_eq!(pair.ends[1].end(), Some(End::Closed), "{:?}", pair.said());
    assert_eq!(lost, 3);
}

#[test]
fn what_is_not_taken_closes_the_window_and_taking_opens_it() {
    // With a window of 8 segments and no reader, the sender stops after 8 segments and probes.
    // Reading half a segment is not announced (RFC 9293, section 3.8.6.2.2). Reading the rest opens
    // the window at once, without a probe.
    let config = tcp::Config { max_window: 8, ..tcp::Config::default() };
    let mut pair = Duplex::new(&config);
    pair.reads[1] = false;
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 20 * 1460);
    pair.drive(ms(5_000), &mut none);
    assert_eq!(pair.ends[1].delivered(), 8 * 1460);
    assert_eq!(pair.record.iter().rev().find(|l| l.1 == 1).unwrap().2.window, 0);
    let probes = pair.record.iter().filter(|l| l.1 == 0 && l.2.payload == 0 && l.2.seq == 8 * 1460 - 1).count();
    assert!(probes >= 3, "{probes} probes");
    let said = pair.record.len();
    let now = pair.now;
    pair.ends[1].take(now, 700);
    pair.flush(&mut none);
    assert_eq!(pair.record.len(), said, "a silly window is told");
    pair.ends[1].take(now, 8 * 1460 - 700);
    pair.taken[1] = 8 * 1460;
    pair.flush(&mut none);
    assert_eq!(pair.record.last().unwrap().2.window, 8 * 1460);
    pair.reads[1] = true;
    pair.drive(now + Duration::from_secs(5), &mut none);
    assert_eq!(pair.ends[1].delivered(), 20 * 1460);
}

#[test]
fn the_window_is_never_exceeded_nor_its_edge_withdrawn() {
    // RFC 9293, section 3.8.6: the announced right edge of the window never moves back, whatever
    // the application reads and when.
    let config = tcp::Config { max_window: 6, ..tcp::Config::default() };
    let mut pair = Duplex::new(&config);
    pair.reads[1] = false;
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 100 * 1460);
    for step in 0..400u64 {
        let until = ms(100 * step);
        pair.drive(until, &mut |side, s| side == 0 && s.payload > 0 && (s.seq / 1460 + step) % 11 == 0);
        let there = pair.ends[1].delivered() - pair.taken[1];
        let bytes = (step * 619 % 2000).min(there);
        pair.taken[1] += bytes;
        pair.ends[1].take(until, bytes);
    }
    let mut edge = 0;
    for (_, side, segment, _) in &pair.record {
        if *side == 1 && !segment.flags.has(SYN) {
            let told = segment.ack + u64::from(segment.window);
            assert!(told >= edge, "from {edge} back to {told}");
            edge = told;
        }
    }
    assert!(pair.ends[1].delivered() > 50 * 1460);
    assert!(pair.taken[1] + 6 * 1460 >= pair.ends[1].delivered());
}

#[test]
fn duplicate_acks_stay_duplicates_while_the_application_reads() {
    // RFC 5681, section 2: a duplicate ACK has the same window as the one before. One segment is
    // lost while the application reads at its own pace. Three duplicate ACKs have to repair the
    // loss, not the timer.
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.reads[1] = false;
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 60 * 1460);
    let mut count = 0;
    for step in 0..400u64 {
        let until = Time(step * 1_300_000);
        pair.drive(until, &mut |side, s| {
            count += u64::from(side == 0 && s.payload > 0);
            side == 0 && s.payload > 0 && count == 20
        });
        let there = pair.ends[1].delivered() - pair.taken[1];
        let bytes = there.min(2000);
        pair.taken[1] += bytes;
        pair.ends[1].take(until, bytes);
    }
    assert_eq!(pair.ends[1].delivered(), 60 * 1460);
    let stats = pair.ends[0].stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts, stats.retransmissions), (1, 0, 1));
}

#[test]
fn a_lost_syn_ack_and_a_lost_answer_to_it_are_repeated() {
    // The server sends data first. Its SYN-ACK is lost once: the client's repeated SYN causes
    // another. Then the client's ACK is lost: the server, which waits for it, retransmits by its
    // timer.
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[1].write(Time::ZERO, 5000);
    pair.ends[0].open(Time::ZERO);
    let (mut syn_acks, mut acks) = (0, 0);
    pair.drive(ms(60_000), &mut |side, s| {
        syn_acks += u32::from(side == 1 && s.flags == SYN_ACK);
        acks += u32::from(side == 0);
        (side == 1 && s.flags == SYN_ACK && syn_acks == 1) || (side == 0 && s.flags == ACK && acks == 3)
    });
    assert_eq!(pair.ends[0].delivered(), 5000, "{:?}", pair.said());
    assert!(syn_acks >= 3);
}

#[test]
fn a_segment_beyond_a_gap_that_ends_the_handshake_is_not_echoed() {
    // RFC 7323, section 4.3: the time stamp to echo is that of the last segment in order. The first
    // data segment is lost, so the second one ends the server's handshake. Its ACK echoes the SYN.
    for profile in [Profile::Ns2, Profile::Host] {
        let mut pair = Duplex::new(&tcp::Config { profile, initial_window: 2, ..tcp::Config::default() });
        pair.ends[0].open(Time::ZERO);
        pair.ends[0].write(Time::ZERO, 5000);
        let mut lost = false;
        pair.drive(ms(60_000), &mut |side, s| {
            let first = side == 0 && s.payload > 0 && !lost;
            lost |= first;
            first
        });
        let syn = pair.record.iter().find(|l| l.1 == 0).unwrap().2;
        let ack = pair.record.iter().find(|l| l.1 == 1 && l.2.flags == ACK).unwrap().2;
        assert!(syn.flags.has(Flags::SYN) && lost && ack.ack == 0, "{:?}", pair.said());
        assert_eq!(ack.ts_ecr, syn.ts_val, "{profile:?}: {:?}", pair.said());
        assert_eq!(pair.ends[1].delivered(), 5000);
    }
}

#[test]
fn nobody_answers() {
    // The SYN is repeated until the patience ends, the SYN-ACK six times, and data until the
    // patience ends, with a reset at last.
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.drive(ms(400_000), &mut |_, _| true);
    assert_eq!(pair.ends[0].end(), Some(End::TimedOut));

    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.drive(ms(400_000), &mut |side, s| side == 1 || s.flags != SYN);
    assert_eq!(pair.ends[1].end(), Some(End::TimedOut));
    // Repetitions by the client cause some more.
    assert!(pair.record.iter().filter(|l| l.1 == 1).count() >= SYN_ACK_ATTEMPTS as usize);

    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.drive(ms(1000), &mut none);
    pair.ends[0].write(ms(1000), 5000);
    pair.drive(ms(400_000), &mut |_, _| true);
    assert_eq!(pair.ends[0].end(), Some(End::TimedOut));
    let last = pair.record.last().unwrap();
    assert!(last.2.flags.has(Flags::RST));
    let waited = last.0.since(ms(1000));
    assert!(waited >= PATIENCE && waited <= PATIENCE + Duration::from_secs(1), "{waited}");
}

#[test]
fn resets_and_syns_are_believed_as_rfc_5961_says() {
    let opened = || {
        let mut pair = Duplex::new(&tcp::Config::default());
        pair.ends[0].open(Time::ZERO);
        pair.ends[0].write(Time::ZERO, 1460);
        pair.drive(ms(1000), &mut none);
        assert_eq!(pair.ends[1].delivered(), 1460);
        pair
    };
    let tell = |pair: &mut Duplex, flags, seq| {
        let said = pair.record.len();
        let forged = Segment { seq, ack: 0, flags, window: 1000, ..Segment::default() };
        pair.ends[1].on_segment(pair.now, &forged, &[], Arrival::default());
        pair.flush(&mut none);
        (pair.ends[1].end(), pair.record[said..].iter().map(|l| (l.2.flags, l.2.ack)).collect::<Vec<_>>())
    };
    // A reset in the window but not at the next number is answered with an ACK, one outside the
    // window with nothing, and a SYN with an ACK.
    let mut pair = opened();
    assert_eq!(tell(&mut pair, Flags::RST, 1461), (None, vec![(ACK, 1460)]));
    assert_eq!(tell(&mut pair, Flags::RST, 1459), (None, vec![]));
    assert_eq!(tell(&mut pair, Flags::RST, 1460 + 65 * 1460), (None, vec![]));
    assert_eq!(tell(&mut pair, Flags::SYN, 0), (None, vec![(ACK, 1460)]));
    // A flood of them gets ten answers in five seconds, of which two have been used.
    let answers = (0..1000).filter(|_| !tell(&mut pair, Flags::RST, 1461).1.is_empty()).count();
    assert_eq!(answers, CHALLENGES as usize - 2);
    assert_eq!(tell(&mut pair, Flags::RST, 1460), (Some(End::Reset), vec![]));
    // A segment that acknowledges data that was never sent has no effect, and its data is not
    // accepted.
    let mut pair = opened();
    let forged = Segment { seq: 1460, ack: 99, payload: 10, flags: ACK, window: 1000, ..Segment::default() };
    pair.ends[1].on_segment(pair.now, &forged, &[], Arrival::default());
    assert_eq!(pair.ends[1].delivered(), 1460);
}

#[test]
fn an_ack_older_than_a_window_is_answered_and_its_segment_not_taken() {
    // RFC 5961, section 5.2: an ACK is accepted from SND.UNA - MAX.SND.WND to SND.NXT.
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 500_000);
    pair.drive(Time(60_000_000_000), &mut none);
    let una = pair.ends[0].acknowledged();
    assert_eq!(una, 500_000);
    let largest = pair.record.iter().filter(|line| line.1 == 1).map(|line| u64::from(line.2.window)).max().unwrap();
    assert!(largest < una / 2, "the window of {largest} is to leave room for older ones");
    let mut next = 0;
    let mut tell = |ack| {
        let said = pair.record.len();
        let segment = Segment { seq: next, ack, payload: 100, flags: ACK, window: 1000, ..Segment::default() };
        let is_taken = pair.ends[0].on_segment(pair.now, &segment, &[], Arrival::default());
        next += if is_taken { 100 } else { 0 };
        pair.flush(&mut none);
        let answers: Vec<_> = pair.record[said..].iter().map(|line| (line.2.flags, line.2.ack)).collect();
        (is_taken, pair.ends[0].delivered(), answers.contains(&(ACK, next)))
    };
    assert_eq!(tell(una - largest - 1), (false, 0, true));
    assert_eq!(tell(0), (false, 0, true));
    assert_eq!(tell(una + 1), (false, 0, true));
    let (is_taken, delivered, _) = tell(una - largest);
    assert_eq!((is_taken, delivered), (true, 100));
    let (is_taken, delivered, _) = tell(una);
    assert_eq!((is_taken, delivered), (true, 200));
}

#[test]
fn a_refused_connection_says_so_and_an_abort_resets() {
    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    assert_eq!(pair.ends[0].poll(Time::ZERO).segment().map(|s| s.flags), Some(SYN));
    let refusal = Segment { flags: Flags::RST.with(ACK), ..Segment::default() };
    pair.ends[0].on_segment(ms(60), &refusal, &[], Arrival::default());
    assert_eq!(pair.ends[0].end(), Some(End::Refused));
    assert_eq!(pair.ends[0].poll(ms(60)), Output::Idle);

    let mut pair = Duplex::new(&tcp::Config::default());
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 5000);
    pair.drive(ms(1000), &mut none);
    pair.ends[0].abort(ms(1000));
    pair.drive(ms(2000), &mut none);
    assert_eq!(pair.ends.each_ref().map(Connection::end), [Some(End::Aborted), Some(End::Reset)]);
}

#[test]
fn smaller_segments_are_agreed_on() {
    let mut pair = Duplex::new(&tcp::Config::default());
    for end in &mut pair.ends {
        end.on_agreed(Time::ZERO, &Agreed { segment: 500, timestamps: false, sack: false });
    }
    pair.ends[0].open(Time::ZERO);
    pair.ends[0].write(Time::ZERO, 1200);
    pair.ends[0].close(Time::ZERO);
    pair.drive(ms(1000), &mut none);
    let sizes: Vec<_> = pair.record.iter().filter(|l| l.2.payload > 0).map(|l| l.2.payload).collect();
    assert_eq!(sizes, [500, 500, 200]);
    assert!(pair.said().iter().any(|line| line.2 == FIN_ACK && line.1 == 1));
}
