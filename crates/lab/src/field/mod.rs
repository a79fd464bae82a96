//! Measurements of real meshes: dumps of links and routes, published measurements, and predictions
//! for a path from measurements of its single hops.

pub mod dumps;
pub mod errors;
pub mod kit;
pub mod path;
pub mod predict;
pub mod results;
pub mod state;
pub mod ways;
