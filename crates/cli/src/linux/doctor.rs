//! `meshpace doctor`: reports which features for real networks and emulations this machine
//! supports, which it lacks, and which command adds them.

use crate::FAILED;
use crate::output::{complain, finish};
use clap::Args;
use meshpace_kernel::machine;
use meshpace_lab::record::table::listing;
use meshpace_live::doctor::{Finding, examine};
use meshpace_tunnel::doctor;
use std::process::ExitCode;

/// The arguments of `meshpace doctor`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Remove rules that killed processes left in the packet filter.
    #[arg(long)]
    clean: bool,
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    if arguments.clean {
        match doctor::clean() {
            Ok(done) => complain(&done),
            Err(error) => {
                complain(&error.to_string());
                return ExitCode::from(FAILED);
            }
        }
    }
    let mut findings = examine();
    findings.extend(machine::examine().into_iter().map(|check| Finding {
        subject: check.subject,
        ok: check.found.is_ok(),
        needed_for: "meshpace kernel load",
        remedy: check.found.is_err().then(|| check.remedy.to_owned()),
        found: check.found.unwrap_or_else(|what| what),
    }));
    let built = cfg!(feature = "kernel");
    findings.push(Finding {
        subject: "eBPF in this program",
        ok: built,
        found: if built { "built in" } else { "not built in" }.to_owned(),
        needed_for: "meshpace kernel load",
        remedy: (!built).then(|| "cargo build --release --bin meshpace --features kernel".to_owned()),
    });
    findings.extend(meshpace_emulator::doctor::examine());
    finish(&if arguments.json { findings.iter().map(doctor::object).collect() } else { table(&findings) })
}

fn table(findings: &[Finding]) -> String {
    let rows = findings.iter().map(|finding| {
        let mark = if finding.ok { "yes" } else { "no" };
        [finding.subject, mark, &finding.found, finding.needed_for, finding.remedy.as_deref().unwrap_or("")]
            .map(str::to_owned)
    });
    listing(["subject", "ok", "found", "needed for", "how to change it"], rows)
}
