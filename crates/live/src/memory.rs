//! Memory that this process may use.

use std::fs;
use std::path::Path;

/// Bytes that this process may use: the least of the machine's memory and of the limits of its control groups; `None` if nobody says.
pub(crate) fn limit() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(files_of).flat_map(|(root, group, file)| {
        // A group is bound by the limits of those around it, too.
        let around = Path::new(group).ancestors();
        around.filter_map(move |group| {
            let path = Path::new(root).join(group.strip_prefix("/").unwrap_or(group)).join(file);
            // `max` stands for no limit.
            fs::read_to_string(path).ok()?.trim().parse().ok()
        })
    });
    of_groups.chain(machine).min()
}

/// Where the limits of the group stand that a line of `/proc/self/cgroup` names: root, group and file.
fn files_of(line: &str) -> Option<(&'static str, &str, &'static str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    match controllers {
        "" => Some(("/sys/fs/cgroup", group, "memory.max")),
        _ if controllers.split(',').any(|name| name == "memory") => {
            Some(("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
        }
        _ => None,
    }
}

/// The memory of the machine, as `/proc/meminfo` tells it.
fn total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found_by_what_the_kernel_says() {
        assert_eq!(files_of("0::/a/b"), Some(("/sys/fs/cgroup", "/a/b", "memory.max")));
        assert_eq!(files_of("7:memory:/a"), Some(("/sys/fs/cgroup/memory", "/a", "memory.limit_in_bytes")));
        assert_eq!((files_of("3:cpu,cpuacct:/a"), files_of("")), (None, None));
        assert_eq!(total("MemFree: 7 kB\nMemTotal:       24 kB\n"), Some(24 * 1024));
        assert!(limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
