//! Warnings of what a command line leaves open to others.

use meshpace_command::output::complain;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Warns of a file with a secret that others than its owner may read.
pub fn of_secret(file: &Path) {
    // Whoever reads it next says if it is not there.
    let Ok(about) = std::fs::metadata(file) else { return };
    let mode = about.permissions().mode() & 0o777;
    if about.is_file() && mode & 0o077 != 0 {
        let file = file.display();
        complain(&format!("{file}: others than its owner may read this secret (mode {mode:03o}): chmod 600 {file}"));
    }
}

/// Warns of an entrance to a tunnel that other machines reach: it asks nobody who they are.
pub fn of_entrance(local: SocketAddr) {
    if !local.ip().is_loopback() {
        complain(&format!("{local}: whoever reaches this address can go through, and is not asked who it is"));
    }
}
