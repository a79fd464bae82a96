//! `meshpace kernel` in a build without eBPF. It says how to build a program with eBPF.

use crate::REFUSED;
use crate::output::complain;
use clap::Args;
use std::process::ExitCode;

/// Text of `meshpace kernel --help` and of the error message.
const HOW: &str = "this program was built without eBPF. With clang, libelf and zlib (apt-get install clang libelf-dev \
                   zlib1g-dev pkg-config), this builds it:\n  cargo build --release --bin meshpace --features kernel";

/// The arguments of `meshpace kernel`, none of which is read.
#[derive(Args, Debug)]
#[command(after_help = HOW, override_usage = "meshpace kernel <load|status|unload> [OPTIONS]")]
pub struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<String>,
}

/// Runs the command.
pub fn main(_: &Arguments) -> ExitCode {
    complain(HOW);
    ExitCode::from(REFUSED)
}
