//! The two connections that carry a session.

/// A connection that carries frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// For what is small.
    Express = 0,
    /// For all else.
    Bulk = 1,
}

impl Carrier {
    /// Both, the one that is looked at first first.
    pub(crate) const ALL: [Carrier; 2] = [Carrier::Express, Carrier::Bulk];
}
