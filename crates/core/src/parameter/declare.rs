//! Macros that declare the parameters of a configuration struct.

/// Declares one parameter: `parameter!(segments: u32 = 3 => whole("segments", 1, 65535), Basic,
/// "most segments", "RFC 5681")`. The last argument, the source, may be omitted.
#[macro_export]
macro_rules! parameter {
    ($key:ident: $Type:ty = $default:expr => $form:expr, $level:ident, $meaning:expr $(, $source:literal)?) => {
        $crate::parameter::Parameter {
            key: stringify!($key),
            form: {
                #[allow(unused_imports, reason = "one parameter uses only one of these forms")]
                use $crate::parameter::{FLAG, GAIN, LENGTH, POWER, RATE, SIZE, SPEED, TIME, choice, number, whole, wholes};
                $form
            },
            default: || {
                let default: $Type = $default;
                $crate::parameter::Setting::get(&default)
            },
            meaning: $meaning,
            source: concat!($($source)?),
            level: $crate::parameter::Level::$level,
        }
    };
}

/// Declares a configuration struct ("piece") with its parameters, their defaults, their ranges and
/// their meanings. `docs/new-parameter.md` has an example.
///
/// A parameter is written `/// meaning`, `field: type = default => form, level, "source";`. Its key
/// in scenarios is the name of the field, or the name behind `as`. `parts` lists nested
/// configuration structs; their keys stand in the table of the outer struct, or in the table named
/// behind `in`. `others` lists fields that no key of the struct sets. The generated `Default`
/// returns the declared defaults. The generated `check` checks all ranges, then the nested structs
/// with their own `check`, and last the condition behind `also`, which concerns parameters that
/// depend on each other.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Piece:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident $(as $key:ident)?: $Type:ty = $default:expr => $form:expr, $level:ident $(, $source:literal)?;
            )*
        }
        $(parts {
            $(
                $(#[doc = $part_about:literal])+
                $part:ident $(in $table:ident)?: $Part:ty = $part_default:expr;
            )*
        })?
        $(others {
            $(
                $(#[doc = $other_about:literal])+
                $other:ident: $Other:ty = $other_default:expr;
            )*
        })?
        $(also |$piece:ident| $also:expr;)?
    ) => {
        $(#[$attribute])*
        $visibility struct $Piece {
            $(
                #[doc = concat!($($meaning,)+ ". Default `", stringify!($default), "`; `", stringify!($form), "`.")]
                pub $field: $Type,
            )*
            $($($(#[doc = $part_about])+ pub $part: $Part,)*)?
            $($($(#[doc = $other_about])+ pub $other: $Other,)*)?
        }

        impl ::core::default::Default for $Piece {
            fn default() -> $Piece {
                $Piece {
                    $($field: $default,)*
                    $($($part: $part_default,)*)?
                    $($($other: $other_default,)*)?
                }
            }
        }

        impl $Piece {
            /// Declarations of the parameters of this struct, in the order of its fields. Those of
            /// nested structs are not included.
            pub const PARAMETERS: &'static [$crate::parameter::Parameter] = &[$(
                $crate::parameters!(@declare $field $($key)?: $Type = $default => $form, $level,
                    concat!($($meaning),+).trim_ascii() $(, $source)?),
            )*];

            /// Checks every parameter against its range.
            ///
            /// # Errors
            /// Returns the first parameter that is outside its range, with its value and the range.
            pub fn check(&self) -> ::core::result::Result<(), $crate::ParameterError> {
                let mut declared = Self::PARAMETERS.iter();
                $(declared.next().map_or(Ok(()), |parameter| parameter.check(&self.$field))?;)*
                $($(self.$part.check().map_err(|error| error.inside(concat!($(stringify!($table))?)))?;)*)?
                $(
                    let $piece = self;
                    $also?;
                )?
                Ok(())
            }
        }

        impl $crate::parameter::Parameters for $Piece {
            fn slots(&mut self) -> $crate::parameter::Slots<'_> {
                let mut slots = $crate::parameter::Slots::new();
                let mut declared = Self::PARAMETERS.iter();
                $(slots.extend(declared.next().map(|parameter| $crate::parameter::Slot::new(parameter, &mut self.$field)));)*
                $($(
                    let part = $crate::parameter::Parameters::slots(&mut self.$part).into_iter();
                    $(let part = part.map(|slot| $crate::parameter::Slot { table: stringify!($table), ..slot });)?
                    slots.extend(part);
                )*)?
                slots
            }
        }
    };
    (@declare $field:ident: $($rest:tt)+) => {
        $crate::parameter!($field: $($rest)+)
    };
    (@declare $field:ident $key:ident: $($rest:tt)+) => {
        $crate::parameter!($key: $($rest)+)
    };
}

#[cfg(test)]
mod tests {
    use crate::Duration;
    use crate::parameter::{Parameters, Value, changes, require};
    use alloc::string::ToString;
    use alloc::vec::Vec;

    parameters! {
        /// A timer.
        #[derive(Clone, PartialEq, Debug)]
        struct Timer {
            /// lower bound
            min: Duration = Duration::from_millis(400) => TIME.above(0.0), Expert, "RFC 6298, 2.4";
            /// upper bound
            max: Duration = Duration::from_secs(2) => TIME.above(0.0).to(60.0), Expert;
        }
        also |timer| require(timer.min <= timer.max, "max", timer.max, "at least min");
    }

    parameters! {
        /// A piece.
        #[derive(Clone, PartialEq, Debug)]
        struct Piece {
            /// weight of the
            /// old average
            alpha: f64 = 0.7 => number(0.0, 1.0).below(1.0), Basic;
            /// longest queue
            length as queue: u32 = 50 => whole("packets", 1, 100), Basic;
        }
        parts {
            /// The timer.
            timer in rto: Timer = Timer { min: Duration::from_secs(1), ..Timer::default() };
        }
        others {
            /// Fields that no key sets.
            name: &'static str = "piece";
        }
    }

    #[test]
    fn a_declaration_makes_field_default_check_and_slots() {
        let mut piece = Piece::default();
        let one = Timer { min: Duration::from_secs(1), max: Duration::from_secs(2) };
        assert_eq!(piece, Piece { alpha: 0.7, length: 50, timer: one, name: "piece" });
        assert_eq!(Piece::PARAMETERS[0].meaning, "weight of the old average");
        assert_eq!((Timer::PARAMETERS[0].source, Timer::PARAMETERS[1].source), ("RFC 6298, 2.4", ""));
        // The slots must equal the declared parameters, except for the lower bound of the timer,
        // which is replaced by another parameter inside the piece.
        let slots = piece.slots();
        let names: Vec<_> = slots.iter().map(|slot| (slot.table, slot.parameter.key)).collect();
        assert_eq!(names, [("", "alpha"), ("", "queue"), ("rto", "min"), ("rto", "max")]);
        let differ: Vec<_> = slots.iter().map(|slot| (slot.parameter.default)() != slot.setting.get()).collect();
        assert_eq!(differ, [false, false, true, false]);
    }

    #[test]
    fn a_check_names_the_parameter_by_its_place() {
        let refused = |piece: Piece| piece.check().unwrap_err().to_string();
        let piece = Piece::default();
        assert_eq!(piece.check(), Ok(()));
        assert_eq!(refused(Piece { alpha: 1.0, ..piece.clone() }), "alpha = 1: expected 0 or more, below 1");
        assert_eq!(refused(Piece { length: 0, ..piece.clone() }), "queue = 0: expected 1 to 100 packets");
        let timer = Timer { min: Duration::ZERO, ..Timer::default() };
        assert_eq!(refused(Piece { timer, ..piece.clone() }), "rto.min = 0 s: expected above 0 s");
        let timer = Timer { min: Duration::from_secs(3), ..Timer::default() };
        assert!(refused(Piece { timer, ..piece }).starts_with("rto.max = "));
    }

    #[test]
    fn what_differs_is_written_as_a_scenario_has_it() {
        let mut piece = Piece::default();
        assert!(changes(&mut piece, &mut Piece::default()).is_empty());
        for slot in piece.slots() {
            match slot.parameter.key {
                "queue" => slot.setting.set(&Value::Whole(9)),
                "max" => slot.setting.set(&Value::Number(60.0)),
                _ => {}
            }
        }
        assert_eq!(changes(&mut piece, &mut Piece::default()), ["queue = 9", "rto.max = \"60 s\""]);
    }
}
