//! Two ends of a session in virtual time, with carriers that delay and cut as a seed says, and a peer that says anything.

mod bounds;
mod datagrams;
mod scarcity;

use super::carrier::Carrier;
use super::flow::Class;
use super::frame::{Frame, Reader};
use super::incoming::{FIRST, WINDOW};
use super::machine::{Got, Phase, STREAMS, Session, Side};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rng, Time};
use std::collections::{BTreeMap, VecDeque};

/// What a stream carries at an offset, one way or the other.
fn byte(number: u32, end: usize, offset: u64) -> u8 {
    let mixed = (u64::from(number) << 33 ^ (end as u64) << 32 ^ offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// One way of a carrier: bytes and when they may arrive, then acknowledgements and when those may.
#[derive(Default)]
struct Way {
    flying: VecDeque<(Time, Vec<u8>)>,
    acknowledging: VecDeque<(Time, usize)>,
    under_way: usize,
    /// Reads what is handed over.
    reader: Reader,
}

/// What one end of a stream has done.
#[derive(Default)]
struct Progress {
    written: u64,
    read: u64,
    finished: bool,
    ended: bool,
}

/// Two ends, 0 who connects and 1 who accepts.
struct World {
    now: Time,
    rng: Rng,
    ends: [Session; 2],
    /// By the end that sends, and by carrier.
    ways: [[Way; 2]; 2],
    /// By stream and end.
    streams: BTreeMap<u32, [Progress; 2]>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            now: Time::ZERO,
            rng: Rng::stream(seed, Purpose::Test, 0),
            ends: [Session::new(Side::Connects), Session::new(Side::Accepts)],
            ways: Default::default(),
            streams: BTreeMap::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    fn open(&mut self) -> u32 {
        let number = self.ends[0].open(self.now, "host:80").unwrap();
        self.streams.insert(number, Default::default());
        number
    }

    fn write(&mut self, end: usize, number: u32, length: u64) {
        let progress = &mut self.streams.get_mut(&number).unwrap()[end];
        let bytes: Vec<u8> = (0..length).map(|at| byte(number, end, progress.written + at)).collect();
        if let Ok(written) = self.ends[end].write(self.now, number, &bytes) {
            progress.written += written as u64;
        }
    }

    fn finish(&mut self, end: usize, number: u32) {
        let progress = &mut self.streams.get_mut(&number).unwrap()[end];
        progress.finished |= self.ends[end].finish(number).is_ok();
    }

    /// Reads and compares; false if nothing was there.
    fn read(&mut self, end: usize, number: u32, length: usize) -> bool {
        if end == 1 && self.ends[1].opened() < number {
            // It has not been asked for yet.
            return false;
        }
        let mut into = vec![0; length];
        let progress = &mut self.streams.get_mut(&number).unwrap()[end];
        match self.ends[end].read(number, &mut into).unwrap() {
            Got::Bytes(length) => {
                let right = |(at, got): (usize, &u8)| *got == byte(number, 1 - end, progress.read + at as u64);
                assert!(into[..length].iter().enumerate().all(right), "stream {number} after {} bytes", progress.read);
                progress.read += length as u64;
                true
            }
            Got::End => {
                progress.ended = true;
                false
            }
            Got::Nothing => false,
        }
    }

    /// An end hands as much as that to a carrier.
    fn hand_over(&mut self, end: usize, carrier: Carrier, room: usize) {
        let mut out = Vec::new();
        self.ends[end].fill(self.now, carrier, room, &mut out);
        assert!(out.len() <= room, "{} of {room} bytes", out.len());
        if carrier == Carrier::Bulk {
            check_bulk(&mut self.ways[end][carrier as usize].reader, &out);
        }
        if !out.is_empty() {
            let at = self.now + Duration::from_millis(1 + self.below(300));
            let way = &mut self.ways[end][carrier as usize];
            way.under_way += out.len();
            way.flying.push_back((at, out));
        }
    }

    /// A carrier brings a piece of what is due, and what was acknowledged.
    fn carry(&mut self, end: usize, carrier: Carrier) {
        let (now, piece) = (self.now, 1 + self.below(3000) as usize);
        let later = now + Duration::from_millis(1 + self.below(50));
        let way = &mut self.ways[end][carrier as usize];
        while let Some((_, length)) = way.acknowledging.pop_front_if(|(at, _)| *at <= now) {
            way.under_way -= length;
        }
        let under_way = way.under_way;
        let mut arrived = Vec::new();
        if let Some((at, bytes)) = way.flying.front_mut()
            && *at <= now
        {
            arrived = bytes.drain(..piece.min(bytes.len())).collect();
            way.acknowledging.push_back((later, arrived.len()));
            if bytes.is_empty() {
                way.flying.pop_front();
            }
        }
        self.ends[end].on_under_way(now, carrier, under_way);
        self.ends[1 - end].on_bytes(now, carrier, &arrived).unwrap();
        for (number, target) in self.ends[1].take_asked() {
            assert_eq!(target, "host:80");
            self.ends[1].answer(number, 0);
        }
    }

    fn check_bounds(&self) {
        for end in &self.ends {
            let [incoming, _, _] = end.kept();
            assert!(incoming as u64 <= end.promised(), "{incoming} bytes, {} promised", end.promised());
            assert!(end.promised() <= end.count() as u64 * WINDOW);
        }
    }

    /// Everybody does something, at random.
    fn step(&mut self, stalled: u32) {
        let span = Duration::from_millis(self.below(20));
        self.now += span;
        if self.streams.len() < 20 && self.below(10) == 0 {
            self.open();
        }
        for end in 0..2 {
            for carrier in Carrier::ALL {
                self.carry(end, carrier);
                let room = self.below(9000) as usize;
                if self.below(3) == 0 {
                    self.hand_over(end, carrier, room);
                }
            }
            let place = self.below(20) as usize;
            let Some(number) = self.streams.keys().nth(place).copied() else { continue };
            let length = if self.below(3) == 0 { self.below(60_000) } else { self.below(300) };
            match self.below(40) {
                0..15 => self.write(end, number, length),
                15 => self.finish(end, number),
                _ if number == stalled => {}
                _ => drop(self.read(end, number, length as usize + 1)),
            }
        }
        self.check_bounds();
    }

    /// Everything that was written arrives, and every stream ends.
    fn wind_up(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "it never ends");
            self.now += Duration::from_millis(10);
            let numbers: Vec<u32> = self.streams.keys().copied().collect();
            for end in 0..2 {
                for carrier in Carrier::ALL {
                    self.carry(end, carrier);
                    self.hand_over(end, carrier, 4000);
                }
                for number in numbers.iter().copied() {
                    self.finish(end, number);
                    while self.read(end, number, 5000) {}
                }
            }
            let over = |number: &u32| (0..2).all(|end| self.ends[end].has_arrived(*number));
            if self.streams.values().flatten().all(|progress| progress.ended) && numbers.iter().all(over) {
                break;
            }
        }
        for (number, [a, b]) in &self.streams {
            assert_eq!((a.written, b.written), (b.read, a.read), "stream {number}");
        }
        for end in 0..2 {
            let numbers: Vec<u32> = self.streams.keys().copied().collect();
            numbers.iter().for_each(|number| self.ends[end].release(*number));
            let mut out = Vec::new();
            self.ends[end].fill(self.now, Carrier::Express, usize::MAX, &mut out);
            let reset = |bytes: &[u8]| bytes.first() == Some(&6);
            assert!(!reset(&out), "a stream that is over is not broken off");
            let [incoming, outgoing, _] = self.ends[end].kept();
            assert_eq!((incoming, outgoing, self.ends[end].promised(), self.ends[end].count()), (0, 0, 0, 0));
        }
    }
}

/// Bulk carries datagrams, data and, right behind the last of them, the end of a stream. All other frames go by express.
fn check_bulk(reader: &mut Reader, mut bytes: &[u8]) {
    let mut last = None;
    while let Some(frame) = reader.next(&mut bytes).unwrap() {
        last = match frame {
            Frame::Data { stream, offset, bytes } => Some((stream, offset + bytes.len() as u64)),
            Frame::Fin { stream, end } if last == Some((stream, end)) => None,
            Frame::Datagram { .. } => None,
            other => panic!("{other:?} goes by bulk"),
        };
    }
    assert!(bytes.is_empty());
}

#[test]
fn every_stream_arrives_whole_and_in_order_whatever_the_carriers_do() {
    let mut carried = [0; 2];
    for seed in 0..60 {
        let mut world = World::new(seed);
        for _ in 0..1500 {
            world.step(0);
        }
        world.wind_up();
        for progress in world.streams.values() {
            carried[0] += progress[0].written;
            carried[1] += progress[1].written;
        }
    }
    assert!(carried.iter().all(|bytes| *bytes > 10_000_000), "{carried:?} bytes: too little to say anything");
}

#[test]
fn a_reader_that_stops_holds_back_its_own_stream_alone() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let stalled = world.open();
        for _ in 0..3000 {
            world.step(stalled);
        }
        // It wrote as much as fits at both ends, and no more; the others went on.
        let [there, back] = &world.streams[&stalled];
        assert!(there.written <= FIRST + super::outgoing::QUEUE as u64 && back.read == 0 && there.read == 0);
        let others: u64 =
            world.streams.iter().filter(|(number, _)| **number != stalled).map(|(_, [_, far])| far.read).sum();
        assert!(others > 300_000, "seed {seed}: {others} bytes");
        world.wind_up();
    }
}

/// A session with streams that are open at both ends, and nothing under way.
fn open(streams: u32) -> World {
    let mut world = World::new(1);
    for _ in 0..streams {
        world.open();
    }
    while (1..=streams).any(|number| world.ends[0].phase(number) != Phase::Open) {
        world.now += Duration::from_millis(400);
        for end in 0..2 {
            world.hand_over(end, Carrier::Express, 4000);
            world.carry(end, Carrier::Express);
        }
    }
    world
}

#[test]
fn a_small_message_beside_bulk_is_the_next_thing_by_express() {
    let mut world = open(3);
    let [bulk, other, keys] = [1, 2, 3];
    world.write(0, bulk, 100_000);
    world.write(0, other, 100_000);
    world.write(0, keys, 50);
    let mut out = Vec::new();
    world.ends[0].fill(world.now, Carrier::Express, 1400, &mut out);
    let message: Vec<u8> = (0..50).map(|at| byte(keys, 0, at)).collect();
    let mut wanted = Vec::new();
    Frame::Data { stream: keys, offset: 0, bytes: &message }.write(&mut wanted);
    assert_eq!(out, wanted, "the message, and nothing before or behind it");
    // Bulk goes by the other carrier, both streams in turns.
    let mut turns = Vec::new();
    let mut out = Vec::new();
    world.ends[0].fill(world.now, Carrier::Bulk, 30_000, &mut out);
    let (mut reader, mut rest) = (super::frame::Reader::default(), &out[..]);
    while let Some(frame) = reader.next(&mut rest).unwrap() {
        let Frame::Data { stream, bytes, .. } = frame else { panic!("{frame:?}") };
        turns.push((stream, bytes.len()));
    }
    let of = |stream| turns.iter().filter(|(of, _)| *of == stream).map(|(_, length)| length).sum::<usize>();
    assert!(of(bulk).abs_diff(of(other)) <= super::machine::TURN && of(bulk) > 10_000, "{turns:?}");
    // The next message leaves as well, although nothing was acknowledged.
    world.write(0, keys, 1);
    let mut out = Vec::new();
    world.ends[0].fill(world.now, Carrier::Express, 1400, &mut out);
    Frame::Data { stream: keys, offset: 50, bytes: &[byte(keys, 0, 50)] }.write(&mut wanted);
    assert_eq!(out, wanted[wanted.len() - out.len()..]);
    assert!(!out.is_empty());
}

#[test]
fn who_writes_more_keeps_its_place_in_line() {
    let mut world = open(2);
    (1..=2).for_each(|number| world.write(0, number, 100_000));
    (0..3).for_each(|_| world.write(0, 1, 1_000));
    let mut out = Vec::new();
    world.ends[0].fill(world.now, Carrier::Bulk, 1400, &mut out);
    let first = super::frame::Reader::default().next(&mut &out[..]).unwrap();
    assert!(matches!(first, Some(Frame::Data { stream: 1, .. })), "{first:?}");
}

#[test]
fn a_stream_that_is_broken_off_is_so_at_both_ends_and_others_are_not() {
    for breaker in 0..2 {
        let mut world = open(2);
        world.write(0, 1, 60_000);
        world.write(1, 1, 60_000);
        world.write(0, 2, 60_000);
        for _ in 0..30 {
            world.now += Duration::from_millis(400);
            for end in 0..2 {
                for carrier in Carrier::ALL {
                    world.hand_over(end, carrier, 3000);
                    world.carry(end, carrier);
                }
            }
        }
        // Bytes of it are under way by both carriers, and one end is rid of it already.
        world.ends[breaker].release(1);
        for _ in 0..300 {
            world.now += Duration::from_millis(400);
            for end in 0..2 {
                for carrier in Carrier::ALL {
                    world.hand_over(end, carrier, 3000);
                    world.carry(end, carrier);
                }
            }
        }
        assert_eq!(world.ends[1 - breaker].phase(1), Phase::Reset);
        assert!(world.ends[1 - breaker].write(world.now, 1, b"x").is_err());
        assert_eq!((world.ends[0].phase(2), world.ends[1].phase(2)), (Phase::Open, Phase::Open));
        world.streams.remove(&1);
        world.ends[1 - breaker].release(1);
        world.wind_up();
    }
}

#[test]
fn garbage_ends_a_session_and_nothing_else() {
    let mut ended = 0;
    for seed in 0..400 {
        let mut rng = Rng::stream(seed, Purpose::Test, 1);
        let mut world = open(4);
        let end = seed as usize % 2;
        let mut out = Vec::new();
        let session = &mut world.ends[end];
        for _ in 0..200 {
            // Something that might be a frame, of a stream that might be there; sometimes with a byte that is another.
            let stream = (rng.next_u64() % 7) as u32;
            let big = [0, 1, 5, FIRST, WINDOW, u64::MAX / 2, u64::MAX][(rng.next_u64() % 7) as usize];
            let bytes = vec![7; 1 + (rng.next_u64() % 40) as usize];
            let frame = match rng.next_u64() % 10 {
                0 => Frame::Open { stream, target: "a:1".into() },
                1 => Frame::Answer { stream, code: (rng.next_u64() % 3) as u8 },
                2 | 3 => Frame::Data { stream, offset: big.saturating_sub(rng.next_u64() % 50), bytes: &bytes },
                4 => Frame::Credit { stream, limit: big },
                5 => Frame::Fin { stream, end: big },
                7 => Frame::Flow { flow: stream, class: Class::Latest, target: "a:1".into() },
                8 => Frame::Datagram { flow: stream, bytes: bytes.clone() },
                9 => Frame::Leave { flow: stream, code: 0 },
                _ => Frame::Reset { stream },
            };
            let mut said = Vec::new();
            frame.write(&mut said);
            if rng.below(8) == 0 {
                let at = (rng.next_u64() % said.len() as u64) as usize;
                said[at] = rng.next_u64() as u8;
            }
            let carrier = Carrier::ALL[(rng.next_u64() % 2) as usize];
            if session.on_bytes(world.now, carrier, &said).is_err() {
                ended += 1;
                break;
            }
            let _ = session.write(world.now, stream, b"to a peer like that");
            let _ = session.read(stream, &mut [0; 100]);
            let _ = session.send_datagram(world.now, stream, b"to a peer like that");
            session.take_asked_flows();
            session.take_datagrams();
            session.take_asked().into_iter().for_each(|(number, _)| session.answer(number, 0));
            session.fill(world.now, carrier, 2000, &mut out);
            let [incoming, _, _] = session.kept();
            assert!(incoming as u64 <= session.promised());
        }
    }
    assert!(ended > 380, "{ended} of 400");
}

#[test]
fn a_peer_that_opens_without_end_and_hears_nothing_is_left() {
    let mut session = Session::new(Side::Accepts);
    let mut said = Vec::new();
    let open = |number: u32, said: &mut Vec<u8>| Frame::Open { stream: number, target: "a:1".into() }.write(said);
    (1..=STREAMS as u32).for_each(|number| open(number, &mut said));
    session.on_bytes(Time::ZERO, Carrier::Express, &said).unwrap();
    assert_eq!((session.count(), session.take_asked().len()), (STREAMS, STREAMS));
    // No more are begun; the answers that say so are bounded, too.
    let refused = (STREAMS as u32 + 1..).take_while(|number| {
        let mut said = Vec::new();
        open(*number, &mut said);
        session.on_bytes(Time::ZERO, Carrier::Express, &said).is_ok()
    });
    assert_eq!(refused.count(), 2 * STREAMS);
    assert_eq!((session.count(), session.take_asked().len()), (STREAMS, 0));
    // All that they may send is what is promised to each at first.
    assert_eq!(session.promised(), STREAMS as u64 * FIRST);
}

#[test]
fn what_all_streams_are_promised_is_bounded() {
    let mut session = Session::new(Side::Accepts);
    let half = vec![7; FIRST as usize / 2];
    let mut said = Vec::new();
    for stream in 1..=STREAMS as u32 {
        Frame::Open { stream, target: "a:1".into() }.write(&mut said);
        Frame::Data { stream, offset: 0, bytes: &half }.write(&mut said);
    }
    session.on_bytes(Time::ZERO, Carrier::Express, &said).unwrap();
    // Each is connected and has its bytes read, so that each wants more credit.
    for (number, _) in session.take_asked() {
        session.answer(number, 0);
        assert_eq!(session.read(number, &mut vec![0; FIRST as usize]), Ok(Got::Bytes(half.len())));
    }
    session.fill(Time::ZERO, Carrier::Express, usize::MAX, &mut Vec::new());
    let most = (64 << 20) + STREAMS as u64 * FIRST;
    assert!(session.promised() <= most, "{} bytes", session.promised());
    assert!(session.promised() > 64 << 20, "and credit is given as long as it may be");
}
