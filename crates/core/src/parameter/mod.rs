//! A parameter is declared once, beside the piece that has it: key, unit, range, default, meaning, source and level. The reader of
//! scenarios, the check of ranges, `Default`, the lists of keys and their schema follow from that.
//!
//! [`parameters!`](crate::parameters) declares those of a piece; it is read when a scenario is read or a configuration checked, never per
//! frame. `docs/new-parameter.md` adds one step by step.

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
    /// Everybody: a scenario or an example of the project sets it.
    Basic,
    /// For those who study the piece itself; others leave it as it is.
    Expert,
}

/// The declaration of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key, without the table that its piece is in.
    pub key: &'static str,
    /// Its unit and its range.
    pub form: Form,
    /// Its value unless told otherwise; `None` where it has none.
    pub default: fn() -> Option<Value>,
    /// Its purpose, as a part of a sentence.
    pub meaning: &'static str,
    /// Its source: a paper's section, an RFC, a standard, another program; empty for what is this program's own.
    pub source: &'static str,
    /// Its audience.
    pub level: Level,
}

impl Parameter {
    /// Checks the value of `setting` against the range; no value is inside it.
    ///
    /// # Errors
    /// Names the parameter, its value and its range.
    pub fn check(&self, setting: &dyn Setting) -> Result<(), ParameterError> {
        let Some(value) = setting.get().filter(|value| !self.form.accepts(value)) else { return Ok(()) };
        let (value, expected) = (self.form.show(&value), self.form.to_string());
        Err(ParameterError { name: self.key.into(), value, expected: expected.into() })
    }
}

/// A parameter and where its piece keeps it.
pub struct Slot<'a> {
    /// The table of its key inside that of the piece; empty if it has none of its own.
    pub table: &'static str,
    /// Its declaration.
    pub parameter: &'static Parameter,
    /// Its value.
    pub setting: &'a mut dyn Setting,
}

impl<'a> Slot<'a> {
    /// A parameter of the piece itself.
    pub fn new(parameter: &'static Parameter, setting: &'a mut dyn Setting) -> Slot<'a> {
        Slot { table: "", parameter, setting }
    }
}

/// The parameters of a piece.
pub type Slots<'a> = Vec<Slot<'a>>;

/// A piece whose parameters are declared.
pub trait Parameters {
    /// All of them, those of its parts included.
    fn slots(&mut self) -> Slots<'_>;
}

/// Checks every parameter of `piece` against its range.
///
/// # Errors
/// Names the first parameter that is not, its value and its range.
pub fn check(piece: &mut dyn Parameters) -> Result<(), ParameterError> {
    let check = |slot: &Slot<'_>| slot.parameter.check(&*slot.setting).map_err(|error| error.inside(slot.table));
    piece.slots().iter().try_for_each(check)
}

/// Text that a scenario has to contain to make `piece` of `usual`: `marks = 6`, `rto.min = "1 s"`.
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
