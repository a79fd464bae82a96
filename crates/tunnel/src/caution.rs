//! Warnings about parts of a command line that are accessible to others.

use meshpace_command::output::complain;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Warns if a file with a secret can be read by users other than its owner.
pub fn of_secret(file: &Path) {
    // A missing file is reported by the code that reads it.
    let Ok(about) = std::fs::metadata(file) else { return };
    let mode = about.permissions().mode() & 0o777;
    if about.is_file() && mode & 0o077 != 0 {
        let file = file.display();
        complain(&format!(
            "{file}: users other than its owner can read this secret (mode {mode:03o}); run chmod 600 {file}"
        ));
    }
}

/// Warns if other machines can reach an entrance of a tunnel, which does not authenticate them.
pub fn of_entrance(local: SocketAddr) {
    if !local.ip().is_loopback() {
        complain(&format!("{local}: anybody who reaches this address can use the tunnel without authentication"));
    }
}
