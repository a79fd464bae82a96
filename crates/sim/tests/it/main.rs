//! Integration tests of this crate in one program, which needs one link step instead of many.

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
