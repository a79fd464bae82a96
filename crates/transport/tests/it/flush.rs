//! Tests Flush packet by packet: its pace, its silence and its rounds (SenSys 2007, as described in
//! the source of `flush`).

use crate::common::{Fate, From, Line, Pair, ms};
use meshpace_core::{Duration, Time};
use meshpace_transport::flush::{HOLES, Hole, Segment as Flush};
use meshpace_transport::tcp::Flags;
use meshpace_transport::{Segment, names};

fn flush_of(line: &Line) -> Flush {
    match line.segment {
        Segment::Flush(segment) => segment,
        other => panic!("not of Flush: {other:?}"),
    }
}

/// A transfer of `segments` segments over four hops of 8 ms each.
fn transfer(segments: u64, fate: &mut dyn FnMut(&Line) -> Fate) -> Pair {
    let mut pair = Pair::new(&names::lookup("flush").unwrap(), ms(32).since(Time::ZERO), 4);
    pair.sender.open(Time::ZERO);
    pair.sender.write(Time::ZERO, 1460 * segments);
    pair.sender.close(Time::ZERO);
    pair.drive(ms(3_600_000), fate);
    assert_eq!(pair.receiver.delivered(), 1460 * segments);
    assert!(pair.sender.is_done() && pair.receiver.is_done());
    pair
}

/// Times and numbers, from 0, of the data segments.
fn data(pair: &Pair) -> Vec<(Time, u64)> {
    let is_data = |line: &&Line| line.from == From::Sender && line.segment.payload() > 0;
    pair.record.iter().filter(is_data).map(|line| (line.at, flush_of(line).offset / 1460)).collect()
}

/// Answers of the sink to the ends of rounds.
fn answers(pair: &Pair) -> Vec<Flush> {
    let answers = pair.record.iter().filter(|line| line.from == From::Receiver).map(flush_of);
    answers.filter(|segment| !segment.flags.has(Flags::SYN)).collect()
}

#[test]
fn an_object_leaves_at_the_pace_of_the_path_and_is_answered_once() {
    let pair = transfer(1000, &mut |_| Fate::Deliver);
    let data = data(&pair);
    assert_eq!(data.len(), 1000);
    // An exchange of 1552 bytes at 2 Mbit/s takes 1.542 + 6.208 ms. The interval is four exchanges
    // plus 7 %.
    let interval = Duration::from_secs_f64(4.0 * 1.07 * 7.75e-3);
    assert!(data.windows(2).all(|two| two[1].0.since(two[0].0) == interval));
    assert_eq!(answers(&pair).len(), 1);
    assert_eq!(pair.sender.stats().timeouts, 0);
}

#[test]
fn what_is_missing_is_named_and_sent_in_rounds() {
    // Ten single segments are lost. The sink names six of them, then four.
    let mut lost = (0..10).map(|place| 20 * place + 3).collect::<Vec<u64>>();
    let pair = transfer(300, &mut |line| {
        let number = flush_of(line).offset / 1460;
        match lost.iter().position(|&missing| missing == number) {
            Some(place) if line.segment.payload() > 0 => {
                lost.remove(place);
                Fate::Lose
            }
            _ => Fate::Deliver,
        }
    });
    let again: Vec<u64> = data(&pair)[300..].iter().map(|sent| sent.1).collect();
    assert_eq!(again, [3, 23, 43, 63, 83, 103, 123, 143, 163, 183]);
    let answers = answers(&pair);
    let named: Vec<usize> = answers.iter().map(|answer| answer.named().count()).collect();
    assert_eq!(named, [HOLES, 4, 0]);
    assert_eq!((answers[0].offset, answers[0].holes[1]), (3 * 1460, Hole { from: 20, length: 1 }));
    assert_eq!(pair.sender.stats().retransmissions, 10);
}

#[test]
fn an_end_that_is_lost_is_asked_for_and_tells_what_is_missing_before_it() {
    // The last ten segments of an object are lost. The timer repeats the last one, whose answer
    // names the nine before it.
    let mut lost = 0;
    let pair = transfer(100, &mut |line| {
        let is_end = line.segment.payload() > 0 && flush_of(line).offset >= 90 * 1460;
        if is_end && lost < 10 {
            lost += 1;
            return Fate::Lose;
        }
        Fate::Deliver
    });
    let again: Vec<u64> = data(&pair)[100..].iter().map(|sent| sent.1).collect();
    assert_eq!(again, [99, 90, 91, 92, 93, 94, 95, 96, 97, 98]);
    assert_eq!(answers(&pair)[0].holes[0], Hole { from: 0, length: 9 });
    assert_eq!(pair.sender.stats().timeouts, 1);
}

#[test]
fn a_longer_stream_goes_in_objects() {
    let pair = transfer(2500, &mut |_| Fate::Deliver);
    let ends: Vec<u64> = answers(&pair).iter().map(|answer| answer.offset / 1460).collect();
    assert_eq!(ends, [1000, 2000, 2500]);
    // Nothing leaves until the answer has arrived: 32 ms in each direction, more than the interval.
    let data = data(&pair);
    assert_eq!(data[1000].0.since(data[999].0), Duration::from_millis(64));
}
