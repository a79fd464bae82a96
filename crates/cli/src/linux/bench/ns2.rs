//! The same workload in ns-2: `validation/ns2/mesh.tcl`, run by Debian's `ns`.

use super::mesh_file;
use meshpace_scenario::Point;
use std::io;
use std::process::Command;
use tempfile::TempDir;

/// The script that runs the workload, followed by the files that it reads.
const SCRIPTS: [(&str, &str); 3] = [
    ("mesh.tcl", include_str!("../../../../../validation/ns2/mesh.tcl")),
    ("generators.tcl", include_str!("../../../../../validation/ns2/generators.tcl")),
    ("radio.tcl", include_str!("../../../../../validation/ns2/radio.tcl")),
];

/// True if `ns` is in a directory of PATH.
pub fn installed() -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join("ns").is_file()))
}

/// Returns the command for flows with a window of `window` segments, and the directory of the files
/// that it needs while it runs.
pub fn command(point: &Point, window: u32) -> io::Result<(Command, TempDir)> {
    let directory = tempfile::tempdir()?;
    let mesh = directory.path().join("mesh.txt");
    mesh_file::write(point, &mesh)?;
    for (name, text) in SCRIPTS {
        std::fs::write(directory.path().join(name), text)?;
    }
    let mut command = Command::new("ns");
    command
        .arg(directory.path().join(SCRIPTS[0].0))
        .arg(format!("mesh={}", mesh.display()))
        .arg(format!("window={window}"));
    command.arg(format!("warmup={}", point.config.warmup.as_secs_f64()));
    command.arg(format!("duration={}", point.config.duration.as_secs_f64()));
    Ok((command, directory))
}
