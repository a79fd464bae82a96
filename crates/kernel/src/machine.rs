//! Requirements of the eBPF programs on this machine, and the remedy if one is not met.

use std::fs;
use std::path::Path;

/// Result of the check of one requirement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Part of the machine that was examined.
    pub subject: &'static str,
    /// State that was found; an error if it does not meet the requirement.
    pub found: Result<String, String>,
    /// Remedy if the requirement is not met.
    pub remedy: &'static str,
}

/// File in which the kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// File system in which programs and maps outlive the command that loaded them.
pub const BPF_FS: &str = "/sys/fs/bpf";

/// Checks all requirements, the most informative first. Nothing is changed.
pub fn examine() -> Vec<Check> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    vec![
        Check {
            subject: "eBPF kernel",
            found: read("/proc/sys/kernel/osrelease").and_then(|text| release(text.trim())),
            remedy: "install Linux 6.1 or newer",
        },
        Check { subject: "eBPF types", found: types(), remedy: "install a kernel with CONFIG_DEBUG_INFO_BTF=y" },
        Check {
            subject: "eBPF struct_ops",
            found: struct_ops(),
            remedy: "install a kernel with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y",
        },
        Check {
            subject: "eBPF compiler",
            found: jit(read("/proc/sys/net/core/bpf_jit_enable").ok().as_deref()),
            remedy: "sysctl -w net.core.bpf_jit_enable=1",
        },
        Check {
            subject: "eBPF rights",
            found: read("/proc/self/status")
                .and_then(|status| rights(&status, &read("/proc/self/uid_map").unwrap_or_default())),
            remedy: "run as root, outside of containers without CAP_SYS_ADMIN",
        },
        Check {
            subject: "eBPF lockdown",
            found: lockdown(read("/sys/kernel/security/lockdown").ok().as_deref()),
            remedy: "boot with lockdown=integrity instead of confidentiality, or without secure boot",
        },
        Check {
            subject: "eBPF file system",
            found: file_system(),
            remedy: "mount -t bpf bpf /sys/fs/bpf (as root, `meshpace kernel load` does it)",
        },
    ]
}

/// Linux 6.1 is the first version with everything that the programs call.
fn release(text: &str) -> Result<String, String> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 1) { Ok(text.to_owned()) } else { Err(format!("{text}, older than 6.1")) }
}

fn types() -> Result<String, String> {
    match fs::metadata(BTF) {
        Ok(file) => Ok(format!("{} kB", file.len() / 1000)),
        Err(error) => Err(format!("{BTF}: {error}")),
    }
}

/// The kernel wraps each structure that eBPF programs can implement in a type of its own.
fn struct_ops() -> Result<String, String> {
    let bytes = fs::read(BTF).map_err(|error| format!("{BTF}: {error}"))?;
    let wanted = b"bpf_struct_ops_tcp_congestion_ops\0";
    if bytes.windows(wanted.len()).any(|window| window == wanted) {
        Ok("for congestion controls".to_owned())
    } else {
        Err("no congestion controls in eBPF".to_owned())
    }
}

/// If the file does not exist, the kernel always compiles eBPF, or hides the switch from this
/// namespace.
fn jit(switch: Option<&str>) -> Result<String, String> {
    match switch.map(str::trim) {
        Some("0") => Err("off".to_owned()),
        _ => Ok("on".to_owned()),
    }
}

/// Checks the capabilities that loading needs: for programs, congestion controls and iterators.
fn rights(status: &str, uid_map: &str) -> Result<String, String> {
    const SYS_ADMIN: u32 = 21;
    const WANTED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| held >> bit & 1 == 1;
    let missing: Vec<&str> = WANTED
        .iter()
        // CAP_SYS_ADMIN contains the two newer capabilities.
        .filter(|(bit, _)| !(has(*bit) || *bit > SYS_ADMIN && has(SYS_ADMIN)))
        .map(|(_, name)| *name)
        .collect();
    if !missing.is_empty() {
        return Err(format!("no {}", missing.join(", no ")));
    }
    // The initial user namespace maps every user.
    let whole = uid_map.split_whitespace().eq(["0", "0", "4294967295"]);
    if whole || uid_map.is_empty() {
        Ok("held".to_owned())
    } else {
        Err("held, but only in a user namespace, where they have no effect".to_owned())
    }
}

fn lockdown(state: Option<&str>) -> Result<String, String> {
    let chosen = state.and_then(|text| text.split_once('[')?.1.split_once(']')).map(|(chosen, _)| chosen);
    match chosen {
        Some("confidentiality") => Err("confidentiality: eBPF programs may not read the kernel".to_owned()),
        Some(other) => Ok(other.to_owned()),
        None => Ok("none".to_owned()),
    }
}

fn file_system() -> Result<String, String> {
    if is_bpf_fs(Path::new(BPF_FS)) { Ok(format!("at {BPF_FS}")) } else { Err(format!("none at {BPF_FS}")) }
}

/// True if a BPF file system is mounted at `directory`.
pub fn is_bpf_fs(directory: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next() == directory.to_str() && words.next() == Some("bpf")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for text in ["6.1.0-13-amd64", "6.18.44", "7.0-rc1"] {
            assert_eq!(release(text), Ok(text.to_owned()));
        }
        for text in ["5.15.0", "6.0.19", "4.19", "strange", ""] {
            assert!(release(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rights_are_those_of_the_first_user_namespace() {
        let whole = "         0          0 4294967295\n";
        let status = |held: u64| format!("Name:\tx\nCapEff:\t{held:016x}\n");
        assert!(rights(&status(0x1ff_ffff_ffff), whole).is_ok());
        assert!(rights(&status(1 << 12 | 1 << 21), whole).is_ok(), "CAP_SYS_ADMIN contains the others");
        assert!(rights(&status(1 << 12 | 1 << 38 | 1 << 39), whole).is_ok());
        assert_eq!(rights(&status(1 << 21), whole), Err("no CAP_NET_ADMIN".to_owned()));
        assert_eq!(rights(&status(1 << 12), whole), Err("no CAP_PERFMON, no CAP_BPF".to_owned()));
        assert!(rights(&status(0x1ff_ffff_ffff), "0 1000 1\n").is_err());
    }

    #[test]
    fn lockdown_is_the_word_in_brackets() {
        assert_eq!(lockdown(Some("[none] integrity confidentiality")), Ok("none".to_owned()));
        assert_eq!(lockdown(Some("none [integrity] confidentiality")), Ok("integrity".to_owned()));
        assert!(lockdown(Some("none integrity [confidentiality]")).is_err());
        assert_eq!(lockdown(None), Ok("none".to_owned()));
    }

    #[test]
    fn a_compiler_that_is_off_is_told() {
        assert!(jit(Some("0\n")).is_err());
        assert!(jit(Some("1\n")).is_ok() && jit(None).is_ok());
    }

    #[test]
    fn proc_is_no_bpf_file_system() {
        assert!(!is_bpf_fs(Path::new("/proc")));
        assert!(!is_bpf_fs(Path::new("/nowhere")));
    }
}
