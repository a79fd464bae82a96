//! Checks whether this machine supports transports on real networks: what works, what does not, and
//! the command that changes it.

use crate::clock::{Clock, sharpen_timers};
use crate::poll::Poller;
use crate::tcp::filter;
use crate::testbed::Namespace;
use crate::tun::Tun;
use meshpace_core::Duration;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use std::fs;
use std::process::{Command, Stdio};

/// Result of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Subject of the check.
    pub subject: &'static str,
    /// True if the check has passed.
    pub ok: bool,
    /// Description of what was found.
    pub found: String,
    /// Features that require the check to pass.
    pub needed_for: &'static str,
    /// Command or advice to make the check pass. `None` if it has passed or cannot be changed.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(subject: &'static str, needed_for: &'static str, found: Result<String, String>, remedy: &str) -> Finding {
        let ok = found.is_ok();
        let remedy = (!ok && !remedy.is_empty()).then(|| remedy.to_owned());
        Finding { subject, ok, found: found.unwrap_or_else(|what| what), needed_for, remedy }
    }
}

/// Makes all checks. Nothing is changed permanently: a device and a namespace are created and
/// removed.
pub fn examine() -> Vec<Finding> {
    vec![
        kernel(),
        rights(),
        command("ip", "iproute2"),
        tun(),
        raw_socket(),
        nftables(),
        leftovers(),
        forwarding(),
        timers(),
        namespaces(),
    ]
}

fn kernel() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    let found = match &release {
        // Linux has epoll_pwait2 since version 5.11.
        Ok(release) if version(release) >= Some((5, 11)) => Ok(release.clone()),
        Ok(release) => Err(format!("{release}, older than 5.11")),
        Err(error) => Err(error.to_string()),
    };
    Finding::new("kernel", "everything: timers in nanoseconds", found, "install Linux 5.11 or newer")
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Effective capabilities of this process (proc(5)).
fn capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn rights() -> Finding {
    const NAMES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];
    let held = capabilities().unwrap_or(0);
    let missing: Vec<&str> = NAMES.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|(_, name)| *name).collect();
    let found = if missing.is_empty() {
        Ok("CAP_NET_ADMIN, CAP_NET_RAW".to_owned())
    } else {
        Err(format!("no {}", missing.join(", no ")))
    };
    let own = std::env::current_exe().map_or_else(|_| "meshpace".to_owned(), |path| path.display().to_string());
    let remedy = format!("run as root, or: setcap cap_net_admin,cap_net_raw+ep {own}");
    Finding::new("rights", "TCP on raw IP", found, &remedy)
}

fn command(name: &'static str, package: &str) -> Finding {
    let found = Command::new(name).arg("-V").stdin(Stdio::null()).output();
    let found = match found {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    Finding::new(name, "emulate, the pacing of the kernel", found, &format!("apt-get install {package}"))
}

fn tun() -> Finding {
    let name = format!("mpdoc{}", std::process::id());
    let (found, remedy) = match Tun::create(&name) {
        Ok(_) => (Ok("a device can be created".to_owned()), ""),
        Err(error) => {
            let exists = fs::metadata("/dev/net/tun").is_ok();
            let remedy = if !exists {
                "modprobe tun; mkdir -p /dev/net; mknod /dev/net/tun c 10 200"
            } else if error.to_string().starts_with("/dev/net/tun") {
                "chmod 0666 /dev/net/tun"
            } else {
                "run as root"
            };
            (Err(error.to_string()), remedy)
        }
    };
    Finding::new("TUN", "TCP on raw IP, --interface tun", found, remedy)
}

fn raw_socket() -> Finding {
    let opened =
        rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::TCP));
    let found = opened.map(|_| "can be opened".to_owned()).map_err(|error| std::io::Error::from(error).to_string());
    Finding::new("raw sockets", "TCP on raw IP, --interface raw", found, "run as root")
}

fn nftables() -> Finding {
    let found = filter::tables().map(|tables| match tables.len() {
        0 => "works".to_owned(),
        count => format!("works; {count} table(s) of meshpace"),
    });
    let missing = matches!(&found, Err(error) if error.kind() == std::io::ErrorKind::NotFound);
    let remedy = if missing { "apt-get install nftables" } else { "run as root" };
    Finding::new("nftables", "TCP on raw IP, --interface raw", found.map_err(|error| error.to_string()), remedy)
}

fn leftovers() -> Finding {
    let found = match filter::leftovers() {
        Ok(tables) if tables.is_empty() => Ok("nothing".to_owned()),
        Ok(tables) => Err(format!("tables of dead processes: {}", tables.join(", "))),
        // Without nftables there are no tables.
        Err(_) => Ok("nothing that can be seen".to_owned()),
    };
    Finding::new("left behind", "a clean machine", found, "meshpace doctor --clean")
}

fn forwarding() -> Finding {
    let value = fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    let found = match value.as_deref().map(str::trim) {
        Ok("1") => Ok("on".to_owned()),
        Ok(_) => Err("off".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    Finding::new("IP forwarding", "other machines, with --interface tun", found, "sysctl -w net.ipv4.ip_forward=1")
}

/// Waits a hundred times for a planned time and measures how late the wake-ups are.
fn timers() -> Finding {
    const MOST: Duration = Duration::from_millis(1);
    let measure = || {
        sharpen_timers();
        let poller = Poller::new()?;
        let mut ready = Vec::new();
        let mut next = Clock.now();
        let mut late = Vec::new();
        for _ in 0..100 {
            next += Duration::from_millis(1);
            poller.wait(next, &mut ready)?;
            late.push(Clock.now().since(next).0 / 1000);
        }
        late.sort_unstable();
        Ok::<(u64, u64), std::io::Error>((late[50], late[98]))
    };
    let found = match measure() {
        Ok((median, most)) => {
            let text = format!("median {median} us late, 99 of 100 within {most} us");
            if median <= MOST.0 / 1000 { Ok(text) } else { Err(text) }
        }
        Err(error) => Err(error.to_string()),
    };
    Finding::new("timers", "pacing", found, "leave a processor idle, or: chrt -f 10 meshpace ...")
}

fn namespaces() -> Finding {
    let found = Namespace::new().map(|_| "can be created".to_owned()).map_err(|error| error.to_string());
    Finding::new("network namespaces", "the tests of TCP on raw IP", found, "run as root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions() {
        assert_eq!(version("6.18.44-generic"), Some((6, 18)));
        assert_eq!(version("5.4.0-26"), Some((5, 4)));
        assert_eq!(version("strange"), None);
        assert!(version("5.9.1") < Some((5, 11)));
    }

    #[test]
    fn what_is_not_well_says_what_to_do() {
        for finding in examine() {
            assert!(!finding.found.is_empty() && !finding.needed_for.is_empty(), "{finding:?}");
            assert_eq!(finding.ok, finding.remedy.is_none(), "{finding:?}");
        }
    }
}
