//! The macro that declares the parameters of a piece.

/// The declaration of one parameter: `parameter!(segments: u32 = 3 => whole("segments", 1, 65535), Basic, "most segments", "RFC 5681")`.
/// The source may be left out.
#[macro_export]
macro_rules! parameter {
    ($key:ident: $Type:ty = $default:expr => $form:expr, $level:ident, $meaning:expr $(, $source:literal)?) => {
        $crate::parameter::Parameter {
            key: stringify!($key),
            form: {
                #[allow(unused_imports, reason = "one parameter needs one of them")]
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

/// Declares a piece: the struct of its parameters, their defaults, their ranges, and what each means. `docs/new-parameter.md` has an example.
///
/// A parameter is `/// meaning`, `field: type = default => form, level, "source";`, its key that of the field or one behind `as`; `parts` are pieces inside it,
/// whose keys are in its own table or in one behind `in`; `others` are fields that no key of the piece sets. `Default` has the defaults;
/// `check` checks all ranges, those of parts by their `check`, and then what `also` says of parameters that depend on each other.
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
            /// The declarations of its own parameters, in the order of the fields.
            pub const PARAMETERS: &'static [$crate::parameter::Parameter] = &[$(
                $crate::parameters!(@declare $field $($key)?: $Type = $default => $form, $level,
                    concat!($($meaning),+).trim_ascii() $(, $source)?),
            )*];

            /// Whether every parameter is in its range.
            ///
            /// # Errors
            /// Names the first parameter that is not, its value and its range.
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
