//! Kernel parameters of network namespaces (`/proc/sys/net`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File of a kernel parameter. `None` if the parameter cannot be one of a network namespace.
pub fn sysctl_file(name: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = name.split('.').collect();
    let is_fine =
        |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let of_network = parts.first() == Some(&"net") && parts.len() > 1;
    (of_network && parts.iter().all(is_fine)).then(|| Path::new("/proc/sys").join(parts.join("/")))
}

/// Sets a kernel parameter of the calling thread's network namespace.
pub(crate) fn set(name: &str, value: &str) -> io::Result<()> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("sysctl {name} = {value}: {error}"));
    let file = sysctl_file(name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a parameter of a network namespace"));
    file.and_then(|file| fs::write(file, value)).map_err(explain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_the_network_are_set() {
        assert_eq!(sysctl_file("net.ipv4.tcp_sack"), Some(PathBuf::from("/proc/sys/net/ipv4/tcp_sack")));
        for wrong in ["kernel.panic", "net", "net.", "net..x", "net.ipv4/../../kernel", "net.ipv4.a b", ""] {
            assert_eq!(sysctl_file(wrong), None, "{wrong}");
        }
    }
}
