//! Forms of the values that keys accept, and their description in words.

use crate::quantity::Dimension;
use crate::words::one_of;
use meshpace_core::parameter::Range;

/// Form of the values that a key accepts.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole {
        /// Smallest and largest value.
        range: Range,
        /// Thing that the number counts, such as "segments".
        what: String,
    },
    /// A list of whole numbers.
    Wholes {
        /// Required number of values.
        count: usize,
        /// Thing that the numbers count, such as "nodes".
        what: String,
    },
    /// A number without a unit.
    Number {
        /// Smallest and largest value.
        range: Range,
    },
    /// A number with a unit, written as a string.
    Quantity {
        /// Dimension, with its units.
        dimension: &'static Dimension,
        /// Smallest and largest value, in base units.
        range: Range,
    },
    /// One of these strings.
    Choice(Vec<&'static str>),
    /// A table with keys of its own.
    Table,
}

/// Extends `range` to the smallest and largest value of both ranges.
fn widen(range: &mut Range, other: &Range) {
    if other.least < range.least || other.least == range.least && !other.excludes_least {
        (range.least, range.excludes_least) = (other.least, other.excludes_least);
    }
    if other.most > range.most || other.most == range.most && !other.excludes_most {
        (range.most, range.excludes_most) = (other.most, other.excludes_most);
    }
}

impl Form {
    /// Merges forms of the same kind: the result accepts what any of `forms` accepts.
    pub fn merged(forms: impl Iterator<Item = Form>) -> Vec<Form> {
        let mut found: Vec<Form> = Vec::new();
        for form in forms {
            if !found.iter_mut().any(|earlier| earlier.widen(&form)) {
                found.push(form);
            }
        }
        found
    }

    /// Extends the form to what `other` accepts. Returns false if `other` is of another kind.
    fn widen(&mut self, other: &Form) -> bool {
        match (self, other) {
            (Form::Whole { range, what }, Form::Whole { range: r, what: w }) if what == w => widen(range, r),
            (Form::Number { range }, Form::Number { range: r }) => widen(range, r),
            (Form::Quantity { dimension, range }, Form::Quantity { dimension: d, range: r })
                if dimension.name == d.name =>
            {
                widen(range, r);
            }
            (Form::Choice(names), Form::Choice(more)) => {
                for name in more {
                    if !names.contains(name) {
                        names.push(name);
                    }
                }
            }
            (one, other) => return one == other,
        }
        true
    }

    /// Describes the form in words.
    pub fn describe(&self) -> String {
        let plain = |range: &Range| range.words(|number| number.to_string());
        match self {
            Form::Text => "string".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Whole { range, what } if range.most >= i64::MAX as f64 => {
                format!("whole number from {} ({what})", range.least)
            }
            Form::Whole { range, what } => format!("whole number, {} ({what})", plain(range)),
            Form::Wholes { count, what } => format!("list of {count} {what}"),
            Form::Number { range } => format!("number, {}", plain(range)),
            Form::Quantity { dimension, range } => {
                let name = dimension.name.split_once(' ').map_or(dimension.name, |(_, name)| name);
                let bound = Some(dimension.bound(range)).filter(|bound| !bound.is_empty());
                let bound = bound.map(|bound| format!("{bound}, ")).unwrap_or_default();
                format!("{name}, {bound}as \"{}\" ({})", dimension.example_in(range), dimension.units().join(", "))
            }
            Form::Choice(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                one_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Form::Table => "table".to_owned(),
        }
    }
}
