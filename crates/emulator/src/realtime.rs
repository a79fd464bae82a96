//! The loop that runs the mesh in real time. It sleeps until an event of the mesh is due or a
//! program sends a frame.
//!
//! Deadlines are absolute, so lateness does not accumulate. The mesh is always advanced to the
//! present before it is given a frame, and it decides everything in its own exact time. Only the
//! frames that it delivers are late.

use crate::capture::Capture;
use crate::device::Device;
use crate::frame::HEADER;
use crate::lateness::Lateness;
use crate::medium::Medium;
use crate::observer::SAMPLE;
use crate::plan::{LinkChange, Planned};
use crate::state::{Losses, State};
use crate::sys;
use crate::traffic::Traffic;
use meshpace_capture::file::Direction;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_live::Clock;
use meshpace_live::clock::sharpen_timers;
use meshpace_live::poll::{Poller, Ready};
use std::io;
use std::sync::mpsc::{Receiver, Sender};

/// Longest frame that is read, bytes.
const FRAME: usize = HEADER + 65_535;
/// Number of frames that are read from one device before the clock is read again.
const AT_ONCE: usize = 16;
/// Least number of late frames with which `hard` ends a run. A smaller number is not meaningful.
const LEAST_LATE: u64 = 10;

/// Settings of the loop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Factor by which the mesh runs slower than real time, 1 or more.
    pub slowdown: u64,
    /// Time at which the run ends, in the mesh's time.
    pub duration: Duration,
    /// True if real-time priority is requested.
    pub wants_priority: bool,
    /// Share of late frames above which the run ends at once.
    pub hard: Option<f64>,
    /// Changes of links, in the order of time.
    pub plan: Vec<Planned>,
    /// For tests: of every so many frames (the first value) one is delivered late by the second
    /// value.
    pub inject: Option<(u64, Duration)>,
}

/// Requests to the loop.
#[derive(Debug)]
pub enum Request {
    /// Cut or restore a link. Answered when it is done.
    Link(LinkChange, Sender<()>),
    /// Return the state.
    State(Sender<State>),
    /// End the run.
    Stop,
}

/// Result of a run.
#[derive(Debug)]
pub struct Report {
    /// Time at which the mesh stopped, in the mesh's time.
    pub ended: Time,
    /// Length of the run by the machine's clock.
    pub elapsed: Duration,
    /// Lateness of the frames.
    pub lateness: Lateness,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
    /// Packets that were lost in the mesh.
    pub losses: Losses,
    /// Frames put on the air, control frames included.
    pub frames: u64,
    /// Frames that nodes did not accept, because their device was switched off or removed.
    pub refused: u64,
    /// Nodes whose device was removed, with the error.
    pub gone: Vec<(NodeId, String)>,
    /// Reason why there was no real-time priority, if it was requested.
    pub no_priority: Option<String>,
    /// Reason why the captures are incomplete, if they are.
    pub capture_failed: Option<String>,
    /// Reason why the output of the observer is incomplete, if it is.
    pub observer_failed: Option<String>,
    /// True if the run ended because too many frames were late.
    pub gave_up: bool,
}

/// The mesh with its devices.
pub struct RealTime {
    medium: Medium,
    devices: Vec<Option<Device>>,
    poller: Poller,
    settings: Settings,
    requests: Receiver<Request>,
}

impl RealTime {
    /// Joins a mesh and the devices of its nodes. The devices are in the order of the nodes'
    /// numbers.
    pub fn new(
        medium: Medium,
        devices: Vec<Device>,
        poller: Poller,
        settings: Settings,
        requests: Receiver<Request>,
    ) -> io::Result<RealTime> {
        for (number, device) in devices.iter().enumerate() {
            poller.add(device, number as u64)?;
        }
        Ok(RealTime { medium, devices: devices.into_iter().map(Some).collect(), poller, settings, requests })
    }

    /// Runs until the end, and captures the packets that nodes send and receive. Occupies the
    /// calling thread.
    pub fn run(mut self, capture: Option<Capture>) -> io::Result<Report> {
        sharpen_timers();
        let no_priority = match self.settings.wants_priority.then(sys::take_priority) {
            Some(Err(error)) => Some(error.to_string()),
            _ => None,
        };
        let slowdown = self.settings.slowdown.max(1);
        let begin = Clock.now();
        let mesh_time = |now: Time| Time(now.since(begin).0 / slowdown);
        // Earliest time of the machine's clock at which the mesh's time, which is rounded down, is
        // `at`.
        let real_time = |at: Time| match at {
            Time::NEVER => Time::NEVER,
            at => Time(begin.0.saturating_add(at.0.saturating_mul(slowdown))),
        };
        let end = Time::ZERO + self.settings.duration;
        let mut report = Report {
            ended: Time::ZERO,
            elapsed: Duration::ZERO,
            lateness: Lateness::default(),
            traffic: Traffic::default(),
            losses: Losses::default(),
            frames: 0,
            refused: 0,
            gone: Vec::new(),
            no_priority,
            capture_failed: None,
            observer_failed: None,
            gave_up: false,
        };
        let (mut ready, mut frame, mut block) = (Vec::new(), Vec::new(), vec![0; FRAME]);
        let is_sampled = self.medium.observer().is_sampled();
        let mut next_sample = if is_sampled { Time::ZERO } else { Time::NEVER };
        let mut planned = std::mem::take(&mut self.settings.plan).into_iter().peekable();
        loop {
            let now = mesh_time(Clock.now()).min(end);
            while let Some(change) = planned.next_if(|change| change.at <= now) {
                self.advance(change.at, &mut report, &mut frame, real_time, capture.as_ref());
                self.change(change.change);
            }
            self.advance(now, &mut report, &mut frame, real_time, capture.as_ref());
            let stopped = self.serve(now, &report.lateness);
            let late = report.lateness.late_share();
            report.gave_up = self
                .settings
                .hard
                .is_some_and(|budget| late > budget && late * report.lateness.deliveries() as f64 >= LEAST_LATE as f64);
            if now >= end || stopped || report.gave_up {
                report.ended = now;
                break;
            }
            for one in &ready {
                self.read(one, now, &mut block, &mut frame, &mut report, capture.as_ref());
            }
            let next_change = planned.peek().map_or(Time::NEVER, |change| change.at);
            if is_sampled && now >= next_sample {
                self.sample(now, &report.lateness);
                next_sample = now + SAMPLE;
            }
            let deadline = real_time(self.medium.next_event().min(next_change).min(next_sample).min(end));
            self.poller.wait(deadline, &mut ready)?;
        }
        report.elapsed = Clock.now().since(begin);
        report.capture_failed = capture.and_then(|capture| capture.finish().err()).map(|error| error.to_string());
        report.frames = self.medium.frames();
        if is_sampled {
            self.sample(report.ended, &report.lateness);
        }
        let finished = self.medium.observer().finish(report.ended, report.frames);
        report.observer_failed = finished.err().map(|error| error.to_string());
        report.losses = self.medium.losses();
        report.traffic = self.medium.traffic;
        Ok(report)
    }

    /// Advances the mesh and delivers the frames that arrive.
    fn advance(
        &mut self,
        until: Time,
        report: &mut Report,
        frame: &mut Vec<u8>,
        real_time: impl Fn(Time) -> Time,
        capture: Option<&Capture>,
    ) {
        while let Some(delivery) = self.medium.advance(until) {
            if let Some((every, late)) = self.settings.inject
                && report.lateness.deliveries().is_multiple_of(every.max(1))
            {
                let until = Clock.now() + late;
                while Clock.now() < until {}
            }
            delivery.packet.arrived(frame);
            let taken = match &self.devices[delivery.node.index()] {
                Some(device) => device.send(frame).is_ok(),
                None => false,
            };
            report.refused += u64::from(!taken);
            if let Some(capture) = capture {
                capture.packet(delivery.due, delivery.node, Direction::Inbound, frame);
            }
            let late = Clock.now().since(real_time(delivery.due));
            report.lateness.record(late, self.settings.slowdown, self.medium.slot(), delivery.air_time);
        }
    }

    /// Reads the frames that a node sends.
    fn read(
        &mut self,
        from: &Ready,
        now: Time,
        block: &mut [u8],
        reply: &mut Vec<u8>,
        report: &mut Report,
        capture: Option<&Capture>,
    ) {
        let (node, place) = (NodeId(from.token as u16), from.token as usize);
        for _ in 0..AT_ONCE {
            let Some(device) = &self.devices[place] else { return };
            match device.receive(block) {
                Ok(length) => {
                    if let Some(capture) = capture {
                        capture.packet(now, node, Direction::Outbound, &block[..length]);
                    }
                    if let Some(reply) = self.medium.send(node, &block[..length], reply) {
                        report.refused += u64::from(device.send(reply).is_err());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // The device was removed. This node is silent from now on; the others continue.
                    let _ = self.poller.remove(device);
                    report.gone.push((node, error.to_string()));
                    self.devices[place] = None;
                }
            }
        }
    }

    /// The state, with the first `most` streams.
    fn state(&mut self, now: Time, lateness: &Lateness, most: usize) -> State {
        let traffic = self.medium.traffic.first(most);
        let paths = traffic.streams().iter().map(|stream| self.medium.path(stream.from, stream.to)).collect();
        let queues = (0..self.medium.nodes()).map(|node| self.medium.queue(NodeId(node as u16))).collect();
        State {
            paths,
            queues,
            now,
            frames: self.medium.frames(),
            losses: self.medium.losses(),
            lateness: lateness.summary(),
            traffic,
        }
    }

    /// Passes a sample to the observer.
    fn sample(&mut self, now: Time, lateness: &Lateness) {
        let most = self.medium.observer().most_streams();
        let (state, places) = (self.state(now, lateness, most), self.medium.places());
        self.medium.observer().sample(&state, &places);
    }

    fn change(&mut self, LinkChange { one, other, up }: LinkChange) {
        self.medium.set_link(one, other, up);
    }

    /// Carries out the requests of other threads. Returns true if the run has to end.
    fn serve(&mut self, now: Time, lateness: &Lateness) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Link(change, done) => {
                    self.change(change);
                    let _ = done.send(());
                }
                Request::State(answer) => drop(answer.send(self.state(now, lateness, usize::MAX))),
                Request::Stop => return true,
            }
        }
        false
    }
}
