//! The integration tests of this crate, in one program: one link instead of many.

mod cells;
mod contending;
mod flooding;
mod link;
mod loops;
mod mesh;
mod moving;
mod olsr;
mod pieces;
mod probes;
mod tpa_window;
