//! The value of a parameter where a piece keeps it, to be read and set.

use crate::{Duration, Rate};
use alloc::vec::Vec;

/// A value of a parameter. Quantities are numbers of their base unit: seconds, bit/s, bytes, dBm, dB.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// Whole numbers.
    Wholes(Vec<u64>),
    /// A word; "none" is none of the value there could be.
    Word(&'static str),
}

/// A type that parameters have.
pub trait Kind: Sized {
    /// The value; `None` if there is none.
    fn value(&self) -> Option<Value>;

    /// The setting with this value; `None` if the value is of another kind.
    fn of(value: &Value) -> Option<Self>;
}

/// A parameter where a piece keeps it.
pub trait Setting {
    /// Its value; `None` if there is none.
    fn get(&self) -> Option<Value>;

    /// Gives it a value, which is in its range. One of another kind changes nothing.
    fn set(&mut self, value: &Value);
}

impl<T: Kind> Setting for T {
    fn get(&self) -> Option<Value> {
        self.value()
    }

    fn set(&mut self, value: &Value) {
        if let Some(value) = T::of(value) {
            *self = value;
        }
    }
}

impl Kind for bool {
    fn value(&self) -> Option<Value> {
        Some(Value::Flag(*self))
    }

    fn of(value: &Value) -> Option<bool> {
        if let Value::Flag(flag) = value { Some(*flag) } else { None }
    }
}

impl Kind for f64 {
    fn value(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }

    fn of(value: &Value) -> Option<f64> {
        if let Value::Number(number) = value { Some(*number) } else { None }
    }
}

/// Whole numbers; a quantity is rounded.
macro_rules! wholes {
    ($($Whole:ty),*) => {
        $(impl Kind for $Whole {
            fn value(&self) -> Option<Value> {
                u64::try_from(*self).ok().map(Value::Whole)
            }

            fn of(value: &Value) -> Option<$Whole> {
                match value {
                    Value::Whole(number) => <$Whole>::try_from(*number).ok(),
                    Value::Number(number) => Some(libm::round(*number) as $Whole),
                    _ => None,
                }
            }
        })*
    };
}
wholes!(u8, u16, u32, u64, usize);

impl<const N: usize> Kind for [u64; N] {
    fn value(&self) -> Option<Value> {
        Some(Value::Wholes(self.to_vec()))
    }

    fn of(value: &Value) -> Option<[u64; N]> {
        if let Value::Wholes(numbers) = value { numbers.as_slice().try_into().ok() } else { None }
    }
}

impl Kind for Duration {
    fn value(&self) -> Option<Value> {
        Some(Value::Number(self.as_secs_f64()))
    }

    /// No time is 0 s.
    fn of(value: &Value) -> Option<Duration> {
        match value {
            Value::Word("none") => Some(Duration::ZERO),
            _ => f64::of(value).map(Duration::from_secs_f64),
        }
    }
}

impl Kind for Rate {
    fn value(&self) -> Option<Value> {
        Some(Value::Number(self.as_bps_f64()))
    }

    /// A value above 0 does not become 0.
    fn of(value: &Value) -> Option<Rate> {
        let bps = f64::of(value)?;
        Some(Rate::from_bps((libm::round(bps) as u64).max(u64::from(bps > 0.0))))
    }
}

impl<T: Kind> Kind for Option<T> {
    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(T::value)
    }

    fn of(value: &Value) -> Option<Option<T>> {
        match value {
            Value::Word("none") => Some(None),
            _ => T::of(value).map(Some),
        }
    }
}

/// The words that scenarios have for the variants of an enum: `words! { Scaling: "samples" = Samples, "deviations" = Deviations }`. The
/// enum is a [`Kind`] then, and `Scaling::WORDS` are its words.
#[macro_export]
macro_rules! words {
    ($Type:ident: $($word:literal = $Variant:ident),+ $(,)?) => {
        impl $Type {
            /// Their names in scenarios.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its name in scenarios.
            pub const fn word(&self) -> &'static str {
                match self {
                    $($Type::$Variant => $word,)+
                }
            }
        }

        impl $crate::parameter::Kind for $Type {
            fn value(&self) -> ::core::option::Option<$crate::parameter::Value> {
                ::core::option::Option::Some($crate::parameter::Value::Word(self.word()))
            }

            fn of(value: &$crate::parameter::Value) -> ::core::option::Option<$Type> {
                match value {
                    $($crate::parameter::Value::Word($word) => ::core::option::Option::Some($Type::$Variant),)+
                    _ => ::core::option::Option::None,
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_what_is_got() {
        let mut time = Duration::ZERO;
        time.set(&Value::Number(0.0003));
        assert_eq!((time, time.get()), (Duration::from_micros(300), Some(Value::Number(0.0003))));
        let mut limit = Some(Duration::ZERO);
        limit.set(&Value::Word("none"));
        assert_eq!((limit, limit.get()), (None, None));
        let mut rate = Rate::from_mbps(1);
        rate.set(&Value::Number(0.2));
        assert_eq!(rate, Rate::from_bps(1), "not 0");
        let mut thresholds = [2, 5, 9_u64];
        thresholds.set(&Value::Wholes([3, 4].to_vec()));
        assert_eq!(thresholds, [2, 5, 9], "not three");
        let mut few = 5_u8;
        few.set(&Value::Whole(256));
        assert_eq!(few, 5, "too many for it");
    }
}
