//! Interface for pacing rules that are defined outside this crate. Such a rule is a type that
//! implements [`Rule`], or a rule in another language, such as Python. The rules of this crate are
//! in `rules`.
//!
//! A rule is called through a pointer once per measurement and once per ACK, never per frame. No
//! paper describes this interface.

use super::Sample;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// State of a pacing rule for one sender.
pub trait Rule: fmt::Debug + Send + Sync {
    /// Takes the measurement that an ACK gave. ACKs of retransmitted segments give none.
    fn on_sample(&mut self, sample: &Sample);

    /// An ACK arrived at a TCP. `_marked` is true if the ACK echoes a congestion mark,
    /// `_slow_start` if the window is in slow start. TPA has no marks and does not call this
    /// method.
    fn on_ack(&mut self, _marked: bool, _slow_start: bool) {}

    /// Interval between two segments from now on, in seconds. If it is 0 or less, segments leave as
    /// the window allows.
    fn interval(&self) -> f64;

    /// Copies the rule together with its state, because a connection can be copied.
    fn copy(&self) -> Box<dyn Rule>;
}

/// Function that creates a rule for a sender. Its argument is the payload of a segment in bytes.
type Make = dyn Fn(u32) -> Box<dyn Rule> + Send + Sync;

/// Factory of a pacing rule: every sender gets an instance of its own.
#[derive(Clone)]
pub struct Config {
    name: String,
    make: Arc<Make>,
}

impl Config {
    /// Creates a configuration from `make`, which creates a rule for a sender. The argument of
    /// `make` is the payload of a segment in bytes. `name` is for people.
    pub fn new(name: impl Into<String>, make: impl Fn(u32) -> Box<dyn Rule> + Send + Sync + 'static) -> Config {
        Config { name: name.into(), make: Arc::new(make) }
    }

    /// Name of the rule, for people.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every rule is created anew, so a state that a panic left inconsistent is not part of rules that
/// are created later.
impl UnwindSafe for Config {}
impl RefUnwindSafe for Config {}

/// Two configurations are equal if they are copies of one [`Config`], because functions cannot be
/// compared.
impl PartialEq for Config {
    fn eq(&self, other: &Config) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

/// State of a rule that a [`Config`] created.
#[derive(Debug)]
pub struct State(Box<dyn Rule>);

impl State {
    /// Creates the rule for a sender whose segments have `payload` bytes.
    pub fn new(config: &Config, payload: u32) -> State {
        State((config.make)(payload))
    }

    /// Takes a measurement.
    pub fn on_sample(&mut self, sample: &Sample) {
        self.0.on_sample(sample);
    }

    /// An ACK arrived; `marked` is true if it echoes a congestion mark.
    pub fn on_ack(&mut self, marked: bool, slow_start: bool) {
        self.0.on_ack(marked, slow_start);
    }

    /// Interval between two segments, in seconds.
    pub fn interval(&self) -> f64 {
        self.0.interval()
    }
}

impl Clone for State {
    fn clone(&self) -> State {
        State(self.0.copy())
    }
}
