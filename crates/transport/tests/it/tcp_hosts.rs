//! Tests of the host profile: which connections stay open, and what is retransmitted. They cover
//! closed windows, lost SYNs, and segments after the end.

use crate::common::duplex::{Duplex, none};
use crate::common::ms;
use meshpace_core::rng::Purpose;
use meshpace_core::{Rng, Time};
use meshpace_transport::tcp::{self, Connection, End, Flags, Segment};

/// A pair whose client has connected at time 0.
fn opened(config: &tcp::Config) -> Duplex {
    let mut pair = Duplex::new(config);
    pair.ends[0].open(Time::ZERO);
    pair
}

/// Times in ms of the data segments from the end that opened.
fn data(pair: &Duplex) -> Vec<u64> {
    pair.record.iter().filter(|line| line.1 == 0 && line.2.payload > 0).map(|line| line.0.0 / 1_000_000).collect()
}

#[test]
fn both_syns_tell_the_window_of_their_sender() {
    // RFC 9293, section 3.1: each segment contains the window, so an end that has data at once can
    // send it.
    let mut pair = opened(&tcp::Config { max_window: 8, ..tcp::Config::default() });
    pair.drive(ms(1000), &mut none);
    let syns = pair.record.iter().filter(|line| line.2.flags.has(Flags::SYN));
    let told: Vec<_> = syns.map(|&(_, side, segment, _)| (side, segment.window)).collect();
    assert_eq!(told, [(0, 8 * 1460), (1, 8 * 1460)]);
}

#[test]
fn data_repeated_without_its_fin_is_acknowledged_in_time_wait() {
    // RFC 9293, section 3.10.7.4: TIME-WAIT acknowledges repeated segments. End 1 has closed
    // before, and its ACKs of the last data are lost. The peer's timer repeats the first
    // unacknowledged segment, which has no FIN.
    let mut pair = opened(&tcp::Config::default());
    pair.closes_after = [false; 2];
    pair.drive(ms(200), &mut none);
    pair.ends[1].close(pair.now);
    pair.drive(ms(400), &mut none);
    pair.ends[0].write(ms(400), 10 * 1460);
    pair.drive(ms(700), &mut none);
    assert_eq!(pair.ends[0].acknowledged(), 10 * 1460);
    pair.ends[0].write(ms(700), 2 * 1460);
    pair.ends[0].close(ms(700));
    let mut lost = 0;
    pair.drive(ms(130_000), &mut |side, segment| {
        let last = side == 1 && segment.ack > 10 * 1460;
        lost += u32::from(last);
        last && lost <= 2
    });
    assert_eq!(pair.ends[1].delivered(), 12 * 1460);
    assert_eq!(pair.ends.each_ref().map(Connection::end), [Some(End::Closed); 2], "{:?}", pair.said());
    // The repetition contains the first segment only.
    let (at, _, repeated, _) = *pair.record.iter().rfind(|line| line.1 == 0).unwrap();
    assert_eq!((repeated.seq, repeated.flags), (10 * 1460, Flags::ACK), "at {at}");
}

#[test]
fn a_peer_that_answers_probes_is_kept_while_some_are_lost() {
    // RFC 9293, section 3.8.6.1: a connection stays open as long as probes are answered. Nobody
    // reads for 20 minutes, and a tenth of the packets is lost in each direction. At least one of
    // ten probes in 100 s is answered, except with the probability 0.19^10 = 6e-8.
    for seed in 0..20 {
        let mut pair = opened(&tcp::Config { max_window: 8, ..tcp::Config::default() });
        pair.reads[1] = false;
        pair.ends[0].write(Time::ZERO, 1_000_000);
        pair.drive(ms(20_000), &mut none);
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        pair.drive(ms(1_200_000), &mut |_, _| rng.below(10) == 0);
        assert_eq!(pair.ends.each_ref().map(Connection::end), [None; 2], "seed {seed}");
        let late = pair.record.iter().filter(|line| line.1 == 0 && line.0 > ms(200_000)).count();
        assert!((100..=101).contains(&late), "{late} probes in 1000 s");
    }
}

#[test]
fn the_back_off_of_probes_is_not_that_of_data() {
    let mut pair = opened(&tcp::Config { max_window: 8, ..tcp::Config::default() });
    pair.reads[1] = false;
    pair.ends[0].write(Time::ZERO, 1_000_000);
    pair.drive(ms(600_000), &mut none);
    let before = data(&pair).len();
    pair.reads[1] = true;
    let mut lost = 0;
    pair.drive(ms(630_000), &mut |side, segment| {
        let first = side == 0 && segment.payload > 0 && lost < 8;
        lost += u32::from(first);
        first
    });
    // The whole window is lost, so there are no duplicate ACKs. It is retransmitted after the
    // smallest RTO, 0.2 s.
    let sent = data(&pair);
    assert_eq!(sent[before..before + 8], [sent[before]; 8]);
    assert_eq!(sent[before + 8] - sent[before], 200);
    assert_eq!(pair.ends[1].delivered(), 1_000_000);
}

#[test]
fn data_after_lost_syns_begins_with_3_s() {
    // RFC 6298, section 5.7. SYNs leave at 0, 3, 9 and 21 s; the last one is answered. The first
    // data is lost twice: it is retransmitted after 3 s and after another 6 s.
    let mut pair = opened(&tcp::Config::default());
    let mut syns = 0;
    pair.drive(ms(22_000), &mut |side, segment| {
        syns += u32::from(side == 0 && segment.flags == Flags::SYN);
        syns < 4
    });
    assert!(pair.ends[0].is_established() && syns == 4);
    let now = pair.now;
    pair.ends[0].write(now, 1000);
    let mut lost = 0;
    pair.drive(ms(60_000), &mut |_, segment: &Segment| {
        lost += u32::from(segment.payload > 0);
        segment.payload > 0 && lost <= 2
    });
    assert_eq!(data(&pair), [22_000, 25_000, 31_000]);
    assert_eq!(pair.ends[1].delivered(), 1000);
}
