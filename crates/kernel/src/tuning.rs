//! Settings of the machine that `load` changes and `unload` restores: the list of congestion
//! controls that users may choose, the devices that would turn spaced segments into bursts, and the
//! least number of segments in a burst.
//!
//! TCP may pass 64 kB at a time to a device (GSO). It does so if round trips are short, whatever
//! the pacing rate is. A limit of one segment at a time (`gso_max_segs`) prevents it. The original
//! values are written to a file before they are changed, so that `unload` can restore them even if
//! the loader was killed.

use crate::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directory for state that is lost at a restart of the machine, as the settings of devices are.
pub const RUN: &str = "/run/meshpace";

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

fn listed(file: &str, name: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|word| word == name))
}

/// True if a congestion control of that name is registered.
pub fn is_registered(name: &str) -> bool {
    listed(AVAILABLE, name)
}

/// True if users without privileges may choose it.
pub fn is_allowed(name: &str) -> bool {
    listed(ALLOWED, name)
}

/// Lets users without privileges choose `name`, which must be registered. The kernel removes the
/// name from the list when the congestion control is unregistered.
///
/// # Errors If the list cannot be changed. Only the initial network namespace can change it.
pub fn allow_users(name: &str) -> Result<(), Error> {
    let change = || -> io::Result<()> {
        let list = fs::read_to_string(ALLOWED)?;
        if !list.split_whitespace().any(|word| word == name) {
            fs::write(ALLOWED, format!("{} {name}\n", list.trim()))?;
        }
        Ok(())
    };
    change().map_err(|error| Error::failed(ALLOWED, error))
}

const LEAST: &str = "/proc/sys/net/ipv4/tcp_min_tso_segs";

/// The least number of segments that TCP passes to a device at once, `net.ipv4.tcp_min_tso_segs`,
/// in one network namespace. The kernel's default is 2, with which pairs of segments would be paced
/// instead of single ones.
///
/// A congestion control can return this number itself. But if the kernel skips the eBPF program, it
/// reads the number from memory that was never written. A 0 creates an empty segment, and the
/// connection hangs. A sysctl always has a value.
#[derive(Debug)]
pub struct LeastSegments {
    file: PathBuf,
    /// Lock that serializes loaders and unloaders.
    _lock: File,
}

impl LeastSegments {
    /// The setting of the calling thread's network namespace. Waits for other processes that hold
    /// the lock.
    ///
    /// # Errors If the namespace cannot be determined, or the lock cannot be taken.
    pub fn here() -> Result<LeastSegments, Error> {
        let number = namespace()?;
        let path = Path::new(RUN).join("segments.lock");
        let open = || {
            fs::create_dir_all(RUN)?;
            let file = File::create(&path)?;
            file.lock()?;
            Ok::<File, io::Error>(file)
        };
        let lock = open().map_err(|error| Error::failed(path.display(), error))?;
        Ok(LeastSegments { file: Path::new(RUN).join(format!("{number}.segments")), _lock: lock })
    }

    /// Sets the number to 1.
    ///
    /// # Errors If it cannot be changed.
    pub fn change(&self) -> Result<(), Error> {
        let change = || -> io::Result<()> {
            let found = fs::read_to_string(LEAST)?;
            if found.trim() != "1" {
                let beside = self.file.with_extension("new");
                fs::write(&beside, found)?;
                fs::rename(&beside, &self.file)?;
                fs::write(LEAST, "1")?;
            }
            Ok(())
        };
        change().map_err(|error| Error::failed(LEAST, error))
    }

    /// Restores the original value, unless somebody has changed it since.
    ///
    /// # Errors If it cannot be changed.
    pub fn restore(&self) -> Result<(), Error> {
        let found = match fs::read_to_string(&self.file) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::failed(self.file.display(), error)),
        };
        let restore = || -> io::Result<()> {
            if fs::read_to_string(LEAST)?.trim() == "1" {
                fs::write(LEAST, found.trim())?;
            }
            fs::remove_file(&self.file)
        };
        restore().map_err(|error| Error::failed(LEAST, error))
    }
}

/// Devices whose settings were changed for one congestion control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Devices {
    file: PathBuf,
}

impl Devices {
    /// The devices that were changed for `name`.
    pub fn of(name: &str) -> Devices {
        Devices { file: Path::new(RUN).join(format!("{name}.devices")) }
    }

    /// Limits `device` to one segment at a time.
    ///
    /// # Errors [`Error::Refused`] if there is no such device, [`Error::Failed`] if it cannot be
    /// changed.
    pub fn change(&self, device: &str) -> Result<(), Error> {
        let found = segments_of(device)?;
        if found == 1 {
            return Ok(());
        }
        let mut noted = fs::read_to_string(&self.file).unwrap_or_default();
        noted.push_str(&format!("{device} {found}\n"));
        let beside = self.file.with_extension("new");
        fs::create_dir_all(RUN)
            .and_then(|()| fs::write(&beside, noted))
            .and_then(|()| fs::rename(&beside, &self.file))
            .map_err(|error| Error::failed(self.file.display(), error))?;
        set_segments(device, 1)
    }

    /// Restores the original values. A device that no longer exists, or that somebody has changed
    /// since, is left alone.
    ///
    /// # Errors If a device cannot be changed. The others are restored all the same.
    pub fn restore(&self) -> Result<(), Error> {
        let noted = match fs::read_to_string(&self.file) {
            Ok(noted) => noted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::failed(self.file.display(), error)),
        };
        let mut result = Ok(());
        for (device, found) in noted.lines().filter_map(|line| line.split_once(' ')) {
            if let (Ok(1), Ok(found)) = (segments_of(device), found.parse()) {
                result = set_segments(device, found).and(result);
            }
        }
        result.and_then(|()| fs::remove_file(&self.file).map_err(|error| Error::failed(self.file.display(), error)))
    }
}

/// Number of the calling thread's network namespace.
fn namespace() -> Result<u64, Error> {
    let path = "/proc/thread-self/ns/net";
    fs::metadata(path).map(|file| file.ino()).map_err(|error| Error::failed(path, error))
}

/// Encodes a device of this network namespace as `struct device` of the eBPF programs. The device
/// need not exist yet.
///
/// # Errors [`Error::Refused`] if no device can have that name.
pub fn device_here(device: &str) -> Result<[u8; 20], Error> {
    // The kernel's names of devices have at most 15 bytes.
    if device.is_empty() || device.len() > 15 {
        return Err(Error::Refused(format!("`{device}` cannot name a device: 1 to 15 bytes")));
    }
    let mut key = [0; 20];
    key[..4].copy_from_slice(&(namespace()? as u32).to_ne_bytes());
    key[4..4 + device.len()].copy_from_slice(device.as_bytes());
    Ok(key)
}

/// Devices of this network namespace that are up, are not the loopback, and take more than one
/// segment at a time.
pub fn bursting() -> Vec<String> {
    let Ok(listing) = ip(&["-d", "-o", "link", "show", "up"]) else { return Vec::new() };
    listing
        .lines()
        .filter(|line| !line.contains("LOOPBACK") && segments_in(line).is_some_and(|segments| segments > 1))
        .filter_map(|line| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned()))
        .collect()
}

fn segments_in(listing: &str) -> Option<u32> {
    let mut words = listing.split_whitespace().skip_while(|word| *word != "gso_max_segs");
    words.nth(1)?.parse().ok()
}

fn segments_of(device: &str) -> Result<u32, Error> {
    let listing = ip(&["-d", "-o", "link", "show", "dev", device])
        .map_err(|error| Error::Refused(format!("device {device}: {error}")))?;
    segments_in(&listing).ok_or_else(|| Error::Failed(format!("ip tells no gso_max_segs of {device}")))
}

fn set_segments(device: &str, segments: u32) -> Result<(), Error> {
    ip(&["link", "set", "dev", device, "gso_max_segs", &segments.to_string()])
        .map(drop)
        .map_err(|error| Error::Failed(format!("device {device}: {error}")))
}

/// Runs the `ip` command of iproute2.
fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run ip: {error}; apt-get install iproute2"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listing_of_a_device_is_read() {
        let line = "2: veth0@if3: <BROADCAST,UP> mtu 1500 numrxqueues 2 gso_max_size 65536 gso_max_segs 65535 tso_max_size 524280";
        assert_eq!(segments_in(line), Some(65535));
        assert_eq!(segments_in("2: veth0: <UP> mtu 1500"), None);
    }

    #[test]
    fn the_kernel_has_reno() {
        if Path::new(AVAILABLE).exists() {
            assert!(is_registered("reno"));
            assert!(!is_registered("ren"));
        }
    }
}
