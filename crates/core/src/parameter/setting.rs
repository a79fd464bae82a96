//! Reading and writing the value of a parameter inside its piece.

use crate::{Duration, Rate};
use alloc::vec::Vec;

/// Value of a parameter. Quantities are numbers of their base unit: seconds, bit/s, bytes, dBm, dB.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Truth value, true or false.
    Flag(bool),
    /// Number, possibly of a base unit.
    Number(f64),
    /// Whole number without a fraction.
    Whole(u64),
    /// List of whole numbers.
    Wholes(Vec<u64>),
    /// Keyword. The keyword "none" stands for an absent optional value.
    Word(&'static str),
}

/// Rust type that can hold the value of a parameter.
pub trait Kind: Sized {
    /// Converts to a [`Value`]; `None` if an optional value is absent.
    fn value(&self) -> Option<Value>;

    /// Converts from a [`Value`]; `None` if `value` is of another kind.
    fn of(value: &Value) -> Option<Self>;
}

/// Value of a parameter inside its piece, whatever its type.
pub trait Setting {
    /// Reads the value; `None` if an optional value is absent.
    fn get(&self) -> Option<Value>;

    /// Writes the value. The caller has checked the range. A value of another kind changes nothing.
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

/// Implements [`Kind`] for types of whole numbers. A quantity is rounded.
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

    /// Converts from seconds. The keyword "none" becomes 0 s.
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

    /// Converts from bit/s, rounded. A value above 0 never becomes 0.
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

/// Declares the keywords that stand for the variants of an enum in scenarios: `words! { Scaling:
/// "samples" = Samples, "deviations" = Deviations }`. The enum then implements [`Kind`], and
/// `Scaling::WORDS` lists its keywords.
#[macro_export]
macro_rules! words {
    ($Type:ident: $($word:literal = $Variant:ident),+ $(,)?) => {
        impl $Type {
            /// Keywords of all variants, as written in scenarios.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Keyword of this variant, as written in scenarios.
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
