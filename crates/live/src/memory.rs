//! Limits of this process on the machine: memory and threads.

use std::fs;
use std::path::Path;

/// Number of bytes that this process may use: the smallest of the machine's memory and the limits
/// of its control groups. `None` if none of them is known.
pub(crate) fn limit() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    of_groups("memory", ["memory.max", "memory.limit_in_bytes"]).into_iter().chain(machine).min()
}

/// Number of threads that this process and others in its control groups may have together. `None`
/// if there is no known limit.
pub(crate) fn threads() -> Option<usize> {
    of_groups("pids", ["pids.max"; 2])
}

/// Smallest limit that a controller sets for the control groups of this process. `files` are the
/// names of the file with the limit in version 2 and in version 1 of control groups.
fn of_groups(controller: &str, files: [&str; 2]) -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| place_of(line, controller)).flat_map(|(root, group, version)| {
        // The limits of the enclosing groups apply as well.
        let around = Path::new(group).ancestors();
        around.filter_map(move |group| {
            let path = Path::new(&root).join(group.strip_prefix("/").unwrap_or(group)).join(files[version]);
            // The word `max` stands for no limit.
            fs::read_to_string(path).ok()?.trim().parse().ok()
        })
    });
    limits.min()
}

/// Location of the limits of the group in a line of `/proc/self/cgroup`: root, group, and 0 for
/// version 2 of control groups or 1 for version 1.
fn place_of<'a>(line: &'a str, controller: &str) -> Option<(String, &'a str, usize)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    match controllers {
        "" => Some(("/sys/fs/cgroup".to_owned(), group, 0)),
        _ if controllers.split(',').any(|name| name == controller) => {
            Some((format!("/sys/fs/cgroup/{controller}"), group, 1))
        }
        _ => None,
    }
}

/// Total memory of the machine in bytes, from the text of `/proc/meminfo`.
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
        assert_eq!(place_of("0::/a/b", "memory"), Some(("/sys/fs/cgroup".to_owned(), "/a/b", 0)));
        assert_eq!(place_of("7:memory:/a", "memory"), Some(("/sys/fs/cgroup/memory".to_owned(), "/a", 1)));
        assert_eq!((place_of("3:cpu,cpuacct:/a", "memory"), place_of("", "pids")), (None, None));
        assert_eq!(total("MemFree: 7 kB\nMemTotal:       24 kB\n"), Some(24 * 1024));
        assert!(limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
