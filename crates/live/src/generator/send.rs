//! Sending a load through a carrier, and measuring.

use super::carrier::{Carrier, Progress};
use crate::clock::Clock;
use meshpace_core::rng::{Purpose, pareto};
use meshpace_core::{Duration, Rng, Time};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// Time limit, at the end, for the far end to close.
const FAREWELL: Duration = Duration::from_secs(60);
/// Interval at which [`send`] reports.
const TICK: Duration = Duration::from_millis(200);
/// Length of the windows in which goodput is examined: that of the simulator's short-term index.
const WINDOW: Duration = Duration::from_secs(2);

/// Load that is sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// This number of bytes, and then the end.
    Bytes(u64),
    /// As many bytes as possible in this time.
    For(Duration),
    /// One file after another, with a connection for each, as when people fetch pages (AP05,
    /// section 5.2). The sizes have a Pareto distribution, and the pauses an exponential one.
    Files {
        /// Mean size in bytes.
        mean_size: f64,
        /// Shape of the distribution of sizes, above 1.
        shape: f64,
        /// Mean pause.
        mean_pause: Duration,
        /// Time from the start during which new files are begun.
        span: Duration,
        /// Seed of sizes and pauses.
        seed: u64,
    },
}

/// A file that has arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct File {
    /// Time at which opening its connection began, counted from the start.
    pub start: Duration,
    /// Time at which the whole file was acknowledged, counted from the start.
    pub end: Duration,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Time to the last acknowledgement, or to the end of the given time. It begins with the first
    /// call to connect; for [`Load::For`] it begins when the connection is open.
    pub duration: Duration,
    /// Progress in that time.
    pub progress: Progress,
    /// Number of windows of 2 s in which nothing was acknowledged.
    pub idle_windows: u32,
    /// Files, if the load consists of files.
    pub files: Vec<File>,
    /// Sum of the times for which files were being transferred.
    pub transferring: Duration,
    /// True if the run was interrupted.
    pub interrupted: bool,
}

/// Report of a run that is in progress.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Time since the start.
    pub elapsed: Duration,
    /// Time since the last report.
    pub span: Duration,
    /// Current progress.
    pub now: Progress,
    /// Progress at the last report.
    pub before: Progress,
}

/// Sends `load` through `carrier` until it is complete or `stop` is set. `look` is called every 200
/// ms.
///
/// # Errors
/// The error of the carrier.
pub fn send<C: Carrier>(
    carrier: &mut C,
    load: Load,
    stop: &AtomicBool,
    look: impl FnMut(&Tick),
) -> io::Result<Measured> {
    let start = Clock.now();
    let mut run = Run {
        start,
        stop,
        look,
        looked_at: start,
        before: Progress::default(),
        window_end: start + WINDOW,
        window_from: 0,
        idle_windows: 0,
    };
    let (mut files, mut transferring) = (Vec::new(), Duration::ZERO);
    let block = payload();
    let ended = match load {
        Load::Bytes(bytes) => {
            carrier.open(start + CONNECT, stop)?;
            run.transfer(carrier, &block, bytes, Time::NEVER)?
        }
        Load::For(span) => {
            carrier.open(start + CONNECT, stop)?;
            // The given time begins when data can be sent.
            let until = Clock.now() + span;
            run.start = Clock.now();
            run.transfer(carrier, &block, u64::MAX, until)?
        }
        Load::Files { mean_size, shape, mean_pause, span, seed } => {
            let mut rng = Rng::stream(seed, Purpose::Traffic, 0);
            let until = start + span;
            while Clock.now() < until && !run.is_interrupted() {
                let begin = Clock.now();
                let bytes = pareto(mean_size, shape, rng.uniform()).ceil() as u64;
                carrier.open(begin + CONNECT, stop)?;
                let end = run.transfer(carrier, &block, bytes, Time::NEVER)?;
                transferring = transferring + end.since(begin);
                files.push(File { start: begin.since(start), end: end.since(start), bytes });
                let pause = Duration::from_secs_f64(rng.exponential(mean_pause.as_secs_f64()));
                run.pause(carrier, (end + pause).min(until))?;
            }
            Clock.now()
        }
    };
    Ok(Measured {
        duration: ended.since(run.start),
        progress: carrier.progress()?,
        idle_windows: run.idle_windows,
        files,
        transferring,
        interrupted: run.is_interrupted(),
    })
}

struct Run<'a, F> {
    start: Time,
    stop: &'a AtomicBool,
    look: F,
    looked_at: Time,
    before: Progress,
    window_end: Time,
    /// Number of bytes that had been acknowledged when the window began.
    window_from: u64,
    idle_windows: u32,
}

impl<F: FnMut(&Tick)> Run<'_, F> {
    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Writes `bytes` bytes, or until `until`, and closes. Returns the time at which the last byte
    /// was acknowledged, or at which the given time ended.
    fn transfer<C: Carrier>(&mut self, carrier: &mut C, block: &[u8], bytes: u64, until: Time) -> io::Result<Time> {
        let before = carrier.progress()?.acknowledged;
        let (mut left, mut closed) = (bytes, false);
        loop {
            let now = Clock.now();
            let progress = carrier.progress()?;
            if now >= until {
                // Data that are in flight then do not count, and are abandoned.
                self.report(now, progress);
                carrier.abort();
                return Ok(now);
            }
            if left > 0 && !self.is_interrupted() {
                let length = left.min(block.len() as u64) as usize;
                left -= carrier.write(&block[..length])? as u64;
            }
            if (left == 0 || self.is_interrupted()) && !closed {
                carrier.close()?;
                closed = true;
            }
            // The time until the far end closes is not part of the transfer.
            if closed && (progress.is_over || progress.acknowledged - before >= bytes) {
                self.report(now, progress);
                self.farewell(carrier)?;
                return Ok(now);
            }
            let next = self.observe(now, progress);
            carrier.wait(next.min(until))?;
        }
    }

    fn farewell<C: Carrier>(&mut self, carrier: &mut C) -> io::Result<()> {
        let patience = Clock.now() + FAREWELL;
        while !carrier.progress()?.is_over {
            if Clock.now() >= patience {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the far end does not close"));
            }
            carrier.wait(patience.min(Clock.now() + TICK))?;
        }
        Ok(())
    }

    fn pause<C: Carrier>(&mut self, carrier: &mut C, until: Time) -> io::Result<()> {
        while Clock.now() < until && !self.is_interrupted() {
            let next = self.observe(Clock.now(), carrier.progress()?);
            carrier.wait(until.min(next))?;
        }
        Ok(())
    }

    /// Reports if a report is due. Returns the time of the next report.
    fn observe(&mut self, now: Time, progress: Progress) -> Time {
        while now >= self.window_end {
            self.idle_windows += u32::from(progress.acknowledged == self.window_from);
            self.window_from = progress.acknowledged;
            self.window_end += WINDOW;
        }
        if now >= self.looked_at + TICK {
            self.report(now, progress);
        }
        self.looked_at + TICK
    }

    fn report(&mut self, now: Time, progress: Progress) {
        let tick = Tick {
            elapsed: now.since(self.start),
            span: now.since(self.looked_at),
            now: progress,
            before: self.before,
        };
        (self.look)(&tick);
        (self.looked_at, self.before) = (now, progress);
    }
}

/// Payload that is sent: bytes that cannot be compressed.
fn payload() -> Vec<u8> {
    let mut rng = Rng::stream(0, Purpose::Traffic, 1);
    (0..8192).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}
