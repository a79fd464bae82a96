//! Parameters. Each is declared once, beside the component that uses it, with key, unit, range,
//! default, meaning, source and level. The reader of scenarios, the check of ranges, `Default`, the
//! lists of keys and their schema are derived from the declaration.
//!
//! [`parameters!`](crate::parameters) declares the configuration struct of a component, called its
//! "piece" here. The declarations are used when a scenario is read or a configuration is checked,
//! never per frame. `docs/new-parameter.md` shows step by step how to add a parameter.

mod declare;
mod error;
mod form;
mod setting;

pub use error::{ParameterError, require};
pub use form::{FLAG, Form, GAIN, LENGTH, POWER, RATE, Range, SIZE, SPEED, TIME, Unit, choice, number, whole, wholes};
pub use setting::{Kind, Setting, Value};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Audience of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Parameter for all users: a scenario or an example of the project sets it.
    Basic,
    /// Parameter for those who study the component itself. Other users leave it at its default.
    Expert,
}

/// Declaration of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key of the parameter, without the table that holds its piece.
    pub key: &'static str,
    /// Unit and range of the value.
    pub form: Form,
    /// Returns the default value; `None` if the parameter has no default.
    pub default: fn() -> Option<Value>,
    /// Purpose of the parameter, as a part of a sentence.
    pub meaning: &'static str,
    /// Source of the parameter: a section of a paper, an RFC, a standard or another program. Empty
    /// for a parameter that this project introduced.
    pub source: &'static str,
    /// Audience of the parameter.
    pub level: Level,
}

impl Parameter {
    /// Checks the value of `setting` against the range. A setting without a value passes.
    ///
    /// # Errors
    /// The error names the parameter, its value and its range.
    pub fn check(&self, setting: &dyn Setting) -> Result<(), ParameterError> {
        let Some(value) = setting.get().filter(|value| !self.form.accepts(value)) else { return Ok(()) };
        let (value, expected) = (self.form.show(&value), self.form.to_string());
        Err(ParameterError { name: self.key.into(), value, expected: expected.into() })
    }
}

/// Declaration of a parameter together with a reference to its value in a piece.
pub struct Slot<'a> {
    /// Table of the key, relative to the table of the piece. Empty if the key stands in the table
    /// of the piece itself.
    pub table: &'static str,
    /// Declaration of the parameter.
    pub parameter: &'static Parameter,
    /// Value of the parameter.
    pub setting: &'a mut dyn Setting,
}

impl<'a> Slot<'a> {
    /// Creates the slot of a parameter that belongs to the piece itself, not to a nested piece.
    pub fn new(parameter: &'static Parameter, setting: &'a mut dyn Setting) -> Slot<'a> {
        Slot { table: "", parameter, setting }
    }
}

/// Parameters of a piece with their values.
pub type Slots<'a> = Vec<Slot<'a>>;

/// Configuration struct ("piece") whose parameters are declared.
pub trait Parameters {
    /// Returns all parameters of the piece, including those of nested pieces.
    fn slots(&mut self) -> Slots<'_>;
}

/// Checks every parameter of `piece` against its range.
///
/// # Errors
/// The error names the first parameter that is outside its range, its value and the range.
pub fn check(piece: &mut dyn Parameters) -> Result<(), ParameterError> {
    let check = |slot: &Slot<'_>| slot.parameter.check(&*slot.setting).map_err(|error| error.inside(slot.table));
    piece.slots().iter().try_for_each(check)
}

/// Lines that a scenario needs to turn the piece `usual` into `piece`, such as `marks = 6` or
/// `rto.min = "1 s"`.
pub fn changes(piece: &mut dyn Parameters, usual: &mut dyn Parameters) -> Vec<String> {
    let usual = usual.slots();
    let change = |slot: Slot<'_>| {
        let is_same = |other: &Slot<'_>| (other.table, other.parameter.key) == (slot.table, slot.parameter.key);
        let (value, form) = (slot.setting.get(), &slot.parameter.form);
        if usual.iter().find(|other| is_same(other)).is_some_and(|other| other.setting.get() == value) {
            return None;
        }
        let value = value.or(form.or_none.then_some(Value::Word("none")))?;
        let table = if slot.table.is_empty() { String::new() } else { format!("{}.", slot.table) };
        Some(format!("{table}{} = {}", slot.parameter.key, form.write(&value)))
    };
    piece.slots().into_iter().filter_map(change).collect()
}
