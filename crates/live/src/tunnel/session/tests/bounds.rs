//! What a far end can have a session keep and do: memory that is not there is refused to the stream or datagram that needs it, and openings
//! and short datagrams have a rate.

use super::super::frame::{Frame, Reader};
use super::super::store::STORE;
use super::{Carrier, Class, Got, Phase, STREAMS, Session, Side};
use meshpace_core::{Duration, Time};
use meshpace_session::budget::{Account, Bounds, Budget};
use meshpace_session::networks::source_of;
use meshpace_session::ring::PAGE;

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Memory of so many bytes, and the accounts of a session and of others.
fn memory(bytes: usize) -> (Budget, Account, Account) {
    let budget = Budget::new(Bounds { port: bytes, source: bytes, key: bytes });
    let [own, others] = [1, 2].map(|source| budget.account(source_of([10, source, 0, 1].into()), None));
    (budget, own, others)
}

/// The far end says this.
fn say(session: &mut Session, now: Time, frames: &[Frame<'_>]) {
    let mut said = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut said));
    session.on_bytes(now, Carrier::Express, &said).unwrap();
}

/// Streams that the session breaks off.
fn broken_off(session: &mut Session) -> Vec<u32> {
    let (mut out, mut reader, mut streams) = (Vec::new(), Reader::default(), Vec::new());
    session.fill(Time::ZERO, Carrier::Express, usize::MAX, &mut out);
    let mut rest = &out[..];
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        if let Frame::Reset { stream } = frame {
            streams.push(stream);
        }
    }
    streams
}

/// A session with two streams that are open.
fn two_streams(account: Account) -> Session {
    let mut session = Session::new(Side::Accepts).booked_in(account);
    for stream in 1..=2 {
        say(&mut session, Time::ZERO, &[Frame::Open { stream, target: "a:1".into() }]);
        session.answer(stream, 0);
    }
    session
}

#[test]
fn a_stream_without_memory_is_broken_off_and_others_go_on() {
    let (budget, own, others) = memory(5 * PAGE);
    let mut session = two_streams(own);
    let bytes = vec![7; 4 * PAGE];
    say(&mut session, Time::ZERO, &[Frame::Data { stream: 1, offset: 0, bytes: &bytes[..2 * PAGE] }]);
    say(&mut session, Time::ZERO, &[Frame::Data { stream: 2, offset: 0, bytes: &bytes }]);
    assert_eq!((session.phase(1), session.phase(2)), (Phase::Open, Phase::Reset));
    assert_eq!((broken_off(&mut session), budget.used()), (vec![2], 2 * PAGE));
    // What comes of it is passed over from then on.
    say(&mut session, Time::ZERO, &[Frame::Data { stream: 2, offset: 4 * PAGE as u64, bytes: b"x" }]);
    assert_eq!(session.read(1, &mut vec![0; 3 * PAGE]), Ok(Got::Bytes(2 * PAGE)));
    assert_eq!(session.write(Time::ZERO, 1, b"answer"), Ok(6));
    // The same for what is written: nothing can be written where nothing is left.
    let mut session = two_streams(others.clone());
    while others.take(1).is_ok() {}
    assert!(session.write(Time::ZERO, 1, b"x").is_err());
    assert_eq!(broken_off(&mut session), [1]);
    assert_eq!(session.phase(2), Phase::Open);
}

#[test]
fn a_writer_that_finds_little_memory_is_woken_when_there_is_room() {
    let (_, own, _) = memory(PAGE);
    let mut session = two_streams(own);
    session.take_touched();
    assert_eq!(session.write(Time::ZERO, 1, &[7; 2 * PAGE]), Ok(PAGE));
    assert_eq!(session.write(Time::ZERO, 1, b"x"), Ok(0));
    session.fill(Time::ZERO, Carrier::Bulk, 1000, &mut Vec::new());
    session.fill(Time::ZERO, Carrier::Express, 1000, &mut Vec::new());
    assert!(session.take_touched().contains(&1));
    assert!(session.write(Time::ZERO, 1, &[7; 2 * PAGE]).unwrap() > 0);
}

#[test]
fn what_waits_is_booked_until_it_leaves() {
    let (budget, own, _) = memory(1 << 20);
    let mut session = two_streams(own);
    say(&mut session, Time::ZERO, &[Frame::Flow { flow: 1, class: Class::Reliable, target: "a:1".into() }]);
    assert_eq!(session.write(Time::ZERO, 1, &[7; 200_000]), Ok(128 << 10));
    assert_eq!(budget.used(), 128 << 10);
    session.send_datagram(Time::ZERO, 1, &[7; 10_000]).unwrap();
    assert!(budget.used() > (128 << 10) + 10_000);
    session.leave(1, 0);
    session.release(1);
    assert_eq!(budget.used(), 0);
}

#[test]
fn streams_and_flows_are_opened_at_a_rate() {
    let mut session = Session::new(Side::Accepts);
    let (mut stream, mut flow, mut begun) = (0, 0, Vec::new());
    for seconds in [0, 1, 3] {
        let mut all = [0; 2];
        for _ in 0..3000 {
            // Each is over at once, so that few are open.
            (stream, flow) = (stream + 1, flow + 1);
            let opens = [
                Frame::Open { stream, target: "a:1".into() },
                Frame::Reset { stream },
                Frame::Flow { flow, class: Class::Latest, target: "a:1".into() },
                Frame::Leave { flow, code: 0 },
            ];
            say(&mut session, at(seconds), &opens);
            let asked = session.take_asked();
            all[0] += asked.len();
            asked.iter().for_each(|(number, _)| session.release(*number));
            all[1] += session.take_asked_flows().len();
            session.fill(at(seconds), Carrier::Express, usize::MAX, &mut Vec::new());
        }
        begun.push((all, session.refused()));
    }
    // As many as may be open at once, then 500 a second, of both kinds together.
    assert_eq!(begun[0], ([STREAMS / 2; 2], 3000 - STREAMS as u64 / 2));
    assert_eq!((begun[1].0, begun[2].0), ([250; 2], [500; 2]));
    assert_eq!((session.count(), session.datagrams().flows), (0, 0));
}

#[test]
fn short_datagrams_come_at_a_rate_and_long_ones_as_they_are() {
    let mut session = Session::new(Side::Accepts);
    say(&mut session, at(0), &[Frame::Flow { flow: 1, class: Class::Latest, target: "a:1".into() }]);
    let mut came = |seconds: u64, length: usize| {
        let datagram = Frame::Datagram { flow: 1, bytes: vec![7; length] };
        (0..30_000).for_each(|_| say(&mut session, at(seconds), std::slice::from_ref(&datagram)));
        let came = session.take_datagrams().len();
        (came, session.datagrams().dropped)
    };
    assert_eq!(came(0, 0), (25_000, 5000));
    assert_eq!(came(0, 512), (30_000, 5000));
    assert_eq!(came(1, 100), (25_000, 10_000));
}

#[test]
fn what_waits_in_all_flows_of_a_session_is_bounded() {
    let mut session = Session::new(Side::Accepts);
    for flow in 1..=100 {
        say(&mut session, at(0), &[Frame::Flow { flow, class: Class::Reliable, target: "a:1".into() }]);
        (0..5).for_each(|_| session.send_datagram(at(0), flow, &[7; 50_000]).unwrap());
    }
    // 25 MB were to be sent.
    let kept = session.kept_datagrams();
    assert!(kept <= STORE && kept > STORE - 100_000, "{kept} bytes");
    assert_eq!(session.datagrams().dropped, 500 - kept as u64 / 50_000);
    let store = session.store();
    assert!((kept..=STORE).contains(&store.held()));
    (1..=100).for_each(|flow| session.leave(flow, 0));
    assert_eq!((session.kept_datagrams(), store.held()), (0, 0));
}
