//! Position of a node.

/// Point on the plane, in metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Distance to the east, in metres.
    pub x: f64,
    /// Distance to the north, in metres.
    pub y: f64,
}

impl Position {
    /// Distance to `other`, in metres.
    pub fn distance(self, other: Position) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}
