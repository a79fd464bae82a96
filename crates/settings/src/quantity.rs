//! Numbers with units: "200 m", "2 Mbit/s", "20 s", "100 B". The unit must always be written.

use super::words::nearest;
use meshpace_core::parameter::{Range, Unit};

/// A physical dimension and its units.
#[derive(PartialEq, Debug)]
pub struct Dimension {
    /// Name with its article.
    pub name: &'static str,
    /// Unit of the example in messages.
    pub usual: &'static str,
    /// Example of a quantity, for messages.
    pub example: &'static str,
    /// Units, each with the number of base units (m, s, bit/s, B) that it has.
    units: &'static [(&'static str, f64)],
    /// Unit of this dimension in declarations of parameters.
    unit: Unit,
}

/// Lengths; the base unit is the metre.
pub const LENGTH: Dimension = Dimension {
    name: "a length",
    usual: "m",
    example: "200 m",
    units: &[("m", 1.0), ("km", 1e3), ("cm", 1e-2), ("mm", 1e-3)],
    unit: Unit::Length,
};

/// Times; the base unit is the second.
pub const TIME: Dimension = Dimension {
    name: "a time",
    usual: "s",
    example: "20 s",
    units: &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("min", 60.0), ("h", 3600.0)],
    unit: Unit::Time,
};

/// Bit rates; the base unit is bit/s.
pub const RATE: Dimension = Dimension {
    name: "a bit rate",
    usual: "Mbit/s",
    example: "2 Mbit/s",
    units: &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)],
    unit: Unit::Rate,
};

/// Speeds; the base unit is m/s.
pub const SPEED: Dimension = Dimension {
    name: "a speed",
    usual: "m/s",
    example: "9 m/s",
    units: &[("m/s", 1.0), ("km/h", 1.0 / 3.6)],
    unit: Unit::Speed,
};

/// Sizes; the base unit is the byte.
pub const SIZE: Dimension = Dimension {
    name: "a size",
    usual: "B",
    example: "100 B",
    units: &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("KiB", 1024.0), ("MiB", 1_048_576.0)],
    unit: Unit::Size,
};

/// Powers; the base unit is dBm.
pub const POWER: Dimension =
    Dimension { name: "a power", usual: "dBm", example: "-78 dBm", units: &[("dBm", 1.0)], unit: Unit::Power };

/// Ratios of powers; the base unit is dB.
pub const RATIO: Dimension = Dimension {
    name: "a gain or loss",
    usual: "dB",
    example: "16 dB",
    units: &[("dB", 1.0), ("dBi", 1.0)],
    unit: Unit::Gain,
};

/// All dimensions.
const DIMENSIONS: [&Dimension; 7] = [&LENGTH, &TIME, &RATE, &SPEED, &SIZE, &POWER, &RATIO];

impl Dimension {
    /// Dimension of a declared unit; `None` if the parameter is not a quantity.
    pub fn of(unit: Unit) -> Option<&'static Dimension> {
        DIMENSIONS.into_iter().find(|dimension| dimension.unit == unit)
    }

    /// Parses a quantity of any dimension. Returns the dimension and the value in base units. A
    /// unit belongs to one dimension.
    pub fn parse_any(text: &str) -> Option<(&'static Dimension, f64)> {
        // Almost every text that is not a quantity begins with a letter.
        text.trim_start().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)).then_some(())?;
        DIMENSIONS.into_iter().find_map(|dimension| Some((dimension, dimension.parse(text).ok()?)))
    }

    /// An example inside a range.
    pub fn example_in(&self, range: &Range) -> String {
        let usual = self.parse(self.example).is_ok_and(|number| range.contains(number));
        let end = if range.most.is_finite() { range.most } else { range.least };
        if usual { self.example.to_owned() } else { self.unit.show(end) }
    }

    /// Describes a range in words: "above zero", "1 ms to 60 s".
    pub fn bound(&self, range: &Range) -> String {
        range.words(|number| if number == 0.0 { "zero".to_owned() } else { self.unit.show(number) })
    }

    /// Names of the units, the usual one first.
    pub fn units(&self) -> Vec<&'static str> {
        let others = self.units.iter().map(|(name, _)| *name).filter(|name| *name != self.usual);
        std::iter::once(self.usual).chain(others).collect()
    }

    /// Parses `text` into a finite value in base units. The error says what to write instead.
    pub fn parse(&self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let (number, unit) = split(text);
        let number: f64 = match number.trim_end().parse() {
            Ok(number) if f64::is_finite(number) => number,
            _ => return Err(format!("a number and a unit, such as \"{}\"", self.example)),
        };
        if unit.is_empty() {
            return Err(format!("a unit after the number: write \"{text} {}\"", self.usual));
        }
        match self.units.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => Ok(number * factor),
            None => {
                let names: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
                let exact = names.iter().copied().find(|name| name.eq_ignore_ascii_case(unit));
                let hint = match exact.or_else(|| nearest(unit, names.iter().copied())) {
                    Some(name) => format!("; did you mean \"{name}\"?"),
                    None => String::new(),
                };
                Err(format!("{} in one of the units {}{hint}", self.name, names.join(", ")))
            }
        }
    }
}

/// Splits a text into number and unit. The unit begins at the first letter that is not an exponent.
fn split(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let starts_unit = |(i, c): &(usize, char)| {
        let exponent = matches!(c, 'e' | 'E') && *i > 0 && matches!(bytes.get(i + 1), Some(b'0'..=b'9' | b'+' | b'-'));
        c.is_alphabetic() && !exponent
    };
    match text.char_indices().find(starts_unit) {
        Some((at, _)) => (&text[..at], &text[at..]),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale_to_the_base_unit() {
        assert_eq!(LENGTH.parse("200 m"), Ok(200.0));
        assert_eq!(LENGTH.parse("-1.5km"), Ok(-1500.0));
        assert_eq!(TIME.parse("10 ms"), Ok(0.01));
        assert_eq!(TIME.parse("5 min"), Ok(300.0));
        assert_eq!(RATE.parse("5.5 Mbit/s"), Ok(5.5e6));
        assert_eq!(RATE.parse("2e3 bit/s"), Ok(2000.0));
        assert_eq!(SIZE.parse("100 B"), Ok(100.0));
    }

    #[test]
    fn an_example_is_inside_the_range() {
        assert_eq!(TIME.example_in(&Range::new(0.0, f64::INFINITY)), "20 s");
        assert_eq!(TIME.example_in(&Range::new(0.0, 0.5)), "500 ms");
        assert_eq!(SIZE.example_in(&Range::new(256.0, f64::INFINITY)), "256 B");
    }

    #[test]
    fn a_number_without_a_unit_is_told_what_to_write() {
        assert!(TIME.parse("20").unwrap_err().contains("\"20 s\""));
        assert!(LENGTH.parse("200").unwrap_err().contains("\"200 m\""));
    }

    #[test]
    fn neither_nan_nor_infinity_nor_words_are_numbers() {
        for text in ["NaN s", "nan s", "inf s", "-inf s", "1e999 s", "s", "", "ten s", "1..2 s", "0x10 s"] {
            assert!(TIME.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_unit_is_told_the_right_ones() {
        assert!(RATE.parse("2 mbit/s").unwrap_err().contains("did you mean \"Mbit/s\""));
        assert!(RATE.parse("2 m").unwrap_err().contains("kbit/s"));
        assert!(TIME.parse("2 m").is_err());
    }
}
