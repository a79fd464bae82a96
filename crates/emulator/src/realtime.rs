//! The loop that runs the mesh in real time: it sleeps until something happens in the mesh or a program sends something.
//!
//! Deadlines are absolute, so lateness does not add up. The mesh is always advanced to the present before a frame is given
//! to it, and decides everything in its own exact time; only the frames that it hands over are late.

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

/// The longest frame that is read.
const FRAME: usize = HEADER + 65_535;
/// Frames read from one device before the clock is looked at again.
const AT_ONCE: usize = 16;
/// Late frames from which on `hard` ends a run: fewer say nothing.
const LEAST_LATE: u64 = 10;

/// Settings of the loop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Factor by which the mesh runs slower than real time, 1 or more.
    pub slowdown: u64,
    /// When it ends, in the mesh's time.
    pub duration: Duration,
    /// True if real-time priority is to be asked for.
    pub wants_priority: bool,
    /// The share of late frames beyond which it ends at once.
    pub hard: Option<f64>,
    /// Changes of links, in the order of time.
    pub plan: Vec<Planned>,
    /// For tests: every so many frames one is handed over so much later.
    pub inject: Option<(u64, Duration)>,
}

/// Requests to the loop.
#[derive(Debug)]
pub enum Request {
    /// Cut or restore a link; answered when it is done.
    Link(LinkChange, Sender<()>),
    /// Tell how things are.
    State(Sender<State>),
    /// End.
    Stop,
}

/// Result of a run.
#[derive(Debug)]
pub struct Report {
    /// When the mesh stopped, in its time.
    pub ended: Time,
    /// Time that it took.
    pub elapsed: Duration,
    /// Lateness of the frames.
    pub lateness: Lateness,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
    /// Packets that were lost in it.
    pub losses: Losses,
    /// Frames put on the air, control frames included.
    pub frames: u64,
    /// Frames that the nodes did not take: their device was switched off or is gone.
    pub refused: u64,
    /// Nodes whose device went away, with the reason.
    pub gone: Vec<(NodeId, String)>,
    /// Why there was no real-time priority, if it was wanted.
    pub no_priority: Option<String>,
    /// Why the captures are not complete, if they are not.
    pub capture_failed: Option<String>,
    /// Why what the observer made is not, if it is not.
    pub observer_failed: Option<String>,
    /// True if it ended because too many frames were late.
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
    /// Joins a mesh and the devices of its nodes, in the order of their numbers.
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

    /// Runs until it has to end, and captures what nodes send and get. Takes over the calling thread.
    pub fn run(mut self, capture: Option<Capture>) -> io::Result<Report> {
        sharpen_timers();
        let no_priority = match self.settings.wants_priority.then(sys::take_priority) {
            Some(Err(error)) => Some(error.to_string()),
            _ => None,
        };
        let slowdown = self.settings.slowdown.max(1);
        let begin = Clock.now();
        let mesh_time = |now: Time| Time(now.since(begin).0 / slowdown);
        // Rounded up: not before the mesh's time has come.
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

    /// Lets the mesh's time pass and hands over what arrives.
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

    /// Reads what a node sends.
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
                    // Somebody removed it: this node is silent from now on, and the others go on.
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

    /// Shows how things are to whoever looks on.
    fn sample(&mut self, now: Time, lateness: &Lateness) {
        let most = self.medium.observer().most_streams();
        let (state, places) = (self.state(now, lateness, most), self.medium.places());
        self.medium.observer().sample(&state, &places);
    }

    fn change(&mut self, LinkChange { one, other, up }: LinkChange) {
        self.medium.set_link(one, other, up);
    }

    /// Does what others ask; whether to end.
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
