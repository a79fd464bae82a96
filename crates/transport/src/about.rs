//! Description of a piece of a transport for users: its name, a sentence about it, its source, and
//! for a rule of one file the parameters that a scenario may set.

use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{self, Parameter, ParameterError, Parameters, Slot, Slots};

/// Largest number of parameters that a rule can have.
pub const MOST_PARAMETERS: usize = 4;

/// Name and parameters of a rule.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of the rule, and of the transport that uses it.
    pub name: &'static str,
    /// Description in one line, for people.
    pub description: &'static str,
    /// Source of the rule: paper and section.
    pub source: &'static str,
    /// Parameters of the rule: at most [`MOST_PARAMETERS`], all of them numbers.
    pub parameters: &'static [Parameter],
}

/// A piece of a transport that has a name. The module `names` makes it a transport or a modifier.
#[derive(Clone, Copy, Debug)]
pub struct Named<T> {
    /// Name in scenario files.
    pub name: &'static str,
    /// Description in one line, for people.
    pub description: &'static str,
    /// Source of the piece: paper or RFC, and section.
    pub source: &'static str,
    /// Function that returns the parameters of the piece.
    pub config: fn() -> T,
}

/// Enumeration of the rules of a list.
pub trait Kind: Copy {
    /// Name and parameters of the rule.
    fn about(self) -> &'static About;
}

/// Defines the enum of all rules that consist of one file. Each rule implements `$Trait` with its
/// `ABOUT`.
macro_rules! kinds {
    ($Trait:ident: $($module:ident::$Rule:ident,)*) => {
        /// One of the rules that consist of one file each.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Kind {
            $(#[doc = concat!("[`", stringify!($module), "::", stringify!($Rule), "`].")] $Rule,)*
        }

        impl $crate::about::Kind for Kind {
            fn about(self) -> &'static $crate::about::About {
                self.about()
            }
        }

        impl Kind {
            /// All rules in the order of the list.
            pub const ALL: &[Kind] = &[$(Kind::$Rule,)*];

            /// Name and parameters of the rule.
            pub const fn about(self) -> &'static $crate::about::About {
                match self {
                    $(Kind::$Rule => const { &<$module::$Rule as $Trait>::ABOUT },)*
                }
            }
        }
    };
}
pub(crate) use kinds;

/// A rule and the values of its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Config<K> {
    kind: K,
    values: [f64; MOST_PARAMETERS],
}

impl<K: Kind> Config<K> {
    /// Creates a rule with its default parameters.
    pub fn new(kind: K) -> Config<K> {
        let mut values = [0.0; MOST_PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(kind.about().parameters) {
            *value = (parameter.default)().and_then(|default| parameter::Kind::of(&default)).unwrap_or_default();
        }
        Config { kind, values }
    }

    /// The rule whose parameters these are.
    pub fn kind(&self) -> K {
        self.kind
    }

    /// The values of the parameters, in the order of [`About::parameters`].
    pub fn parameters(&self) -> &[f64] {
        &self.values[..self.kind.about().parameters.len()]
    }

    /// Describes the rule by its name and the values of its parameters, for people.
    pub fn describe(&self) -> String {
        let about = self.kind.about();
        let mut line = String::from(about.name);
        for (parameter, value) in about.parameters.iter().zip(self.parameters()) {
            line.push_str(&format!(", {} {value}", parameter.key));
        }
        line
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is out of its range, with its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        for (parameter, value) in self.kind.about().parameters.iter().zip(self.parameters()) {
            parameter.check(value)?;
        }
        Ok(())
    }
}

impl<K: Kind> Parameters for Config<K> {
    fn slots(&mut self) -> Slots<'_> {
        let values = self.values.iter_mut();
        self.kind.about().parameters.iter().zip(values).map(|(parameter, value)| Slot::new(parameter, value)).collect()
    }
}
