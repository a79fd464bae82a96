//! Loop between the two sides of a link. It receives packets from each side, applies the
//! impairments of the link, and delivers the packets to the other side.

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
    /// Time at which the packet entered.
    pub at: Time,
    /// Side from which the packet came, 0 or 1.
    pub from: usize,
    /// Number of copies that the link delivers, 0 to 2.
    pub copies: usize,
    /// Content: an IP packet, or the payload of a UDP datagram.
    pub bytes: Vec<u8>,
}

/// Two sides that exchange packets.
pub(super) trait Sides: Send {
    /// True if the loop takes precedence over other programs, provided that it has the right to. A
    /// link of devices represents hardware, which does not wait for the processor.
    const TAKES_PRECEDENCE: bool;

    /// Adds both sides to the poller.
    fn watch(&self, poller: &Poller) -> io::Result<()>;
    /// Receives a packet from a side.
    fn receive(&mut self, side: usize, into: &mut [u8]) -> io::Result<usize>;
    /// Delivers a packet to a side.
    fn send(&self, side: usize, packet: &[u8]) -> io::Result<()>;
}

/// State that the loop shares with its owner.
#[derive(Default, Debug)]
struct Shared {
    stop: AtomicBool,
    down: AtomicBool,
    /// Packets that have entered, if the loop records them.
    record: Mutex<Vec<Passed>>,
    /// Threads that wait for the counters. They are answered after the loop has received and
    /// delivered all packets that it can.
    askers: Mutex<Vec<Sender<[Traffic; 2]>>>,
}

/// A loop that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Carrier {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Longest wait for the loop's counters. An iteration of the loop takes far less time, even on a
/// busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

impl Carrier {
    /// Starts the loop. `directions` are the direction from side 0 and the direction from side 1.
    /// With `recording`, every packet is recorded.
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

    /// Sets whether every packet that enters from now on is lost.
    pub(super) fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::Relaxed);
    }

    /// Counters of the direction from side 0 and of the direction from side 1, after all packets
    /// that could be received or were due have been handled. `None` if the loop has ended or does
    /// not answer.
    pub(super) fn account(&self) -> Option<[Traffic; 2]> {
        let (asker, answer) = channel();
        self.shared.askers.lock().expect("nobody panics while holding it").push(asker);
        self.waker.wake();
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Takes the packets that have entered since the start or the last call. Empty without
    /// recording.
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

/// Time at which a copy is due, its number, the side it goes to, and the packet.
type Due = (Time, u64, usize, Vec<u8>);

/// The thread of a carrier.
struct Loop<'a, S> {
    sides: S,
    directions: [Direction; 2],
    shared: &'a Shared,
    recording: bool,
    /// Waiting copies, sorted by the time at which they are due. Copies with equal times are in the
    /// order of their arrival.
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
            // On Linux this affects only the calling thread.
            let _ = setpriority_process(None, -20);
        }
        let mut buffer = vec![0; 1 << 16];
        let mut ready = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let next = self.waiting.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            if poller.wait(next, &mut ready).is_err() {
                return;
            }
            // The requests are taken before packets are received, so that the answer covers all
            // packets that entered before the request.
            let askers = std::mem::take(&mut *self.shared.askers.lock().expect("nobody panics while holding it"));
            for side in 0..2 {
                while let Ok(length) = self.sides.receive(side, &mut buffer) {
                    self.take(side, &buffer[..length]);
                }
            }
            self.deliver();
            for asker in askers {
                // The requesting thread may have stopped waiting.
                let _ = asker.send(self.account());
            }
        }
    }

    /// Handles a packet that entered at `side`.
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

    /// Delivers all copies that are due.
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
