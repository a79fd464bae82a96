//! Unit and range of a parameter.

use super::Value;
use crate::{Duration, Rate};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// Unit of a value. Quantities are numbers of their base unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// True or false.
    Flag,
    /// A number without a unit.
    Number,
    /// A whole number of these, such as segments.
    Whole(&'static str),
    /// A list of so many whole numbers of these.
    Wholes(usize, &'static str),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Seconds.
    Time,
    /// bit/s.
    Rate,
    /// Bytes.
    Size,
    /// dBm.
    Power,
    /// dB.
    Gain,
    /// Metres.
    Length,
    /// m/s.
    Speed,
}

impl Unit {
    /// A number of the base unit with its unit: `0.3 ms`.
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

    /// True if a scenario has it in quotes.
    const fn is_quoted(self) -> bool {
        !matches!(self, Unit::Flag | Unit::Number | Unit::Whole(_) | Unit::Wholes(..))
    }
}

/// Between which numbers a value is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// True if `least` itself is outside.
    pub is_above: bool,
    /// True if `most` itself is outside.
    pub is_below: bool,
}

impl Range {
    /// Every number.
    pub const ALL: Range = Range::new(f64::NEG_INFINITY, f64::INFINITY);

    /// Both ends included.
    pub const fn new(least: f64, most: f64) -> Range {
        Range { least, most, is_above: false, is_below: false }
    }

    /// True if `number` is in it; NaN is in none.
    pub fn contains(&self, number: f64) -> bool {
        let is_large = if self.is_above { number > self.least } else { number >= self.least };
        is_large && if self.is_below { number < self.most } else { number <= self.most }
    }

    /// In words, `show` writing its ends.
    pub fn words(&self, show: impl Fn(f64) -> String) -> String {
        let (least, most) =
            (self.least.is_finite().then(|| show(self.least)), self.most.is_finite().then(|| show(self.most)));
        match (least, most, self.is_above, self.is_below) {
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

/// Values that a parameter may have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Form {
    /// Its unit.
    pub unit: Unit,
    /// Between which numbers, in the base unit; of no meaning for flags and words.
    pub range: Range,
    /// True if the word "none" switches it off.
    pub or_none: bool,
    /// Meaning of its absence in words, where it has no value unless told; empty where it has one.
    pub absence: &'static str,
}

/// True or false.
pub const FLAG: Form = Form::of(Unit::Flag, Range::ALL);
/// A time, at most 11 days unless told otherwise.
pub const TIME: Form = Form::of(Unit::Time, Range::new(0.0, Form::LONGEST));
/// A bit rate, at most 1 Tbit/s.
pub const RATE: Form = Form::of(Unit::Rate, Range::new(0.0, Form::FASTEST));
/// A size in bytes.
pub const SIZE: Form = Form::of(Unit::Size, Range::new(0.0, Form::LARGEST));
/// A power.
pub const POWER: Form = Form::of(Unit::Power, Range::new(-Form::STRONGEST, Form::STRONGEST));
/// A gain or a loss.
pub const GAIN: Form = Form::of(Unit::Gain, Range::new(-Form::STRONGEST, Form::STRONGEST));

/// A length, at most 10,000 km.
pub const LENGTH: Form = Form::of(Unit::Length, Range::new(0.0, Form::FARTHEST));
/// A speed.
pub const SPEED: Form = Form::of(Unit::Speed, Range::new(0.0, f64::INFINITY));

/// A number without a unit.
pub const fn number(least: f64, most: f64) -> Form {
    Form::of(Unit::Number, Range::new(least, most))
}

/// A whole number of `what`, at most 2^53.
pub const fn whole(what: &'static str, least: u64, most: u64) -> Form {
    Form::of(Unit::Whole(what), Range::new(least as f64, most as f64))
}

/// A list of `count` whole numbers of `what`.
pub const fn wholes(count: usize, what: &'static str, least: u64, most: u64) -> Form {
    Form::of(Unit::Wholes(count, what), Range::new(least as f64, most as f64))
}

/// One of `words`.
pub const fn choice(words: &'static [&'static str]) -> Form {
    Form::of(Unit::Choice(words), Range::ALL)
}

impl Form {
    /// The longest time, seconds.
    const LONGEST: f64 = 1e6;
    /// The highest bit rate, bit/s.
    const FASTEST: f64 = 1e12;
    /// The largest size, bytes.
    const LARGEST: f64 = 4_294_967_295.0;
    /// The longest length, metres.
    const FARTHEST: f64 = 1e7;
    /// The largest power or ratio of powers, dBm or dB.
    const STRONGEST: f64 = 1e4;

    const fn of(unit: Unit, range: Range) -> Form {
        Form { unit, range, or_none: false, absence: "" }
    }

    /// The same from `least` on.
    #[must_use]
    pub const fn from(mut self, least: f64) -> Form {
        (self.range.least, self.range.is_above) = (least, false);
        self
    }

    /// The same above `least`.
    #[must_use]
    pub const fn above(mut self, least: f64) -> Form {
        (self.range.least, self.range.is_above) = (least, true);
        self
    }

    /// The same up to `most`.
    #[must_use]
    pub const fn to(mut self, most: f64) -> Form {
        (self.range.most, self.range.is_below) = (most, false);
        self
    }

    /// The same below `most`.
    #[must_use]
    pub const fn below(mut self, most: f64) -> Form {
        (self.range.most, self.range.is_below) = (most, true);
        self
    }

    /// The same, and without it `words` hold.
    #[must_use]
    pub const fn or(mut self, words: &'static str) -> Form {
        self.absence = words;
        self
    }

    /// The same, or the word "none".
    #[must_use]
    pub const fn or_none(mut self) -> Form {
        self.or_none = true;
        self
    }

    /// The range as far as people have to know it: without a bound beyond any sensible value.
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

    /// True if `value` is in the range; one of another kind is not.
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

    /// A value as people read it.
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

    /// A value as a scenario has it: quantities and words in quotes.
    pub fn write(&self, value: &Value) -> String {
        if self.unit.is_quoted() { format!("\"{}\"", self.show(value)) } else { self.show(value) }
    }
}

/// The expectation, for errors: `0.1 to 10`, `1 to 12 segments`, `above 0 s`.
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

/// Seconds in the largest unit of which there is a whole one.
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
