//! A pacing rule written in Python, as the simulator asks it.
//!
//! Python is called once per measurement, and once per ACK if the rule wants that. The interval is kept here, so that segments leave without Python.

use meshpace_transport::Config;
use meshpace_transport::pacing::{self, custom};
use pyo3::prelude::*;
use pyo3::types::PyTracebackMethods;
use std::panic::panic_any;
use std::sync::Arc;

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

/// A rule at work for one sender.
#[derive(Debug)]
struct Rule {
    object: Py<PyAny>,
    hears_of_acks: bool,
    /// Interval that it returned last, seconds.
    interval: f64,
}

/// A run whose rule raises an exception ends with it: the campaign tells of a run that panics.
fn give_up(py: Python<'_>, exception: &PyErr) -> ! {
    let trace = exception.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
    panic_any(format!("the pacing rule raised an exception\n{trace}{exception}"))
}

impl Rule {
    fn new(factory: &Py<PyAny>, payload: u32) -> Rule {
        Python::attach(|py| {
            let made =
                factory.bind(py).call1((payload,)).and_then(|object| Ok((object.hasattr("on_ack")?, object.unbind())));
            let (hears_of_acks, object) = made.unwrap_or_else(|exception| give_up(py, &exception));
            Rule { object, hears_of_acks, interval: 0.0 }
        })
    }

    /// Takes over what the rule says, `None` being what it said before.
    fn tell(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Option<f64>>) {
        Python::attach(|py| match call(self.object.bind(py)) {
            Ok(Some(interval)) if interval.is_nan() => {
                panic_any("the pacing rule gave NaN as its interval; expected seconds".to_owned())
            }
            Ok(interval) => self.interval = interval.unwrap_or(self.interval),
            Err(exception) => give_up(py, &exception),
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
            let object = copied.unwrap_or_else(|exception| give_up(py, &exception)).unbind();
            Box::new(Rule { object, ..*self })
        })
    }
}

/// The pacing of this transport is the rule that `factory` makes.
///
/// # Errors
/// The kind of the transport, where it is neither a TCP nor a TPA.
pub fn pace(transport: &mut Config, name: &str, factory: &Arc<Py<PyAny>>) -> Result<(), &'static str> {
    let pacing = match transport {
        Config::Tcp(tcp) => &mut tcp.pacing,
        Config::Tpa(tpa) => &mut tpa.pacing,
        Config::Train(_) => return Err("a quiet train, which has pauses of its own"),
        Config::Flush(_) => return Err("Flush, whose interval follows from the path"),
        Config::Udp(_) => return Err("UDP, which sends by its own clock"),
    };
    let factory = Arc::clone(factory);
    *pacing = pacing::Config::Custom(custom::Config::new(name, move |payload| Box::new(Rule::new(&factory, payload))));
    Ok(())
}
