//! Measurements of real meshes: what their programs tell of links and routes, what others measured, and what each hop alone says of a path.

pub mod dumps;
pub mod errors;
pub mod kit;
pub mod path;
pub mod predict;
pub mod results;
pub mod state;
pub mod ways;
