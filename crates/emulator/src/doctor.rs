//! Checks which requirements of emulations this machine meets, with the remedy for the others.

use crate::{run_dir, sys};
use meshpace_live::doctor::Finding;
use std::thread;

/// Command that has these requirements.
const EMULATE: &str = "meshpace emulate";
/// Least number of processors, which the mesh and the programs share.
const PROCESSORS: usize = 2;

/// Checks all requirements. Nothing is changed.
pub fn examine() -> Vec<Finding> {
    vec![priority(), processors(), leftovers()]
}

fn finding(subject: &'static str, found: Result<String, String>, remedy: &str) -> Finding {
    let remedy = found.is_err().then(|| remedy.to_owned());
    Finding { subject, ok: found.is_ok(), found: found.unwrap_or_else(|what| what), needed_for: EMULATE, remedy }
}

/// Runs the check on a thread of its own, because only that thread keeps the priority.
fn priority() -> Finding {
    let asked = thread::spawn(|| sys::take_priority().map_err(|error| error.to_string())).join();
    let found = match asked {
        Ok(result) => result.map(|()| "available".to_owned()),
        Err(_) => Err("not permitted".to_owned()),
    };
    finding(
        "real-time priority",
        found,
        "run as root or with CAP_SYS_NICE; without it, the mesh is late while programs are busy",
    )
}

fn processors() -> Finding {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{count}");
    let found = if count >= PROCESSORS { Ok(found) } else { Err(found) };
    finding("processors", found, "use two or more, because the mesh needs one of them for itself")
}

fn leftovers() -> Finding {
    let found = match run_dir::dead(&run_dir::base()) {
        Ok(runs) if runs.is_empty() => Ok("nothing".to_owned()),
        Ok(runs) => Err(format!("killed runs: {}", runs.join(", "))),
        Err(error) => Err(error.to_string()),
    };
    finding("emulations left behind", found, "meshpace emulate --clean")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_says_what_to_do() {
        for finding in examine() {
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert_eq!(finding.ok, finding.remedy.is_none(), "{finding:?}");
        }
    }
}
