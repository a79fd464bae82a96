//! The loop between two sides: takes packets from each, does to them what the link does, and brings them to the other.

use super::impairment::Direction;
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::poll::{Poller, Waker};
use meshpace_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A packet that entered the link.
#[derive(Clone, Debug)]
pub struct Passed {
    /// When.
    pub at: Time,
    /// The side it came from, 0 or 1.
    pub from: usize,
    /// Number of copies that came out, 0 to 2.
    pub copies: usize,
    /// The packet: an IP packet, or what a UDP datagram carried.
    pub bytes: Vec<u8>,
}

/// Two sides that exchange packets.
pub(super) trait Sides: Send {
    /// Watches both, by side.
    fn watch(&self, poller: &Poller) -> io::Result<()>;
    /// Takes a packet from a side.
    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize>;
    /// Brings a packet to a side.
    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()>;
}

/// A loop that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Carrier {
    stop: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
    waker: Waker,
    record: Arc<Mutex<Vec<Passed>>>,
    thread: Option<JoinHandle<()>>,
}

impl Carrier {
    /// Starts it; `directions` is from side 0 and from side 1. With `recording` every packet is kept.
    pub(super) fn start(
        sides: impl Sides + 'static,
        directions: [Direction; 2],
        recording: bool,
    ) -> io::Result<Carrier> {
        let poller = Poller::new()?;
        sides.watch(&poller)?;
        let waker = poller.waker();
        let [stop, down] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let record = Arc::new(Mutex::new(Vec::new()));
        let (flags, kept) = ([&stop, &down].map(Arc::clone), recording.then(|| Arc::clone(&record)));
        let thread = std::thread::Builder::new()
            .name("lossy-link".into())
            .spawn(move || carry(sides, directions, poller, &flags, kept.as_deref()))?;
        Ok(Carrier { stop, down, waker, record, thread: Some(thread) })
    }

    /// Says whether whatever enters is lost from now on.
    pub(super) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Takes the packets that have entered since the start or the last call; none without recording.
    pub(super) fn take_record(&self) -> Vec<Passed> {
        std::mem::take(&mut self.record.lock().expect("nobody panics while holding it"))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When, the how-manieth of all, to which side, and the packet.
type Due = (Time, u64, usize, Vec<u8>);

fn carry(
    mut sides: impl Sides,
    mut directions: [Direction; 2],
    poller: Poller,
    [stop, down]: &[Arc<AtomicBool>; 2],
    record: Option<&Mutex<Vec<Passed>>>,
) {
    sharpen_timers();
    let mut buffer = vec![0; 1 << 16];
    // Ordered by time and, at one time, by arrival: nothing overtakes unless told to.
    let mut under_way: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    let mut count = 0;
    let mut ready = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let next = under_way.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        if poller.wait(next, &mut ready).is_err() {
            return;
        }
        for (side, direction) in directions.iter_mut().enumerate() {
            while let Ok(length) = sides.receive(side, &mut buffer) {
                let now = Clock.now();
                let out = if down.load(Ordering::Relaxed) { [None; 2] } else { direction.pass(now, length) };
                if let Some(record) = record {
                    let copies = out.iter().flatten().count();
                    let passed = Passed { at: now, from: side, copies, bytes: buffer[..length].to_vec() };
                    record.lock().expect("nobody panics while holding it").push(passed);
                }
                for at in out.into_iter().flatten() {
                    count += 1;
                    under_way.push(Reverse((at, count, 1 - side, buffer[..length].to_vec())));
                }
            }
        }
        while under_way.peek().is_some_and(|Reverse((at, ..))| *at <= Clock.now()) {
            let Some(Reverse((_, _, side, packet))) = under_way.pop() else { break };
            // A side that is gone or full loses packets, as links do.
            let _ = sides.send(side, &packet);
        }
    }
}
