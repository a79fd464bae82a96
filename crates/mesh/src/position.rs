//! Where a node is.

/// A place on the plane, in metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Metres to the east.
    pub x: f64,
    /// Metres to the north.
    pub y: f64,
}

impl Position {
    /// The distance to `other` in metres.
    pub fn distance(self, other: Position) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}
