//! `meshpace-router`: the tunnels and the doctor of `meshpace` alone, for routers with little flash. The profile `router` builds it small.

use clap::{Args, Parser, Subcommand};
use meshpace_command::FAILED;
use meshpace_command::output::{be_quiet, complain, finish};
use meshpace_live::doctor::{Finding, examine};
use meshpace_tunnel::{doctor, tunnel};
use std::process::ExitCode;

/// Carries ordinary TCP connections and UDP datagrams between two sites over a wireless mesh: the tunnels of meshpace alone.
#[derive(Parser, Debug)]
#[command(name = "meshpace-router", version, about, propagate_version = true, after_help = STATUSES)]
struct Cli {
    /// Print only errors to standard error (no progress, no warnings).
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

/// Exit statuses, for scripts.
const STATUSES: &str =
    "Exit status: 0: success; 1: failed; 2: the command line or the file has an error; 130: interrupted by Ctrl-C.";

#[derive(Subcommand, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per process")]
enum Command {
    /// Carry ordinary TCP connections between two sites.
    Tunnel(tunnel::Arguments),
    /// Report what this machine can and cannot do for tunnels, and how to change that.
    Doctor(Doctor),
}

#[derive(Args, Debug)]
struct Doctor {
    /// Remove rules that killed processes left in the packet filter.
    #[arg(long)]
    clean: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    // A wrong command line ends in here, with status 2.
    let cli = Cli::parse();
    if cli.quiet {
        be_quiet();
    }
    match cli.command {
        Command::Tunnel(arguments) => tunnel::main(&arguments),
        Command::Doctor(arguments) => examined(&arguments),
    }
}

fn examined(arguments: &Doctor) -> ExitCode {
    if arguments.clean {
        match doctor::clean() {
            Ok(done) => complain(&done),
            Err(error) => {
                complain(&error.to_string());
                return ExitCode::from(FAILED);
            }
        }
    }
    finish(&examine().iter().map(if arguments.json { doctor::object } else { line }).collect::<String>())
}

/// A finding for people: what, how it stands, and below it what changes that.
fn line(finding: &Finding) -> String {
    let Finding { subject, ok, found, needed_for, remedy } = finding;
    let mark = if *ok { "yes" } else { "no" };
    let remedy = remedy.as_ref().map(|remedy| format!("    {remedy}\n")).unwrap_or_default();
    format!("{mark:<4}{subject}: {found} ({needed_for})\n{remedy}")
}
