//! Control law of quiet trains: the interval between the segments of a train, and the number of
//! segments.
//!
//! `estimator` defines tau, the unloaded time until a segment is n hops away, and d, the delay in
//! queues. With h hops, n = min(4, h), I the interval, W the number of segments, and dt the time
//! between two samples,
//!
//! ```text
//! floor = tau (h <= 3 ? 1.034 : 1.07)
//! scale = 1 + 1.5 (h/n - 1)
//! want  = floor max(1, ((d + marks tau) / (0.09 scale tau))^(1/1.5))
//! log I += (1 - exp(-0.3 dt)) (log want - log I),  I in [floor, 30 tau]
//! W     = min(2 W, 32, 1 s / I)
//! ```
//!
//! In equilibrium d = 0.09 scale tau (I/floor)^1.5: the law tolerates this delay. A slower sender
//! tolerates more delay, so that flows that meet the same queue approach the same interval. Copa
//! and FAST have an exponent of 1, with which the longer of two paths starves.
//!
//! `marks` is the share of marked segments times a factor. It is 0 unless nodes on the path mark
//! and the configuration takes marks into account.
//!
//! Three detectors change the law. `contention` detects a delay that does not end when the sender
//! yields; the sender then claims a share of the path. `competition` detects senders that fill
//! queues, and `lossy_links` detects links that lose frames; the law then tolerates the delay times
//! a factor of the configuration.
//!
//! Before the first sample I = n t_d, with t_d the air time of a data exchange, so that no sample
//! is needed to start. When the number of hops or the rate of the path changes, I is scaled in
//! proportion to n t_d, because the queues to which it yielded still exist (`keep_interval`).
//!
//! While the same sender sends small messages beside a train over more than four hops, I is at
//! least two floors (`leave_room`). The law learns of a queue only after the train. An example is a
//! path of eight hops at 11 Mbit/s, on which the law chooses 1.7 floors beside a robot's messages.
//! Whenever the interval had become a fifth shorter, the messages of half a second waited for 100
//! ms and more in the middle of the path (docs/tunnel-session.md). Up to four hops the law avoids
//! this without the rule.
//!
//! Up to three hops, a neighbour that was detected and is no longer noticed is left half of the
//! path for some seconds (`company`). If no neighbour was detected, the trains themselves may be
//! what silences it. With `listen`, full trains are therefore followed by a silence while a
//! connection is two to ten seconds old. This is off by default: with 250 ms, files over one to
//! three hops take up to 18 % longer, with 500 ms a third.
//!
//! Also up to three hops, all nodes that send data hear each other. Silence and an empty queue then
//! avoid no collision, and a longer train and more delay cost nobody anything: `near_train` and
//! `near_delay`. A loss shows that some node is hidden after all, and the usual values then apply
//! for a minute.

use super::access::{Access, Aggregates, NEAR_HOPS};
use super::company::Company;
use super::competition::Competition;
use super::contention::Contention;
use super::estimator::{exchange, reuse_hops};
use super::lossy_links::LossyLinks;
use crate::PathInfo;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use meshpace_core::parameter;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// floor up to three hops: shortest interval, in tau (the unloaded delay over up to four
        /// hops)
        near_floor: f64 = 1.034 => number(0.1, 10.0), Expert;
        /// floor from four hops on: shortest interval, in tau
        far_floor: f64 = 1.07 => number(0.1, 10.0), Expert;
        /// queueing delay that the law tolerates at the floor, in tau
        delay: f64 = 0.09 => number(1e-3, 100.0), Expert;
        /// exponent with which the tolerated delay grows with the interval
        exponent: f64 = 1.5 => number(0.1, 10.0), Expert;
        /// factor with which the tolerated delay grows with the hops beyond four
        length: f64 = 1.5 => number(0.0, 100.0), Expert;
        /// rate at which the interval approaches the value that the law asks for, per second
        gain: f64 = 0.3 => number(1e-3, 100.0), Expert;
        /// delay that is added per share of marked segments, in tau, if both ends know trains; more
        /// with +marks
        marks: f64 = 0.0 => number(0.0, 1000.0), Expert;
        /// factor on the tolerated delay while most trains lose segments, which shows senders that
        /// fill queues; more with +competitive
        competitive: f64 = 1.0 => number(1.0, 100.0), Expert;
        /// share of the path that is claimed while a delay lasts that ten quiet trains would not
        /// cause; 0: no claim; more with +contending
        claim: f64 = 0.0 => number(0.0, 1.0), Expert;
        /// factor on the tolerated delay while so many segments are lost that links must be losing
        /// frames, if both ends know trains
        lossy: f64 = 8.0 => number(1.0, 100.0), Expert;
        /// share by which each loss lengthens the interval
        loss: f64 = 0.05 => number(0.0, 10.0), Expert;
        /// interval before the first sample, in air times of an exchange per hop, up to four hops
        start: f64 = 1.0 => number(0.1, 100.0), Expert;
        /// segments of the first train; at most those of the longest train (train)
        first: u32 = 4 => whole("segments", 1, 65535), Expert;
        /// largest number of segments of a train
        train: u32 = 32 => whole("segments", 1, 65535), Basic;
        /// longest duration of a train
        span: Duration = Duration::from_secs(1) => TIME.above(0.0), Expert;
        /// fixed interval; replaces the control law
        interval: Option<Duration> = None => TIME.above(0.0).or("by the control law"), Basic;
        /// largest number of segments of a train up to three hops, while nothing has been lost for
        /// a minute
        near_train: Option<u32> = None => whole("segments", 1, 65535).or("that of train"), Expert;
        /// queueing delay that the law tolerates at the floor up to three hops, while nothing has
        /// been lost for a minute, in tau
        near_delay: Option<f64> = None => number(1e-3, 100.0).or("that of delay"), Expert;
        /// whether the interval is scaled when the hops or the rate of the path change, instead of
        /// starting anew
        keep_interval: bool = true => FLAG, Expert;
        /// shortest interval up to three hops, in floors, for 30 s after a hidden neighbour was
        /// detected: the law asked for this interval twice, or for a longer one, and then for
        /// hardly more than the floor; 1: no detection
        company: f64 = 2.0 => number(1.0, 30.0), Expert;
        /// silence after full trains up to three hops while a connection is 2 to 10 s old, so that
        /// hidden neighbours can find routes
        listen: Duration = Duration::ZERO => TIME.from(0.0), Expert;
        /// whether trains leave as aggregates on links that support them, instead of segment by
        /// segment
        aggregates: bool = false => FLAG, Basic;
    }
    also |config| require(config.first <= config.train, "first", config.first, "at most the segments of a train");
}

/// Time without a loss after which links count as free of losses, in seconds.
const LOSSLESS_S: f64 = 60.0;

/// Age of a connection at which trains are followed by `listen`, and the least time from one such
/// silence to the next, in seconds.
const LISTENS_S: Range<f64> = 2.0..10.0;
const LISTENS_EVERY_S: f64 = 0.5;

/// Least interval that leaves room for small messages, in floors.
const ROOM: f64 = 2.0;

/// Largest value of I / tau; more than any floor.
const SLOWEST: f64 = 30.0;
/// Rate at which the growth of the interval by losses decays, per second.
const FORGIVENESS: f64 = 0.3;

impl Config {
    /// Describes the parameters in one line, for people: the longest train, and all parameters that
    /// do not have their default.
    pub fn describe(&self) -> String {
        let line = [format!("trains of up to {} segments", self.train)];
        let changes = parameter::changes(&mut self.clone(), &mut Config::default());
        line.into_iter().chain(changes).collect::<Vec<_>>().join("; ")
    }
}

/// State of the control law.
#[derive(Clone, Debug)]
pub struct Control {
    config: Config,
    /// Interval I, in seconds.
    interval: f64,
    /// Least interval that the path allows, in seconds.
    floor: f64,
    /// Number of segments of a train, W.
    train: u32,
    /// Growth of the interval by losses, and the time of the last loss that counted, in seconds.
    penalty: f64,
    lost_at: f64,
    /// True if a sample was taken.
    sampled: bool,
    /// Number of hops of the path, and n t_d in seconds.
    hops: u8,
    reuse: f64,
    /// Time since the last loss, in seconds.
    lossless_s: f64,
    /// Time at which the first train was over, and at which the last listening silence began, in
    /// seconds.
    first_at: Option<f64>,
    listened_at: f64,
    company: Company,
    competition: Competition,
    contention: Contention,
    links: LossyLinks,
    aggregates: Option<Aggregates>,
    /// True if the interval leaves room for small messages.
    leaves_room: bool,
}

impl Control {
    /// Creates a control law for a path that is not known yet.
    pub fn new(config: &Config) -> Control {
        let train = config.first;
        Control {
            config: config.clone(),
            interval: 0.05,
            floor: 0.05,
            train,
            penalty: 0.0,
            lost_at: f64::NEG_INFINITY,
            sampled: false,
            hops: u8::MAX,
            reuse: 0.05,
            lossless_s: f64::INFINITY,
            first_at: None,
            listened_at: f64::NEG_INFINITY,
            company: Company::new(config.company),
            competition: Competition::new(config.competitive),
            contention: Contention::new(config.claim),
            links: LossyLinks::new(config.lossy),
            aggregates: None,
            leaves_room: false,
        }
    }

    /// Sets the path when the connection opens, or a new path.
    pub fn on_path(&mut self, path: &PathInfo, segment: u32) {
        let before = self.reuse;
        self.hops = path.hops;
        self.reuse = reuse_hops(path.hops) * exchange(path, f64::from(segment) + 40.0);
        self.contention.on_path(self.reuse);
        if self.config.keep_interval && self.sampled {
            self.interval *= self.reuse / before;
            self.floor *= self.reuse / before;
            return;
        }
        self.interval = self.config.start * self.reuse;
        self.floor = self.interval;
        self.sampled = false;
    }

    /// The links of the path aggregate packets, as `access` describes.
    pub fn on_access(&mut self, access: &Access, path: &PathInfo, segment: u32) {
        if self.config.aggregates {
            self.aggregates = Aggregates::new(access, path, segment + 40, self.config.far_floor);
        }
    }

    /// True if, as far as is known, all nodes that send data on the path hear each other.
    fn is_near(&self) -> bool {
        self.hops <= NEAR_HOPS && self.lossless_s >= LOSSLESS_S
    }

    /// Processes the ACK of a train. It arrived `dt` seconds after the previous one, or `dt` is
    /// `None` for the first. `tau` and `queueing` are the new values of tau and d.
    pub fn on_sample(&mut self, dt: Option<f64>, tau: f64, queueing: f64, marked: f64, hops: u8) {
        let floor = tau * if hops <= 3 { self.config.near_floor } else { self.config.far_floor };
        self.floor = floor;
        let Some(dt) = dt.filter(|_| self.sampled) else {
            // This is the first sample of all, or the first one after a change of path that kept
            // the interval.
            let most = if self.sampled { f64::INFINITY } else { 1.5 * floor };
            self.sampled = true;
            self.interval = self.interval.min(most).max(floor);
            return;
        };
        self.lossless_s += dt;
        self.penalty *= libm::exp(-FORGIVENESS * dt);
        let scale = 1.0 + self.config.length * (f64::from(hops) / reuse_hops(hops) - 1.0);
        let delay = queueing + self.config.marks * marked * tau;
        let near = self.config.near_delay.filter(|_| self.is_near());
        let tolerance = self.competition.tolerance().max(self.links.tolerance());
        let borne = near.unwrap_or(self.config.delay) * tolerance * scale * tau;
        let above = libm::pow(delay / borne, 1.0 / self.config.exponent).max(1.0);
        let want = floor * above * (1.0 + self.penalty);
        let weight = 1.0 - libm::exp(-self.config.gain * dt);
        let log = libm::log(self.interval);
        self.company.on_sample(dt, above, weight);
        let floors = if hops <= NEAR_HOPS { self.company.least() } else { 1.0 };
        let least = (floors * floor).min(SLOWEST * tau);
        let interval = libm::exp(log + weight * (libm::log(want) - log)).clamp(least, SLOWEST * tau);
        self.contention.on_sample(dt, tau, queueing, scale);
        self.interval = interval.min(self.contention.most(floor / tau * (1.0 + self.penalty)));
    }

    /// A train of `sent` segments is over. It was `lossy` if something that was sent is missing.
    /// `missing` is the number of its own segments that are missing, of those in a row two at most.
    pub fn on_train(&mut self, lossy: bool, sent: u32, missing: u32) {
        self.competition.on_train(lossy);
        self.contention.on_train(sent, missing);
        self.links.on_train(sent, missing);
    }

    /// Silence after the train of `sent` segments that is over at `now`, in seconds. Zero if the
    /// application had no more data, if a neighbour is noticed, or if no silence is due.
    pub fn listen(&mut self, now: f64, sent: u32) -> f64 {
        let age = now - *self.first_at.get_or_insert(now);
        let is_full = sent >= self.train && self.interval < self.config.company * self.floor;
        let is_time = LISTENS_S.contains(&age) && now - self.listened_at >= LISTENS_EVERY_S;
        if self.hops > NEAR_HOPS || !is_full || !is_time {
            return 0.0;
        }
        self.listened_at = now;
        self.config.listen.as_secs_f64()
    }

    /// A loss was detected at `now` (seconds). At most one loss counts per half second.
    pub fn on_loss(&mut self, now: f64) {
        self.lossless_s = 0.0;
        if now - self.lost_at > 0.5 {
            self.lost_at = now;
            self.penalty += self.config.loss;
        }
    }

    /// The ACK of a train was given up: trains grow again from the length of the first one.
    pub fn on_timeout(&mut self) {
        self.train = self.train.min(self.config.first);
    }

    /// Number of segments of the next train, which may grow if `after` says that a whole one was
    /// acknowledged.
    pub fn next_train(&mut self, after: bool) -> u32 {
        let longest = self.config.near_train.filter(|_| self.is_near()).unwrap_or(self.config.train);
        let most = match &mut self.aggregates {
            Some(aggregates) => aggregates.begin_train(longest),
            None => (self.config.span.as_secs_f64() / self.interval()).clamp(1.0, f64::from(longest)) as u32,
        };
        self.train = if after { self.train.saturating_mul(2) } else { self.train }.min(most).max(1);
        self.train
    }

    /// As [`Control::next_train`], but for trains of pairs: an even number of segments.
    pub fn next_pairs(&mut self, after: bool) -> u32 {
        self.train = self.next_train(after).next_multiple_of(2);
        self.train
    }

    /// True if marks count, so that nodes on the path may mark segments.
    pub fn heeds_marks(&self) -> bool {
        self.config.marks > 0.0
    }

    /// Least interval that the path allows, in seconds.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// Time from a segment that is sent now to the earliest departure of the next one, in seconds.
    pub fn next_gap(&mut self) -> f64 {
        match &mut self.aggregates {
            Some(aggregates) => aggregates.next_gap(),
            None => self.interval(),
        }
    }

    /// Sets whether the interval leaves room for small messages of the same sender.
    pub fn leave_room(&mut self, leaves: bool) {
        self.leaves_room = leaves;
    }

    /// Interval I, in seconds.
    pub fn interval(&self) -> f64 {
        // The room must not make the sender slower than its claim: the floor may be based on a tau
        // that contains somebody else's queue.
        let claimed = self.contention.most(self.config.far_floor);
        let least = if self.leaves_room { (ROOM * self.floor).min(claimed) } else { 0.0 };
        self.config.interval.map_or(self.interval.max(least), Duration::as_secs_f64)
    }
}
