//! The loop between two sides: takes packets from each, does to them what the link does, and brings them to the other.

use super::account::Traffic;
use super::impairment::Direction;
use crate::Clock;
use crate::clock::sharpen_timers;
use crate::poll::{Poller, Waker};
use meshpace_core::Time;
use rustix::process::setpriority_process;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
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
    /// Whether the loop takes precedence over other programs, if it has the right to. A link of devices stands for hardware, which
    /// does not wait for the processor.
    const TAKES_PRECEDENCE: bool;

    /// Watches both, by side.
    fn watch(&self, poller: &Poller) -> io::Result<()>;
    /// Takes a packet from a side.
    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize>;
    /// Brings a packet to a side.
    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()>;
}

/// State that the loop shares with its owner.
#[derive(Default, Debug)]
struct Shared {
    stop: AtomicBool,
    down: AtomicBool,
    /// Packets that entered, if the loop records them.
    record: Mutex<Vec<Passed>>,
    /// Askers for the account, answered after the loop has read and delivered all that it can.
    askers: Mutex<Vec<Sender<[Traffic; 2]>>>,
}

/// A loop that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Carrier {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Longest wait for the loop's account, far longer than a pass takes on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

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
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lossy-link".into())
            .spawn(move || Loop::new(sides, directions, &own, recording).run(&poller))?;
        Ok(Carrier { shared, waker, thread: Some(thread) })
    }

    /// Says whether whatever enters is lost from now on.
    pub(super) fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::Relaxed);
    }

    /// Account of both directions, from side 0 and from side 1, after all that could be read or was due has been. `None` if the
    /// loop has ended or does not answer.
    pub(super) fn account(&self) -> Option<[Traffic; 2]> {
        let (asker, answer) = channel();
        self.shared.askers.lock().expect("nobody panics while holding it").push(asker);
        self.waker.wake();
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Takes the packets that have entered since the start or the last call; none without recording.
    pub(super) fn take_record(&self) -> Vec<Passed> {
        std::mem::take(&mut *self.shared.record.lock().expect("nobody panics while holding it"))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When, the how-manieth of all, to which side, and the packet.
type Due = (Time, u64, usize, Vec<u8>);

/// The thread of a carrier.
struct Loop<'a, S> {
    sides: S,
    directions: [Direction; 2],
    shared: &'a Shared,
    recording: bool,
    /// Copies in the order in which they are due; copies due at the same time in the order of their arrival.
    waiting: BinaryHeap<Reverse<Due>>,
    /// Number of copies made since the start.
    count: u64,
    traffic: [Traffic; 2],
}

impl<'a, S: Sides> Loop<'a, S> {
    fn new(sides: S, directions: [Direction; 2], shared: &'a Shared, recording: bool) -> Loop<'a, S> {
        let traffic = [Traffic::default(); 2];
        Loop { sides, directions, shared, recording, waiting: BinaryHeap::new(), count: 0, traffic }
    }

    fn run(mut self, poller: &Poller) {
        sharpen_timers();
        if S::TAKES_PRECEDENCE {
            // For Linux the calling thread alone is meant.
            let _ = setpriority_process(None, -20);
        }
        let mut buffer = vec![0; 1 << 16];
        let mut ready = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let next = self.waiting.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            if poller.wait(next, &mut ready).is_err() {
                return;
            }
            // Taken before reading, so that the answer covers all that entered before the question.
            let askers = std::mem::take(&mut *self.shared.askers.lock().expect("nobody panics while holding it"));
            for side in 0..2 {
                while let Ok(length) = self.sides.receive(side, &mut buffer) {
                    self.take(side, &buffer[..length]);
                }
            }
            self.deliver();
            for asker in askers {
                // The asker may have lost patience.
                let _ = asker.send(self.account());
            }
        }
    }

    /// Takes a packet that entered at `side`.
    fn take(&mut self, side: usize, packet: &[u8]) {
        let now = Clock.now();
        let down = self.shared.down.load(Ordering::Relaxed);
        let out = if down { [None; 2] } else { self.directions[side].pass(now, packet.len()) };
        let copies = out.iter().flatten().count();
        let traffic = &mut self.traffic[side];
        traffic.entered += 1;
        traffic.lost += u64::from(copies == 0);
        if self.recording {
            let passed = Passed { at: now, from: side, copies, bytes: packet.to_vec() };
            self.shared.record.lock().expect("nobody panics while holding it").push(passed);
        }
        for at in out.into_iter().flatten() {
            self.count += 1;
            self.waiting.push(Reverse((at, self.count, 1 - side, packet.to_vec())));
        }
    }

    /// Delivers all packets that are due.
    fn deliver(&mut self) {
        while self.waiting.peek().is_some_and(|Reverse((at, ..))| *at <= Clock.now()) {
            let Some(Reverse((_, _, side, packet))) = self.waiting.pop() else { break };
            let traffic = &mut self.traffic[1 - side];
            // A side that is gone or full loses packets, as links do.
            match self.sides.send(side, &packet) {
                Ok(()) => traffic.delivered += 1,
                Err(_) => traffic.refused += 1,
            }
        }
    }

    fn account(&self) -> [Traffic; 2] {
        let (mut account, now) = (self.traffic, Clock.now());
        for Reverse((at, _, to, _)) in &self.waiting {
            let traffic = &mut account[1 - to];
            traffic.waiting += 1;
            traffic.late = traffic.late.max(now.since(*at));
        }
        account
    }
}
