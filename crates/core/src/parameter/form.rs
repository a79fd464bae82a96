//! Unit and range of a parameter.

use super::Value;
use crate::{Duration, Rate};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// Unit of a value. Quantities are stored as numbers of their base unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Truth value, true or false.
    Flag,
    /// Number without a unit.
    Number,
    /// Whole number of the named things, such as segments.
    Whole(&'static str),
    /// List of whole numbers: the length of the list, and the name of the counted things.
    Wholes(usize, &'static str),
    /// One of the listed keywords.
    Choice(&'static [&'static str]),
    /// Time in seconds.
    Time,
    /// Rate in bit/s.
    Rate,
    /// Size in bytes.
    Size,
    /// Power in dBm.
    Power,
    /// Gain or loss in dB.
    Gain,
    /// Length in metres.
    Length,
    /// Speed in m/s.
    Speed,
}

impl Unit {
    /// Formats a number of the base unit together with its unit, such as `0.3 ms`.
    pub fn show(self, number: f64) -> String {
        match self {
            Unit::Time => time(number),
            Unit::Rate => format!("{}", Rate::from_bps(number as u64)),
            Unit::Size => format!("{number} B"),
            Unit::Power => format!("{number} dBm"),
            Unit::Gain => format!("{number} dB"),
            Unit::Length => format!("{number} m"),
            Unit::Speed => format!("{number} m/s"),
            Unit::Flag | Unit::Number | Unit::Whole(_) | Unit::Wholes(..) | Unit::Choice(_) => format!("{number}"),
        }
    }

    /// Returns true if the value is written in quotes in a scenario.
    const fn is_quoted(self) -> bool {
        !matches!(self, Unit::Flag | Unit::Number | Unit::Whole(_) | Unit::Wholes(..))
    }
}

/// Interval of numbers in which a value must lie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// Lower end of the interval.
    pub least: f64,
    /// Upper end of the interval.
    pub most: f64,
    /// True if `least` itself is outside the interval.
    pub excludes_least: bool,
    /// True if `most` itself is outside the interval.
    pub excludes_most: bool,
}

impl Range {
    /// Interval of all numbers.
    pub const ALL: Range = Range::new(f64::NEG_INFINITY, f64::INFINITY);

    /// Creates an interval that includes both ends.
    pub const fn new(least: f64, most: f64) -> Range {
        Range { least, most, excludes_least: false, excludes_most: false }
    }

    /// Returns true if `number` lies in the interval. NaN lies in no interval.
    pub fn contains(&self, number: f64) -> bool {
        let is_large = if self.excludes_least { number > self.least } else { number >= self.least };
        is_large && if self.excludes_most { number < self.most } else { number <= self.most }
    }

    /// Describes the interval in words. `show` formats the two ends.
    pub fn words(&self, show: impl Fn(f64) -> String) -> String {
        let (least, most) =
            (self.least.is_finite().then(|| show(self.least)), self.most.is_finite().then(|| show(self.most)));
        match (least, most, self.excludes_least, self.excludes_most) {
            (None, None, ..) => String::new(),
            (Some(least), None, true, _) => format!("above {least}"),
            (Some(least), None, false, _) => format!("{least} or more"),
            (None, Some(most), _, true) => format!("below {most}"),
            (None, Some(most), _, false) => format!("at most {most}"),
            (Some(least), Some(most), false, false) => format!("{least} to {most}"),
            (Some(least), Some(most), true, false) => format!("above {least}, at most {most}"),
            (Some(least), Some(most), false, true) => format!("{least} or more, below {most}"),
            (Some(least), Some(most), true, true) => format!("above {least}, below {most}"),
        }
    }
}

/// Unit of a parameter and the values that it accepts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Form {
    /// Unit of the value.
    pub unit: Unit,
    /// Accepted interval, in the base unit. The field has no meaning for flags and keywords.
    pub range: Range,
    /// True if the keyword "none" switches the parameter off.
    pub or_none: bool,
    /// Description of the behaviour without a value, for a parameter without a default. Empty if
    /// the parameter has a default.
    pub absence: &'static str,
}

/// Form of a truth value, true or false.
pub const FLAG: Form = Form::of(Unit::Flag, Range::ALL);
/// Form of a time. The upper bound is 11 days unless another bound is set.
pub const TIME: Form = Form::of(Unit::Time, Range::new(0.0, Form::LONGEST));
/// Form of a bit rate of at most 1 Tbit/s.
pub const RATE: Form = Form::of(Unit::Rate, Range::new(0.0, Form::FASTEST));
/// Form of a size in bytes.
pub const SIZE: Form = Form::of(Unit::Size, Range::new(0.0, Form::LARGEST));
/// Form of a power in dBm.
pub const POWER: Form = Form::of(Unit::Power, Range::new(-Form::STRONGEST, Form::STRONGEST));
/// Form of a gain or a loss in dB.
pub const GAIN: Form = Form::of(Unit::Gain, Range::new(-Form::STRONGEST, Form::STRONGEST));

/// Form of a length of at most 10,000 km.
pub const LENGTH: Form = Form::of(Unit::Length, Range::new(0.0, Form::FARTHEST));
/// Form of a speed in m/s.
pub const SPEED: Form = Form::of(Unit::Speed, Range::new(0.0, f64::INFINITY));

/// Form of a number without a unit, between `least` and `most`.
pub const fn number(least: f64, most: f64) -> Form {
    Form::of(Unit::Number, Range::new(least, most))
}

/// Form of a whole number of `what`, between `least` and `most`, where `most` is at most 2^53.
pub const fn whole(what: &'static str, least: u64, most: u64) -> Form {
    Form::of(Unit::Whole(what), Range::new(least as f64, most as f64))
}

/// Form of a list of `count` whole numbers of `what`.
pub const fn wholes(count: usize, what: &'static str, least: u64, most: u64) -> Form {
    Form::of(Unit::Wholes(count, what), Range::new(least as f64, most as f64))
}

/// Form of a keyword that must be one of `words`.
pub const fn choice(words: &'static [&'static str]) -> Form {
    Form::of(Unit::Choice(words), Range::ALL)
}

impl Form {
    /// Longest time, in seconds.
    const LONGEST: f64 = 1e6;
    /// Highest bit rate, in bit/s.
    const FASTEST: f64 = 1e12;
    /// Largest size, in bytes.
    const LARGEST: f64 = 4_294_967_295.0;
    /// Longest length, in metres.
    const FARTHEST: f64 = 1e7;
    /// Largest power in dBm, and largest ratio of powers in dB.
    const STRONGEST: f64 = 1e4;

    const fn of(unit: Unit, range: Range) -> Form {
        Form { unit, range, or_none: false, absence: "" }
    }

    /// Returns this form with the lower bound `least`, included.
    #[must_use]
    pub const fn from(mut self, least: f64) -> Form {
        (self.range.least, self.range.excludes_least) = (least, false);
        self
    }

    /// Returns this form with the lower bound `least`, excluded.
    #[must_use]
    pub const fn above(mut self, least: f64) -> Form {
        (self.range.least, self.range.excludes_least) = (least, true);
        self
    }

    /// Returns this form with the upper bound `most`, included.
    #[must_use]
    pub const fn to(mut self, most: f64) -> Form {
        (self.range.most, self.range.excludes_most) = (most, false);
        self
    }

    /// Returns this form with the upper bound `most`, excluded.
    #[must_use]
    pub const fn below(mut self, most: f64) -> Form {
        (self.range.most, self.range.excludes_most) = (most, true);
        self
    }

    /// Returns this form for a parameter without a default, with `words` describing the behaviour
    /// without a value.
    #[must_use]
    pub const fn or(mut self, words: &'static str) -> Form {
        self.absence = words;
        self
    }

    /// Returns this form with the keyword "none" also accepted.
    #[must_use]
    pub const fn or_none(mut self) -> Form {
        self.or_none = true;
        self
    }

    /// Range for display to people. A bound that is merely the limit of the unit, beyond any
    /// sensible value, is left out.
    pub fn stated(&self) -> Range {
        let usual = match self.unit {
            Unit::Time => Form::LONGEST,
            Unit::Rate => Form::FASTEST,
            Unit::Size => Form::LARGEST,
            Unit::Power | Unit::Gain => Form::STRONGEST,
            Unit::Length => Form::FARTHEST,
            _ => return self.range,
        };
        let most = if self.range.most >= usual { f64::INFINITY } else { self.range.most };
        let least = if self.range.least <= -usual { f64::NEG_INFINITY } else { self.range.least };
        Range { least, most, ..self.range }
    }

    /// Returns true if `value` is accepted. A value of another kind is not accepted.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self.unit, value) {
            (Unit::Flag, Value::Flag(_)) => true,
            (Unit::Choice(words), Value::Word(word)) => words.contains(word),
            (Unit::Whole(_), Value::Whole(number)) => self.range.contains(*number as f64),
            (Unit::Wholes(count, _), Value::Wholes(numbers)) => {
                numbers.len() == count && numbers.iter().all(|number| self.range.contains(*number as f64))
            }
            (Unit::Flag | Unit::Choice(_) | Unit::Whole(_) | Unit::Wholes(..), _) => false,
            (_, Value::Number(number)) => self.range.contains(*number),
            (_, Value::Whole(number)) => self.range.contains(*number as f64),
            _ => false,
        }
    }

    /// Formats a value for people, with its unit.
    pub fn show(&self, value: &Value) -> String {
        match value {
            Value::Flag(flag) => format!("{flag}"),
            Value::Number(number) => self.unit.show(*number),
            Value::Whole(number) if matches!(self.unit, Unit::Size) => format!("{number} B"),
            Value::Whole(number) => format!("{number}"),
            Value::Wholes(numbers) => format!("{numbers:?}"),
            Value::Word(word) => (*word).to_owned(),
        }
    }

    /// Formats a value in the syntax of a scenario, with quantities and keywords in quotes.
    pub fn write(&self, value: &Value) -> String {
        if self.unit.is_quoted() { format!("\"{}\"", self.show(value)) } else { self.show(value) }
    }
}

/// Writes the expected values, for error messages: `0.1 to 10`, `1 to 12 segments`, `above 0 s`.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.stated().words(|number| self.unit.show(number));
        match self.unit {
            Unit::Flag => f.write_str("true or false"),
            Unit::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Unit::Whole(what) => write!(f, "{range} {what}"),
            Unit::Wholes(count, what) => write!(f, "{count} {what}, {range}"),
            _ => f.write_str(&range),
        }
    }
}

/// Formats seconds in the largest unit in which the value is at least 1.
fn time(seconds: f64) -> String {
    let ns = Duration::from_secs_f64(seconds).0;
    match ns {
        0 => "0 s".to_owned(),
        1..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{} us", ns as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_ends_or_not() {
        let inside = |form: Form, numbers: [f64; 4]| numbers.map(|number| form.range.contains(number));
        let numbers = [0.0, 0.1, 1.0, 1.1];
        assert_eq!(inside(number(0.0, 1.0), numbers), [true, true, true, false]);
        assert_eq!(inside(number(0.0, 1.0).above(0.0), numbers), [false, true, true, false]);
        assert_eq!(inside(number(0.0, 1.0).below(1.0), numbers), [true, true, false, false]);
        assert!(!Range::ALL.contains(f64::NAN));
    }

    #[test]
    fn what_is_expected_is_said_with_its_unit() {
        for (form, expected) in [
            (number(0.1, 10.0), "0.1 to 10"),
            (number(0.0, f64::INFINITY), "0 or more"),
            (number(0.0, 1.0).above(0.0).below(1.0), "above 0, below 1"),
            (whole("segments", 1, 12), "1 to 12 segments"),
            (TIME.above(0.0), "above 0 s"),
            (TIME.from(1e-3).to(60.0), "1 ms to 60 s"),
            (RATE.above(0.0), "above 0 bit/s"),
            (choice(&["a", "b"]), "one of a, b"),
        ] {
            assert_eq!(format!("{form}"), expected);
        }
    }

    #[test]
    fn values_are_written_as_a_scenario_has_them() {
        for (form, value, written) in [
            (TIME, Value::Number(0.0003), "\"300 us\""),
            (TIME, Value::Number(5.484e-3), "\"5.484 ms\""),
            (TIME, Value::Number(0.0), "\"0 s\""),
            (TIME, Value::Number(1.5), "\"1.5 s\""),
            (RATE, Value::Number(12e6), "\"12 Mbit/s\""),
            (SIZE, Value::Whole(1514), "\"1514 B\""),
            (number(0.0, 1.0), Value::Number(0.7), "0.7"),
            (FLAG, Value::Flag(true), "true"),
            (wholes(3, "numbers", 1, 9), Value::Wholes([2, 5, 9].to_vec()), "[2, 5, 9]"),
            (choice(&["hold"]), Value::Word("hold"), "\"hold\""),
        ] {
            assert_eq!(form.write(&value), written);
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        assert!(!FLAG.accepts(&Value::Number(1.0)));
        assert!(!whole("segments", 1, 3).accepts(&Value::Number(2.0)));
        assert!(!choice(&["a"]).accepts(&Value::Word("b")));
        assert!(!wholes(3, "numbers", 1, 9).accepts(&Value::Wholes([1, 2].to_vec())));
    }
}
