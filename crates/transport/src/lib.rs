//! Transports without a world.
#![no_std]
extern crate alloc;

/// Which transport a flow uses, with all its parameters (interface first; the protocols follow).
#[derive(Clone, PartialEq, Debug)]
pub struct Config;
