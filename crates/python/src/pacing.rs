//! Pacing rules written in Python, as the simulator calls them.
//!
//! Python is called once per measurement, and once per ACK if the rule has a method for it. The
//! interval is stored here, so that segments are sent without calling Python.

use meshpace_transport::Config;
use meshpace_transport::pacing::{self, custom};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTracebackMethods;
use std::panic::panic_any;
use std::sync::{Arc, Mutex, PoisonError};

/// First exception of a rule since the last call of [`Raised::take`]. The rules of all senders in a
/// scenario share it.
#[derive(Clone, Debug, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends a run whose rule raised an exception. The run panics, and the campaign takes the
    /// exception from here.
    fn give_up(&self, py: Python<'_>, exception: PyErr) -> ! {
        let trace = exception.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
        let message = format!("the pacing rule raised an exception\n{trace}{exception}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(exception);
        panic_any(message)
    }
}

/// One measurement of a sender.
#[pyclass(frozen, get_all, module = "meshpace._native")]
pub struct Sample {
    rtt: f64,
    one_way: Option<f64>,
    hops: u8,
    rate: f64,
    path_power_dbm: Option<f32>,
}

#[pymethods]
impl Sample {
    fn __repr__(&self) -> String {
        let Sample { rtt, hops, rate, .. } = self;
        format!("Sample(rtt={rtt}, hops={hops}, rate={rate}, ...)")
    }
}

/// A rule of one sender.
#[derive(Debug)]
struct Rule {
    object: Py<PyAny>,
    hears_of_acks: bool,
    /// Interval that the rule returned last, seconds.
    interval: f64,
    raised: Raised,
}

impl Rule {
    fn new(factory: &Py<PyAny>, payload: u32, raised: Raised) -> Rule {
        Python::attach(|py| {
            let made =
                factory.bind(py).call1((payload,)).and_then(|object| Ok((object.hasattr("on_ack")?, object.unbind())));
            let (hears_of_acks, object) = made.unwrap_or_else(|exception| raised.give_up(py, exception));
            Rule { object, hears_of_acks, interval: 0.0, raised }
        })
    }

    /// Calls the rule and stores the interval that it returns. `None` keeps the previous interval.
    fn tell(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Option<f64>>) {
        Python::attach(|py| match call(self.object.bind(py)) {
            Ok(Some(interval)) if !(interval >= 0.0 && interval.is_finite()) => {
                let kind = self.object.bind(py).get_type();
                let what = format!("{kind} returned {interval} as its interval; expected 0 seconds or more, or None");
                self.raised.give_up(py, PyValueError::new_err(what))
            }
            Ok(interval) => self.interval = interval.unwrap_or(self.interval),
            Err(exception) => self.raised.give_up(py, exception),
        });
    }
}

impl custom::Rule for Rule {
    fn on_sample(&mut self, sample: &pacing::Sample) {
        let &pacing::Sample { rtt, one_way, hops, rate, path_power_dbm } = sample;
        let sample = Sample { rtt, one_way, hops, rate: rate.as_bps_f64(), path_power_dbm };
        self.tell(|rule| rule.call_method1("on_sample", (sample,))?.extract());
    }

    fn on_ack(&mut self, marked: bool, slow_start: bool) {
        if self.hears_of_acks {
            self.tell(|rule| rule.call_method1("on_ack", (marked, slow_start))?.extract());
        }
    }

    fn interval(&self) -> f64 {
        self.interval
    }

    fn copy(&self) -> Box<dyn custom::Rule> {
        Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (&self.object,)));
            let object = copied.unwrap_or_else(|exception| self.raised.give_up(py, exception)).unbind();
            Box::new(Rule { object, raised: self.raised.clone(), ..*self })
        })
    }
}

/// Sets the pacing of `transport` to the rule that `factory` creates. Exceptions of the rule are
/// stored in `raised`.
///
/// # Errors
/// If the transport is neither a TCP nor a TPA. The error describes the transport.
pub fn pace(transport: &mut Config, name: &str, factory: &Arc<Py<PyAny>>, raised: &Raised) -> Result<(), &'static str> {
    let pacing = match transport {
        Config::Tcp(tcp) => &mut tcp.pacing,
        Config::Tpa(tpa) => &mut tpa.pacing,
        Config::Train(_) => return Err("a quiet train, which has pauses of its own"),
        Config::Flush(_) => return Err("Flush, whose interval follows from the path"),
        Config::Udp(_) => return Err("UDP, which sends by its own clock"),
    };
    let (factory, raised) = (Arc::clone(factory), raised.clone());
    let rule = move |payload| Box::new(Rule::new(&factory, payload, raised.clone())) as Box<dyn custom::Rule>;
    *pacing = pacing::Config::Custom(custom::Config::new(name, rule));
    Ok(())
}
