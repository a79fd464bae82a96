//! Integration tests of this crate in one program, which needs one link step instead of many.

mod declared;
mod ht;
mod initial_ssthresh;
mod joint;
mod keys;
mod limitations;
mod meaning;
mod motion;
mod named;
mod new_pacing_rule;
mod new_parameter;
mod new_window_rule;
mod pieces;
mod programs;
mod radio;
mod refusals;
mod refusals_topology;
mod refused;
mod topologies;
mod worked;
