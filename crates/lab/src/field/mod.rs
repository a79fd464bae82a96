//! Measurements of real meshes: what programs write that measure them, and what each hop alone says of a path.

pub mod path;
pub mod results;
