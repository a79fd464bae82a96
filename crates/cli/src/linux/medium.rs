//! `meshpace dev medium`: connects the radios of mac80211_hwsim through the simulator's engine, in
//! place of wmediumd.

use crate::output::{complain, note, tell};
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_command::quantities::seconds;
use meshpace_core::Duration;
use meshpace_emulator::hwsim::config::Config;
use meshpace_emulator::hwsim::run::run;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `meshpace dev medium`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Configuration file of wmediumd: the radios, and how well they hear each other.
    config: PathBuf,
    /// Seed of backoffs and bit errors.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after this time, and print what crossed the medium. Without it, the medium runs until
    /// the process ends.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let path = arguments.config.display();
    let config = match std::fs::read_to_string(&arguments.config) {
        Ok(text) => Config::parse(&text),
        Err(error) => Err(error.to_string()),
    };
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            complain(&format!("{path}: {error}"));
            return ExitCode::from(REFUSED);
        }
    };
    let ready = || note(&format!("a medium of {} radios", config.radios.len()));
    match run(&config, arguments.seed, arguments.duration.map(Duration::from_secs_f64), ready) {
        Ok(report) => {
            let totals = report.totals;
            tell(&format!(
                "frames {} sent {} failed {} attempts {} wanted {} received {} strangers {} refused {} overruns {}\n",
                totals.frames,
                totals.sent,
                totals.failed,
                totals.attempts,
                totals.most_wanted,
                totals.received,
                totals.strangers,
                report.refused,
                report.overruns
            ));
            let late = report.lateness;
            tell(&format!(
                "late: p50 {:.1} us, p99 {:.1} us, max {:.1} us\n",
                late.p50_s * 1e6,
                late.p99_s * 1e6,
                late.max_s * 1e6
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&format!("the medium: {error}"));
            ExitCode::from(FAILED)
        }
    }
}
