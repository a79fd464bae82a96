//! TPA conversations, segment by segment. Each test names the rule from which its numbers follow.

use crate::tpa_common::{Net, ms};
use meshpace_core::ParameterError;
use meshpace_core::{Duration, Time};
use meshpace_transport::tpa::congestion::{self, Notices};
use meshpace_transport::tpa::{Config, Connection, End, Flags, Segment, State, ack, names};
use meshpace_transport::{Arrival, Machine, Output, Role, pacing, pump};

const NOW: Duration = Duration::ZERO;

/// TPA-2 with 30 ms in each direction, whose application has connected at time 0.
fn opened(config: &Config) -> Net {
    let mut net = Net::new(config, Duration::from_millis(30));
    net.ends[0].connection.open(Time::ZERO);
    net
}

fn deliver(_: Time, _: usize, _: &Segment) -> Vec<Duration> {
    vec![NOW]
}

/// Loses the segments for which `lost` returns true.
fn unless(mut lost: impl FnMut(Time, usize, &Segment) -> bool) -> impl FnMut(Time, usize, &Segment) -> Vec<Duration> {
    move |at, end, segment| if lost(at, end, segment) { vec![] } else { vec![NOW] }
}

fn at_ms(at: Time) -> u64 {
    at.0 / 1_000_000
}

/// Data segments of an end: ms, block, place, TxSeqNumber.
fn data(net: &Net, end: usize) -> Vec<(u64, u16, u8, u8)> {
    let line = |&(at, from, segment, _): &(Time, usize, Segment, bool)| {
        (from == end && segment.payload > 0).then(|| (at_ms(at), segment.block, segment.index().unwrap(), segment.tx))
    };
    net.record.iter().filter_map(line).collect()
}

/// Times in ms of an end's segments with these flags.
fn times(net: &Net, end: usize, flags: Flags) -> Vec<u64> {
    net.record.iter().filter(|line| line.1 == end && line.2.flags.has(flags)).map(|line| at_ms(line.0)).collect()
}

#[test]
fn opening_data_and_closing() {
    // SYN, SYN+ACK, and an ACK on the first data. Two segments share an ACK. The FIN is a block of
    // its own and is acknowledged at once. The listener has nothing to send and answers with its
    // own FIN, which carries the ACK. Blocks count from 5 and 82.
    let config = Config { first_block: 5, ..Config::default() };
    let mut net = opened(&config);
    net.write(0, 2000);
    net.ends[0].connection.close(Time::ZERO);
    net.drive(ms(100_000), &mut deliver);
    let said: Vec<_> = net
        .record
        .iter()
        .map(|&(at, end, s, _)| (at_ms(at), end, s.flags, s.block, s.payload, s.ack_block, s.ack_places, s.ack_tx))
        .collect();
    let (syn, ack, fin) = (Flags::SYN, Flags::ACK, Flags::FIN);
    assert_eq!(
        said,
        [
            (0, 0, syn, 5, 0, 0, 0, 0),
            (30, 1, syn.with(ack), 82, 0, 5, 0, 0),
            (60, 0, ack, 5, 1460, 82, 0, 0),
            (60, 0, Flags::NONE, 5, 540, 0, 0, 0),
            (90, 1, ack, 0, 0, 5, 0b11, 2),
            (120, 0, fin, 6, 0, 0, 0, 0),
            (150, 1, fin.with(ack), 82, 0, 6, 1, 1),
            (180, 0, ack, 0, 0, 82, 1, 1),
        ]
    );
    net.assert_complete();
    assert_eq!(net.ends[0].connection.stats().segments_sent, 2);
}

#[test]
fn data_flows_both_ways_at_once_and_acks_ride_on_it() {
    // 24 segments in each direction. The applications of both ends have written before. After the
    // first exchange an ACK is always pending when data leaves, so hardly any segment is a pure
    // ACK.
    let mut net = opened(&Config::default());
    net.write(0, 24 * 1460);
    net.write(1, 24 * 1460);
    net.drive(ms(2000), &mut deliver);
    net.ends[0].connection.close(ms(2000));
    net.ends[1].connection.close(ms(2000));
    net.drive(ms(100_000), &mut deliver);
    net.assert_complete();
    let alone = |&&(_, _, s, _): &&(Time, usize, Segment, bool)| {
        s.flags == Flags::ACK && s.payload == 0 && s.block == 0 && s.tx == 0
    };
    let riding = |&&(_, _, s, _): &&(Time, usize, Segment, bool)| s.flags.has(Flags::ACK) && s.payload > 0;
    let (alone, riding) = (net.record.iter().filter(alone).count(), net.record.iter().filter(riding).count());
    assert!(riding >= 20 && alone <= 8, "{riding} ride, {alone} alone");
    for end in &net.ends {
        assert_eq!(end.connection.stats().retransmissions, 0);
    }
}

#[test]
fn a_lost_handshake_is_repeated_with_doubled_timeouts() {
    // The RTO is 3 s before any sample, then 6 s. The SYN is lost twice, then the first SYN+ACK.
    // The listener repeats its own after 3 s, and the caller's third SYN leaves at 9 s.
    let mut net = opened(&Config::default());
    net.write(0, 12 * 1460);
    net.ends[0].connection.close(Time::ZERO);
    let mut syns = 0;
    net.drive(
        ms(100_000),
        &mut unless(|_, _, segment| {
            syns += u32::from(segment.flags.has(Flags::SYN));
            segment.flags.has(Flags::SYN) && [1, 2, 4].contains(&syns)
        }),
    );
    assert_eq!(times(&net, 0, Flags::SYN), [0, 3000, 9000]);
    assert_eq!(times(&net, 1, Flags::SYN), [9030, 12_030]);
    net.assert_complete();
}

#[test]
fn a_listener_that_hears_nothing_more_is_free_for_somebody_else() {
    let mut net = opened(&Config::default());
    let mut silent = unless(|_, end, _| end == 1);
    net.drive(ms(40), &mut silent);
    assert_eq!(net.ends[1].connection.state(), State::SynReceived);
    // The caller is gone. The listener is free after 3 + 6 + 12 + 24 + 48 s and another 60 s for
    // the last attempt.
    net.ends[0].connection.abort(ms(40));
    net.drive(ms(400_000), &mut silent);
    assert_eq!(times(&net, 1, Flags::SYN), [30, 3030, 9030, 21_030, 45_030, 93_030]);
    // Another caller opens a connection, with another first block.
    let late = ms(400_000);
    let listener = &mut net.ends[1].connection;
    let syn = Segment { block: 77, window: 64, flags: Flags::SYN, ..Segment::default() };
    listener.on_segment(late, &syn, Arrival::default());
    let mut answers = Vec::new();
    pump(listener, late, |_, segment| answers.push((segment.flags, segment.ack_block)));
    assert_eq!(answers, [(Flags::SYN.with(Flags::ACK), 77)]);
}

#[test]
fn who_is_open_at_one_end_alone_is_heard_after_the_other_has_called_for_the_last_time() {
    let mut net = opened(&Config::default());
    net.write(0, 12 * 1460);
    net.ends[0].connection.close(Time::ZERO);
    // The caller receives the first SYN+ACK. Of its own segments nothing but the SYN arrives until
    // long after the sixth SYN+ACK, at 93 s.
    net.drive(
        ms(3_600_000),
        &mut unless(|at, end, segment| end == 0 && !segment.flags.has(Flags::SYN) && at < ms(200_000)),
    );
    assert_eq!(times(&net, 1, Flags::SYN).last(), Some(&93_030));
    net.assert_complete();
}

#[test]
fn a_reset_ends_both_and_a_guessed_one_nothing() {
    let mut net = opened(&Config::default());
    net.write(0, 1 << 20);
    net.drive(ms(1000), &mut deliver);
    let block = net.ends[1].connection.sender().block_number();
    let guess = Segment { block: 2000, ack_block: block + 9, flags: Flags::RST.with(Flags::ACK), ..Segment::default() };
    for end in &mut net.ends {
        end.connection.on_segment(ms(1000), &guess, Arrival::default());
        assert_eq!(end.connection.state(), State::Established);
    }
    net.ends[0].connection.abort(ms(1000));
    net.drive(ms(60_000), &mut deliver);
    let ends = net.ends.each_ref().map(|end| end.connection.state());
    assert_eq!(ends, [State::Ended(End::Aborted), State::Ended(End::Reset)]);
    assert!(net.ends.iter().all(|end| end.connection.is_done()));
    assert_eq!(net.next_event(), Time::NEVER);
    assert_eq!(times(&net, 0, Flags::RST), [1000]);
}

#[test]
fn a_stray_segment_is_answered_by_a_reset_its_sender_believes() {
    // The listener has no state of the connection any more: the code that runs it answers with
    // `reset_for`.
    let mut net = opened(&Config::default());
    net.write(0, 1 << 20);
    net.drive(ms(1000), &mut deliver);
    let stray = net.record.iter().rev().find(|line| line.1 == 0 && line.2.payload > 0).unwrap().2;
    let reset = Segment::reset_for(&stray).unwrap();
    assert_eq!(Segment::reset_for(&reset), None, "resets are not answered");
    net.ends[0].connection.on_segment(ms(1000), &reset, Arrival::default());
    assert_eq!(net.ends[0].connection.state(), State::Ended(End::Reset));
}

#[test]
fn a_short_block_leaves_after_the_fill_timeout() {
    // 3 segments are written at 1 s. 9 more at 1.05 s complete the block at once. 2 more wait for
    // 100 ms, because they were written to an idle sender at 2 s. Data that is written while a
    // block is in flight waits for the end of that block: 2.1 + 0.06.
    let mut net = opened(&Config::default());
    net.drive(ms(1000), &mut deliver);
    net.write(0, 3 * 1460);
    net.drive(ms(1050), &mut deliver);
    assert_eq!(data(&net, 0), []);
    net.write(0, 9 * 1460);
    net.drive(ms(2000), &mut deliver);
    assert_eq!(data(&net, 0).first(), Some(&(1050, 0, 0, 1)));
    net.write(0, 2 * 1460);
    net.drive(ms(2050), &mut deliver);
    assert_eq!(data(&net, 0).len(), 12);
    net.drive(ms(2110), &mut deliver);
    net.write(0, 100);
    net.drive(ms(10_000), &mut deliver);
    assert_eq!(data(&net, 0)[12..], [(2100, 1, 0, 1), (2100, 1, 1, 2), (2210, 2, 0, 1)]);
    assert_eq!(net.ends[1].connection.delivered(), 14 * 1460 + 100);
}

#[test]
fn an_odd_last_segment_waits_for_the_ack_timer_and_is_not_repeated() {
    // After hundreds of steady samples the RTO is ERTT + margin. The ACK of the 13th segment is
    // delayed by 100 ms.
    let mut net = opened(&names::plain(2, ack::Rule::EveryOther));
    net.write(0, (12 * 100 + 1) * 1460);
    net.ends[0].connection.close(Time::ZERO);
    net.drive(ms(100_000), &mut deliver);
    net.assert_complete();
    let stats = net.ends[0].connection.stats();
    assert_eq!((stats.retransmissions, stats.timeouts), (0, 0));
    let (last, _, place, _) = *data(&net, 0).last().unwrap();
    assert_eq!(place, 0);
    let acks = times(&net, 1, Flags::ACK);
    assert!(acks.contains(&(last + 30 + 100)), "{last} {acks:?}");
}

#[test]
fn the_end_of_a_block_is_acknowledged_at_once_where_that_is_asked_for() {
    let config = Config { ack_block_end: true, ..names::plain(2, ack::Rule::EveryOther) };
    let acknowledged_after = |net: &Net, at: u64| times(net, 1, Flags::ACK).contains(&(at + 30));
    // The 13th segment is a block by itself.
    let mut net = opened(&config);
    net.write(0, 13 * 1460);
    net.ends[0].connection.close(Time::ZERO);
    net.drive(ms(100_000), &mut deliver);
    net.assert_complete();
    let (last, block, place, _) = *data(&net, 0).last().unwrap();
    assert_eq!((block, place), (1, 0));
    assert!(acknowledged_after(&net, last));
    // A retransmission completes a block whose last place arrived long before.
    let mut net = opened(&config);
    net.write(0, 12 * 1460);
    let mut lost = false;
    let loses = |_, _, segment: &Segment| segment.index() == Some(3) && !std::mem::replace(&mut lost, true);
    net.drive(ms(10_000), &mut unless(loses));
    let (repeated, _, place, tx) = *data(&net, 0).last().unwrap();
    assert_eq!((place, tx), (3, 13));
    assert!(acknowledged_after(&net, repeated));
    assert_eq!(net.ends[0].connection.acknowledged(), 12 * 1460);
}

#[test]
fn the_ack_of_a_block_s_end_waits_for_data_to_ride_on_where_that_is_asked_for() {
    let plain = names::plain(2, ack::Rule::EveryOther);
    let config = Config { ack_block_end: true, fill_timeout: Duration::ZERO, ..plain };
    // A message leaves at 1000 ms and arrives at 1030 ms. The answer, if there is one, is written 5
    // ms later.
    let said = |holds: bool, answers: bool| {
        let mut net = opened(&config);
        net.write(0, 100);
        net.drive(ms(1000), &mut deliver);
        if holds {
            net.ends[1].connection.hold_acks(Duration::from_millis(10));
        }
        net.record.clear();
        net.write(0, 100);
        net.drive(ms(1035), &mut deliver);
        if answers {
            net.write(1, 100);
        }
        net.drive(ms(1060), &mut deliver);
        let by_listener = net.record.iter().filter(|line| line.1 == 1);
        by_listener.map(|line| (at_ms(line.0), line.2.flags.has(Flags::ACK), line.2.payload)).collect::<Vec<_>>()
    };
    assert_eq!(said(false, false), [(1030, true, 0)]);
    assert_eq!(said(false, true), [(1030, true, 0), (1035, false, 100)]);
    assert_eq!(said(true, false), [(1040, true, 0)]);
    assert_eq!(said(true, true), [(1035, true, 100)]);
}

#[test]
fn the_margin_of_zero_is_the_equation_as_printed() {
    // The same transfer with RTO = ERTT + 4 DEV. DEV vanishes, so an ACK that is 20 ms late causes
    // a timeout although nothing is lost.
    let repeats = |margin| {
        let mut config = Config::default();
        config.rto.margin = Duration::from_millis(margin);
        let mut net = opened(&config);
        net.write(0, 12 * 100 * 1460);
        net.ends[0].connection.close(Time::ZERO);
        let mut acks = 0;
        net.drive(ms(100_000), &mut |_, end, segment: &Segment| {
            acks += u32::from(end == 1 && segment.flags == Flags::ACK);
            // The ACK that ends block 99.
            vec![if acks == 6 * 100 { Duration::from_millis(20) } else { NOW }]
        });
        net.assert_complete();
        net.ends[0].connection.stats().retransmissions
    };
    assert_eq!(repeats(100), 0);
    assert!(repeats(0) > 0);
}

fn elfn(notices: Notices) -> Config {
    let mut config = Config {
        congestion: congestion::Config { notices, window: 3, ..names::plain(3, ack::Rule::EveryWindow).congestion },
        ..names::plain(3, ack::Rule::EveryWindow)
    };
    config.rto.fixed = Some(Duration::from_millis(200));
    config
}

#[test]
fn elfn_freezes_and_probes_until_the_latest_segment_is_acknowledged() {
    // Section 3.3. Segments sent from 950 ms to 5 s are lost, and the network sends a notice at 1
    // s. The window becomes 1. The segments sent at 960 ms expire at 1160, and probes of the main
    // stream follow, one per expiry. The RTO doubles with each expiry of a probe.
    let mut net = opened(&elfn(Notices::Failure));
    net.write(0, 1 << 20);
    let mut fate = unless(|at, _, _| (ms(950)..ms(5000)).contains(&at));
    net.drive(ms(1000), &mut fate);
    net.ends[0].connection.on_route_failure(ms(1000));
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Frozen);
    net.drive(ms(20_000), &mut fate);
    let sent = data(&net, 0);
    let probes: Vec<u64> = sent.iter().map(|line| line.0).filter(|at| (1001..7400).contains(at)).collect();
    assert_eq!(probes, [1160, 1360, 1760, 2560, 4160, 7360]);
    // The probe of 7360 arrives. With its ACK the window is open again, and the two missing
    // segments leave at once.
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Normal);
    let after: Vec<_> = sent.iter().filter(|line| (7361..7500).contains(&line.0)).copied().collect();
    assert_eq!(after, [(7420, 3, 9, 19), (7420, 3, 10, 20)]);
}

#[test]
fn with_elfn_timeouts_mean_congestion_and_do_not_double() {
    // Section 3.5, ACK inhibition with ELFN: th_CONG = 1 timeout. One segment leaves per RTO of 200
    // ms, and the sender is never frozen.
    let mut net = opened(&elfn(Notices::Failure));
    net.write(0, 1 << 20);
    let mut fate = unless(|at, end, _| end == 1 && (ms(1000)..ms(2500)).contains(&at));
    net.drive(ms(2000), &mut fate);
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Congested);
    let sent: Vec<u64> = data(&net, 0).iter().map(|line| line.0).filter(|at| (1200..2000).contains(at)).collect();
    assert!(sent.len() >= 3 && sent.windows(2).all(|pair| pair[1] - pair[0] == 200), "{sent:?}");
    net.drive(ms(3000), &mut fate);
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Normal);
}

#[test]
fn with_notices_of_recovery_the_sender_is_silent() {
    // Section 3.3, last sentence of its second paragraph. The path is broken from 950 ms to 9 s,
    // with a notice at 1 s. The notice of recovery arrives at 9 s, and the window opens at once.
    // Without that notice a probe leaves after the longest RTO of 60 s.
    let broken = |notice: bool| {
        let mut net = opened(&elfn(Notices::FailureAndRecovery));
        net.write(0, 1 << 24);
        let mut fate = unless(|at, _, _| (ms(950)..ms(9000)).contains(&at));
        net.drive(ms(1000), &mut fate);
        net.ends[0].connection.on_route_failure(ms(1000));
        net.drive(ms(9000), &mut fate);
        if notice {
            net.ends[0].connection.on_route_recovered(ms(9000));
        }
        net.drive(ms(70_000), &mut fate);
        data(&net, 0).iter().map(|line| line.0).find(|&at| at > 1000).unwrap()
    };
    assert_eq!(broken(true), 9000);
    assert_eq!(broken(false), 61_000);
}

#[test]
fn notices_nobody_believes_change_nothing() {
    let run = |notices: bool| {
        let mut net = opened(&Config::default());
        net.write(0, 1 << 18);
        net.drive(ms(1000), &mut deliver);
        if notices {
            net.ends[0].connection.on_route_failure(ms(1000));
            net.ends[0].connection.on_route_recovered(ms(1000));
        }
        net.drive(ms(60_000), &mut deliver);
        data(&net, 0)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_closed_window_is_probed_and_opens() {
    // The listener's application stops reading at 1 s and continues at 8 s. The segment that
    // announces this is lost, so a probe has to detect it.
    let mut net = opened(&Config::default());
    net.write(0, 200 * 1460);
    net.ends[0].connection.close(Time::ZERO);
    net.drive(ms(1000), &mut deliver);
    net.ends[1].connection.set_receive_window(ms(1000), 0);
    net.drive(ms(8000), &mut deliver);
    let stalled = net.ends[1].connection.delivered();
    assert!(stalled < 200 * 1460);
    let probes = data(&net, 0).iter().filter(|line| (1500..8000).contains(&line.0)).count();
    assert!((2..40).contains(&probes), "{probes} probes in 6.5 s");
    net.ends[1].connection.set_receive_window(ms(8000), 64);
    net.drive(ms(500_000), &mut unless(|at, end, _| end == 1 && at == ms(8000)));
    net.assert_complete();
}

#[test]
fn opening_the_window_is_told_at_once() {
    let mut net = opened(&Config::default());
    net.write(0, 200 * 1460);
    net.drive(ms(1000), &mut deliver);
    net.ends[1].connection.set_receive_window(ms(1000), 0);
    net.drive(ms(8000), &mut deliver);
    net.ends[1].connection.set_receive_window(ms(8000), 64);
    net.drive(ms(8500), &mut deliver);
    assert!(times(&net, 1, Flags::ACK).contains(&8000));
    assert!(data(&net, 0).iter().any(|line| line.0 == 8030), "{:?}", data(&net, 0));
}

#[test]
fn a_segment_of_an_old_block_is_answered_at_once_with_a_full_bitmap() {
    let mut net = opened(&Config::default());
    net.write(0, 30 * 1460);
    net.drive(ms(3000), &mut deliver);
    let old = net.record.iter().find(|line| line.1 == 0 && line.2.payload > 0).unwrap().2;
    let before = net.ends[1].connection.delivered();
    net.ends[1].connection.on_segment(ms(3000), &old, Arrival::default());
    let answer = net.ends[1].connection.poll(ms(3000)).segment().unwrap();
    assert_eq!((answer.ack_block, answer.ack_places, answer.ack_tx), (old.block, 0xfff, old.tx));
    assert_eq!(net.ends[1].connection.poll(ms(3000)).segment(), None);
    assert_eq!(net.ends[1].connection.delivered(), before);
}

#[test]
fn a_fin_is_repeated_until_acknowledged() {
    let mut config = Config::default();
    config.rto.fixed = Some(Duration::from_millis(300));
    let mut net = opened(&config);
    net.write(0, 12 * 1460);
    net.ends[0].connection.close(Time::ZERO);
    let mut fins = 0;
    net.drive(
        ms(100_000),
        &mut unless(|_, end, segment| {
            let fin = end == 0 && segment.flags.has(Flags::FIN);
            fins += u32::from(fin);
            fin && fins <= 2
        }),
    );
    // 60 + 6 round trips of 60 ms. The first repetition is a probe, which doubles the next timeout
    // only if it expires.
    assert_eq!(times(&net, 0, Flags::FIN), [420, 720, 1020]);
    net.assert_complete();
}

#[test]
fn an_ack_of_any_transmission_gives_its_own_round_trip() {
    // Section 3.1, AckTxSeqNumber. In a block of two the second segment is lost, and the ACK of the
    // first, delayed by 100 ms, is another 300 ms late: it leaves at 190 ms and arrives at 520 ms.
    // Both have timed out by then (RTO 300 ms), and the first has been sent again unnecessarily. The
    // late ACK is a sample of 460 ms, not of the 160 ms since the second copy.
    let mut config = Config { block_segments: 2, ..Config::default() };
    config.rto.initial = Duration::from_millis(300);
    let mut net = opened(&config);
    net.write(0, 2 * 1460);
    let mut sent = 0;
    net.drive(ms(525), &mut |_, end, segment: &Segment| {
        sent += usize::from(segment.payload > 0);
        match (end, segment.payload > 0) {
            (0, true) if [2, 3].contains(&sent) => vec![],
            (1, _) if segment.flags == Flags::ACK => vec![Duration::from_millis(300)],
            _ => vec![NOW],
        }
    });
    assert_eq!(data(&net, 0), [(60, 0, 0, 1), (60, 0, 1, 2), (360, 0, 0, 3), (520, 0, 1, 4)]);
    assert_eq!(net.ends[0].connection.sender().estimator().ertt(), Some(0.46));
}

#[test]
fn frozen_by_elfn_an_ack_of_an_older_segment_is_not_enough() {
    // Section 3.3: the frozen state ends at the ACK of the latest segment sent. Segment 2 is lost.
    // The ACK of 0 and 1 (delayed by 100 ms, it arrives at 220 ms) comes after the notice and
    // leaves the sender frozen. Segment 2 times out at 260, and 3 is sent, whose ACK ends the
    // frozen state.
    let mut net = opened(&elfn(Notices::Failure));
    net.write(0, 1 << 20);
    let mut fate = unless(|at, _, segment| at == ms(60) && segment.place == 0b100);
    net.drive(ms(100), &mut fate);
    net.ends[0].connection.on_route_failure(ms(100));
    net.drive(ms(250), &mut fate);
    assert_eq!(net.ends[0].connection.stats().acked_bytes, 2 * 1460);
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Frozen);
    net.drive(ms(310), &mut fate);
    assert_eq!(data(&net, 0)[3..], [(260, 0, 3, 4)]);
    net.drive(ms(320), &mut fate);
    assert_eq!(net.ends[0].connection.sender().congestion().state(), congestion::State::Normal);
}

#[test]
fn an_ack_of_what_was_never_sent_is_ignored_altogether() {
    // Two segments are in flight, transmissions 1 and 2. An ACK of a third place, and an ACK that
    // names a third transmission, are false. An ACK of the same places that names transmission 2 is
    // accepted.
    let mut net = opened(&Config::default());
    net.write(0, 12 * 1460);
    net.drive(ms(70), &mut deliver);
    let mut hear = |ack_places, ack_tx, window| {
        let ack = Segment { ack_places, ack_tx, window, flags: Flags::ACK, ..Segment::default() };
        net.ends[0].connection.on_segment(ms(70), &ack, Arrival::default());
        net.ends[0].connection.stats().acked_bytes
    };
    assert_eq!(hear(0b111, 2, 9), 0);
    assert_eq!(hear(0b011, 3, 9), 0);
    assert_eq!(hear(0b011, 200, 9), 0);
    assert_eq!(hear(0b011, 2, 9), 2 * 1460);
}

#[test]
fn after_a_move_the_window_is_the_one_that_was_agreed() {
    // Both ends have agreed on three. The port's own setting, whose other parameters apply, is
    // twelve.
    let mut agreed = Config::default();
    agreed.congestion.window = 3;
    let mut own = agreed.clone();
    own.congestion.window = 12;
    let mut net = opened(&agreed);
    net.write(0, 24 * 1460);
    net.drive(ms(200), &mut deliver);
    assert!(net.ends[0].connection.sender().estimator().ertt().is_some());
    net.ends[0].connection.restart_control(ms(200), &own);
    let sender = net.ends[0].connection.sender();
    assert_eq!((sender.window(), sender.estimator().ertt()), (3, None));
}

#[test]
fn an_ack_of_what_cannot_have_arrived_ends_the_connection() {
    // The second block skips transmissions 1 to 5. An honest peer names 6 and 7. A dishonest one
    // names the number that it expects, or none.
    for (ack_tx, is_honest) in [(6, true), (7, true), (1, false), (5, false), (0, false)] {
        let mut net = opened(&Config::default());
        net.ends[0].connection.skip_next(|| 5);
        net.write(0, 24 * 1460);
        let begun = |net: &Net| data(net, 0).iter().any(|(_, block, ..)| *block == 1);
        while !begun(&net) {
            net.drive(net.now + Duration::from_millis(1), &mut deliver);
        }
        let sent: Vec<u8> = data(&net, 0).iter().filter(|(_, block, ..)| *block == 1).map(|(.., tx)| *tx).collect();
        assert_eq!(sent[0], 6);
        let ack = Segment { ack_block: 1, ack_places: 1, ack_tx, window: 9, flags: Flags::ACK, ..Segment::default() };
        let (connection, now) = (&mut net.ends[0].connection, net.now);
        connection.on_segment(now, &ack, Arrival::default());
        let expected = if is_honest { State::Established } else { State::Ended(End::Deceived) };
        assert_eq!(connection.state(), expected, "{ack_tx}");
        if !is_honest {
            let Output::Transmit(last) = connection.poll(now) else { panic!("the peer is told") };
            assert!(last.flags.has(Flags::RST));
        }
    }
}

/// A listener that has accepted a connection whose blocks count from 0.
fn listener() -> Connection {
    let mut connection = Connection::new(&Config::default(), Role::Receiver);
    let syn = Segment { window: 9, flags: Flags::SYN, ..Segment::default() };
    connection.on_segment(ms(0), &syn, Arrival::default());
    while connection.poll(ms(0)).segment().is_some() {}
    connection
}

fn put(connection: &mut Connection, block: u16, place: u8, payload: u16) -> Option<(u64, u16)> {
    put_at(connection, block, place, payload, false)
}

fn put_last(connection: &mut Connection, block: u16, place: u8, payload: u16) -> Option<(u64, u16)> {
    put_at(connection, block, place, payload, true)
}

fn put_at(connection: &mut Connection, block: u16, place: u8, payload: u16, last: bool) -> Option<(u64, u16)> {
    let segment = Segment { block, place: 1 << place, payload, tx: 1, last, ..Segment::default() };
    let placement = connection.on_segment(ms(1), &segment, Arrival::default());
    placement.map(|placement| (placement.offset, placement.bytes))
}

#[test]
fn a_block_is_not_believed_while_the_one_before_has_a_hole() {
    // Section 3.2: the next block is sent only when all segments of a block are acknowledged.
    let mut listener = listener();
    assert_eq!(put(&mut listener, 0, 0, 1460), Some((0, 1460)));
    assert_eq!(put_last(&mut listener, 0, 2, 1460), Some((2920, 1460)));
    assert_eq!(put(&mut listener, 1, 0, 1460), None);
    assert_eq!(listener.delivered(), 1460);
    assert_eq!(put(&mut listener, 0, 1, 1460), Some((1460, 1460)));
    assert_eq!(put(&mut listener, 2, 0, 1460), None, "a block too far");
    assert_eq!(put(&mut listener, 1, 0, 1460), Some((4380, 1460)));
    assert_eq!(listener.delivered(), 5840);
}

#[test]
fn a_block_is_not_believed_while_the_end_of_the_one_before_is_missing() {
    // Places 0 and 1 of 5 look like a complete block of two. Only the segment marked as the last
    // shows the length.
    let mut listener = listener();
    assert_eq!(put(&mut listener, 0, 0, 1460), Some((0, 1460)));
    assert_eq!(put(&mut listener, 0, 1, 1460), Some((1460, 1460)));
    assert_eq!(put_last(&mut listener, 1, 0, 9), None, "the rest of block 0 would be taken for received");
    let fin = Segment { block: 1, place: 1, tx: 1, last: true, flags: Flags::FIN, ..Segment::default() };
    listener.on_segment(ms(1), &fin, Arrival::default());
    assert!(!listener.has_peer_closed(), "the stream would be cut short");
    for place in 2..4 {
        assert!(put(&mut listener, 0, place, 1460).is_some());
    }
    assert_eq!(put(&mut listener, 1, 0, 9), None);
    assert_eq!(put_last(&mut listener, 0, 4, 1460), Some((5840, 1460)));
    assert_eq!(put(&mut listener, 0, 5, 1460), None, "after the last");
    assert_eq!(put_last(&mut listener, 1, 0, 9), Some((7300, 9)));
    assert_eq!(listener.delivered(), 7309);
}

#[test]
fn only_the_last_segment_of_a_block_may_be_short() {
    // Section 3.2, footnote 2. A segment that contradicts it would overlap or leave a gap.
    let mut first = listener();
    assert_eq!(put(&mut first, 0, 2, 500), None, "short and not the last");
    assert_eq!(put_last(&mut first, 0, 2, 500), Some((2920, 500)));
    assert_eq!(put(&mut first, 0, 3, 1460), None, "after a short one");
    assert_eq!(put(&mut first, 0, 1, 500), None, "short before the last");
    assert_eq!(put(&mut first, 0, 2, 1460), None, "another length than before");
    assert_eq!(put(&mut first, 0, 0, 1460), Some((0, 1460)));
    assert_eq!(put(&mut first, 0, 1, 1460), Some((1460, 1460)));
    assert_eq!(first.delivered(), 3420);
    assert_eq!(put(&mut first, 1, 0, 1460), Some((3420, 1460)), "the next block follows the short one");
    let mut second = listener();
    assert_eq!(put(&mut second, 0, 4, 1460), Some((5840, 1460)));
    assert_eq!(put_last(&mut second, 0, 3, 9), None, "the last below a later one");
    assert_eq!(put(&mut second, 0, 5, 1461), None, "longer than a segment");
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        let Err(ParameterError { name, .. }) = config.check() else { panic!("accepted") };
        name
    };
    assert_eq!(refused(|c| c.congestion.window = 0), "window");
    assert_eq!(refused(|c| c.congestion.window = 13), "window");
    assert_eq!(refused(|c| c.congestion.acks = 0), "acks");
    assert_eq!(refused(|c| c.block_segments = 13), "block_segments");
    assert_eq!(refused(|c| c.segment = 0), "segment");
    assert_eq!(refused(|c| c.first_block = 4096), "first_block");
    assert_eq!(refused(|c| c.receive_window = 0), "receive_window");
    assert_eq!(refused(|c| c.rto.g = 1.5), "rto.g");
    assert_eq!(refused(|c| c.rto.h1 = f64::NAN), "rto.h1");
    assert_eq!(refused(|c| c.rto.min = Duration::ZERO), "rto.min");
    assert_eq!(refused(|c| c.rto.margin = Duration::MAX), "rto.margin");
    let released = pacing::Config::Adaptive(pacing::AdaptiveConfig::released());
    let config = Config { pacing: released, ..Config::default() };
    assert_eq!(config.check().unwrap_err().name, "pacing.limit");
}
