//! The commands that need Linux, as other systems have them. Each of them only reports what it needs
//! and where it can be run.

use crate::REFUSED;
use crate::output::complain;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::process::ExitCode;

/// Arguments of a command that does not exist here. They are accepted and ignored.
#[derive(Args, Debug)]
pub struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<String>,
}

/// Commands that need Linux. `help` does not list them.
#[derive(Subcommand, Debug)]
pub enum Command {
    #[command(hide = true)]
    Emulate(Arguments),
    #[command(hide = true)]
    Send(Arguments),
    #[command(hide = true)]
    Recv(Arguments),
    #[command(hide = true)]
    Tunnel(Arguments),
    #[command(hide = true)]
    Kernel(Arguments),
    #[command(hide = true)]
    Doctor(Arguments),
    #[command(hide = true)]
    Decrypt(Arguments),
}

/// Commands of `meshpace dev` that need Linux.
#[derive(Subcommand, Debug)]
pub enum Dev {
    #[command(hide = true)]
    Bench(Arguments),
    #[command(hide = true)]
    Chaos(Arguments),
    #[command(hide = true)]
    Medium(Arguments),
}

/// Returns the name of a command, and the features of Linux that it needs.
fn needs(command: &Command) -> (&'static str, &'static str) {
    match command {
        Command::Emulate(_) => ("emulate", "network namespaces and TAP devices"),
        Command::Send(_) => ("send", "datagram batches, time stamps and raw IP"),
        Command::Recv(_) => ("recv", "datagram batches, time stamps and raw IP"),
        Command::Tunnel(_) => ("tunnel", "datagram batches and time stamps"),
        Command::Kernel(_) => ("kernel", "eBPF"),
        Command::Doctor(_) => ("doctor", "the kernel that it examines"),
        Command::Decrypt(_) => ("decrypt", "the connection library, which is not built for this system"),
    }
}

/// Parses an address with a port. Names of network devices as zones are supported on Linux only.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:8000 or [::1]:8000".to_owned())
}

/// Reports what a command needs, and where it can be run.
fn refused(command: &str, needs: &str) -> ExitCode {
    complain(&format!(
        "{command} needs Linux ({needs}); on this system, run it in a Linux machine, in WSL, or in a container"
    ));
    ExitCode::from(REFUSED)
}

/// Refuses a command.
pub fn main(command: &Command) -> ExitCode {
    let (name, what) = needs(command);
    refused(name, what)
}

/// Refuses a command of `meshpace dev`.
pub fn dev(command: &Dev) -> ExitCode {
    let (name, what) = match command {
        Dev::Bench(_) => ("dev bench", "the processor time of child processes"),
        Dev::Chaos(_) => ("dev chaos", "the connection library, which is not built for this system"),
        Dev::Medium(_) => ("dev medium", "the radios of mac80211_hwsim"),
    };
    refused(name, what)
}
