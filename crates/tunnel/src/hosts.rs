//! Hosts that a command line names.

use meshpace_live::hosts::Host;
use std::fmt::Display;
use std::io;

/// Looks up the addresses of a host, which is given by its name or its address.
///
/// # Errors
///
/// The host has no address, or `host` contains a port.
pub fn resolve(host: &str, port: u16) -> io::Result<Host> {
    let explain = |error: &dyn Display| io::Error::new(io::ErrorKind::InvalidInput, format!("{host}: {error}"));
    // Other programs take HOST:PORT. An IPv6 address contains more than one colon.
    if let Some((name, number)) = host.split_once(':')
        && !number.contains(':')
    {
        return Err(explain(&format_args!(
            "expected only the host, {name}; give the port {number} separately (--port, port =)"
        )));
    }
    let found = Host::new(host, port);
    found.addresses().map_err(|error| explain(&error))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_its_port_is_told_what_to_write() {
        for given in ["127.0.0.1:5000", "mesh.example:5000"] {
            let why = resolve(given, 1).unwrap_err().to_string();
            assert!(
                why.starts_with(given) && why.contains("--port") && why.contains("give the port 5000 separately"),
                "{why}"
            );
        }
        for (host, address) in [("::1", "[::1]:7"), ("127.0.0.1", "127.0.0.1:7"), ("::ffff:127.0.0.1", "127.0.0.1:7")] {
            assert_eq!(resolve(host, 7).unwrap().addresses().unwrap(), [address.parse().unwrap()]);
        }
        assert!(resolve("fe80::1%nodevice", 7).unwrap_err().to_string().contains("nodevice"));
    }
}
