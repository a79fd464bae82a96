//! The interface for a pacing rule of a program that uses this crate: a type of its own that implements [`Rule`], or a rule in
//! another language, such as Python. The rules of this crate are in `rules`.
//!
//! A rule is called through a pointer, once per measurement and once per ACK, never per frame. No paper describes this.

use super::Sample;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A pacing rule at work for one sender.
pub trait Rule: fmt::Debug + Send + Sync {
    /// An ACK gave a measurement (not of a segment that was sent twice).
    fn on_sample(&mut self, sample: &Sample);

    /// An ACK arrived at a TCP, with an echoed congestion mark or not; its window may be in slow start. TPA has no marks.
    fn on_ack(&mut self, _marked: bool, _slow_start: bool) {}

    /// The time between two segments from now on, seconds; 0 or less: as the window allows.
    fn interval(&self) -> f64;

    /// The same rule in the same state: a connection can be copied.
    fn copy(&self) -> Box<dyn Rule>;
}

/// Makes a rule for a sender whose segments have so many bytes of payload.
type Make = dyn Fn(u32) -> Box<dyn Rule> + Send + Sync;

/// A rule of which every sender gets one of its own.
#[derive(Clone)]
pub struct Config {
    name: String,
    make: Arc<Make>,
}

impl Config {
    /// The rule that `make` makes for a sender whose segments have so many bytes of payload. `name` is for people.
    pub fn new(name: impl Into<String>, make: impl Fn(u32) -> Box<dyn Rule> + Send + Sync + 'static) -> Config {
        Config { name: name.into(), make: Arc::new(make) }
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every rule is a new one: what a panic leaves half done is in none of those that are made later.
impl UnwindSafe for Config {}
impl RefUnwindSafe for Config {}

/// Equal are copies of one [`Config`]: functions cannot be compared.
impl PartialEq for Config {
    fn eq(&self, other: &Config) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

/// A rule of a [`Config`] at work.
#[derive(Debug)]
pub struct State(Box<dyn Rule>);

impl State {
    /// Nothing known yet.
    pub fn new(config: &Config, payload: u32) -> State {
        State((config.make)(payload))
    }

    /// Takes a measurement.
    pub fn on_sample(&mut self, sample: &Sample) {
        self.0.on_sample(sample);
    }

    /// An ACK arrived, with an echoed mark or not.
    pub fn on_ack(&mut self, marked: bool, slow_start: bool) {
        self.0.on_ack(marked, slow_start);
    }

    /// The time between two segments, seconds.
    pub fn interval(&self) -> f64 {
        self.0.interval()
    }
}

impl Clone for State {
    fn clone(&self) -> State {
        State(self.0.copy())
    }
}
