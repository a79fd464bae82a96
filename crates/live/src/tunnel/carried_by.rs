//! What a tunnel's streams are carried by.

/// What carries a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CarriedBy {
    /// A connection of TPA of its own.
    Tpa,
    /// A session, whose bulk goes by quiet trains.
    Session,
    /// A session, whose bulk goes by BBR.
    Bbr,
}
