//! The description of a piece of a transport for users: its name, what it is, its source, and for a rule of one file the parameters that a
//! scenario may set.

use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::{self, Parameter, ParameterError, Parameters, Slot, Slots};

/// The most parameters a rule can have.
pub const MOST_PARAMETERS: usize = 4;

/// Name and parameters of a rule.
#[derive(Clone, Debug)]
pub struct About {
    /// The name of the rule and of the transport that uses it.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Its source: paper and section.
    pub source: &'static str,
    /// At most [`MOST_PARAMETERS`], all of them numbers.
    pub parameters: &'static [Parameter],
}

/// A piece that has a name of its own: `names` makes a transport or a modifier of it.
#[derive(Clone, Copy, Debug)]
pub struct Named<T> {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Its source: paper or RFC, and section.
    pub source: &'static str,
    /// Its parameters.
    pub config: fn() -> T,
}

/// One of a list of rules.
pub trait Kind: Copy {
    /// Its name and its parameters.
    fn about(self) -> &'static About;
}

/// The enum of all rules of one file, each of which implements `$Trait` with its `ABOUT`.
macro_rules! kinds {
    ($Trait:ident: $($module:ident::$Rule:ident,)*) => {
        /// Which rule of one file.
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
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$Rule,)*];

            /// Its name and its parameters.
            pub const fn about(self) -> &'static $crate::about::About {
                match self {
                    $(Kind::$Rule => const { &<$module::$Rule as $Trait>::ABOUT },)*
                }
            }
        }
    };
}
pub(crate) use kinds;

/// A rule with the values of its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Config<K> {
    kind: K,
    values: [f64; MOST_PARAMETERS],
}

impl<K: Kind> Config<K> {
    /// A rule with its defaults.
    pub fn new(kind: K) -> Config<K> {
        let mut values = [0.0; MOST_PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(kind.about().parameters) {
            *value = (parameter.default)().and_then(|default| parameter::Kind::of(&default)).unwrap_or_default();
        }
        Config { kind, values }
    }

    /// Which rule.
    pub fn kind(&self) -> K {
        self.kind
    }

    /// The values in the order of [`About::parameters`].
    pub fn parameters(&self) -> &[f64] {
        &self.values[..self.kind.about().parameters.len()]
    }

    /// Its name and the values of its parameters, for people.
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
    /// Names the first parameter that is not, its value and its range.
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
