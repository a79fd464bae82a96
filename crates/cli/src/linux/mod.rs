//! Commands that need Linux: real networks, the emulator, and the kernel's congestion control. On
//! other systems `elsewhere.rs` replaces this module.

mod bench;
mod chaos;
mod decrypt;
mod doctor;
mod emulate;
#[cfg_attr(not(feature = "kernel"), path = "kernel_missing.rs")]
mod kernel;
mod link;
mod medium;
mod network;
mod recv;
mod send;
mod shell;
mod top;
mod traffic_record;

use clap::Subcommand;
pub use meshpace_live::hosts::socket_address;
use meshpace_tunnel::tunnel;
use std::process::ExitCode;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run real programs over the mesh of a scenario, in real time.
    Emulate(emulate::Arguments),
    /// Send traffic to a host over our transports or the kernel's TCP, and measure it.
    Send(send::Arguments),
    /// Receive traffic from `send`, or from any TCP, and measure it.
    Recv(recv::Arguments),
    /// Carry ordinary TCP connections between two sites.
    Tunnel(tunnel::Arguments),
    /// Load, show and unload the congestion control in eBPF that paces the TCP of every program.
    Kernel(kernel::Arguments),
    /// Report what this machine can and cannot do for real networks, and how to change that.
    Doctor(doctor::Arguments),
    /// Decrypt a capture of TPA with the keys that `--keylog` wrote.
    Decrypt(decrypt::Arguments),
}

/// Those of `meshpace dev`.
#[derive(Subcommand, Debug)]
pub enum Dev {
    /// Measure the speed of the simulator on named workloads, beside ns-2 if it is installed.
    Bench(bench::Arguments),
    /// Test the live stack in virtual time over a hostile wire or radio, one run per seed. The exit
    /// status is 1 if an invariant is broken.
    Chaos(chaos::Arguments),
    /// Run a medium for the radios of mac80211_hwsim, instead of wmediumd: an experiment
    /// (docs/notes/medium.md).
    Medium(medium::Arguments),
}

/// Runs a command.
pub fn main(command: &Command) -> ExitCode {
    match command {
        Command::Emulate(arguments) => emulate::main(arguments),
        Command::Send(arguments) => send::main(arguments),
        Command::Recv(arguments) => recv::main(arguments),
        Command::Tunnel(arguments) => tunnel::main(arguments),
        Command::Kernel(arguments) => kernel::main(arguments),
        Command::Doctor(arguments) => doctor::main(arguments),
        Command::Decrypt(arguments) => decrypt::main(arguments),
    }
}

/// Runs a command of `meshpace dev`.
pub fn dev(command: &Dev) -> ExitCode {
    match command {
        Dev::Bench(arguments) => bench::main(arguments),
        Dev::Chaos(arguments) => chaos::main(arguments),
        Dev::Medium(arguments) => medium::main(arguments),
    }
}
