//! The packet filter that keeps the host's TCP quiet about ports that are not its own.
//!
//! The host answers segments for a port it does not know with a reset, which would end our connection. A table of nftables
//! of this process's own drops those resets, and nothing else, of the ports in use. It goes when it is dropped; after a
//! process that was killed, [`clean`] removes it: the table's name tells whose it is, by number and start time, so that
//! a number given to another process keeps nothing alive. Our own resets carry a mark and pass.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// What the names of all our tables begin with.
pub const PREFIX: &str = "meshpace_";

/// The mark of the packets we send.
pub const MARK: u32 = 0x6d70;

/// A table that is installed.
#[derive(Debug)]
pub struct Filter {
    table: String,
}

impl Filter {
    /// Installs an empty one for `address`, in the network namespace of the calling thread; needs `CAP_NET_ADMIN` and the
    /// command `nft`. What dead processes have left is removed first.
    pub fn install(address: Ipv4Addr) -> io::Result<Filter> {
        clean()?;
        let process = std::process::id();
        let start = start_time(process).ok_or_else(|| io::Error::other("/proc does not tell about this process"))?;
        // One process may hold several.
        let taken = tables()?;
        let name = |number| format!("{PREFIX}{process}_{start}_{number}");
        let table = (0..).map(name).find(|name| !taken.contains(name)).unwrap_or_default();
        script(&format!(
            "create table ip {table}\n\
             add set ip {table} ports {{ type inet_service; }}\n\
             add chain ip {table} output {{ type filter hook output priority 0; policy accept; }}\n\
             add rule ip {table} output ip saddr {address} tcp sport @ports tcp flags & rst == rst meta mark != {MARK} drop\n"
        ))?;
        Ok(Filter { table })
    }

    /// Keeps the host quiet about `port`.
    pub fn add(&self, port: u16) -> io::Result<()> {
        script(&format!("add element ip {} ports {{ {port} }}\n", self.table))
    }

    /// No longer.
    pub fn remove(&self, port: u16) -> io::Result<()> {
        script(&format!("delete element ip {} ports {{ {port} }}\n", self.table))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // If it cannot be removed now, the next start does it.
        let _ = remove(&self.table);
    }
}

/// The tables of processes that are gone.
pub fn leftovers() -> io::Result<Vec<String>> {
    Ok(tables()?.into_iter().filter(|table| !has_owner(table)).collect())
}

/// Removes them; which.
pub fn clean() -> io::Result<Vec<String>> {
    let left = leftovers()?;
    for table in &left {
        remove(table)?;
    }
    Ok(left)
}

/// All tables of ours in the network namespace of the calling thread.
pub fn tables() -> io::Result<Vec<String>> {
    let listed = run(Command::new("nft").args(["list", "tables", "ip"]).stdin(Stdio::null()), "")?;
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("table ip "));
    Ok(names.filter(|name| name.starts_with(PREFIX)).map(str::to_owned).collect())
}

fn remove(table: &str) -> io::Result<()> {
    script(&format!("delete table ip {table}\n"))
}

/// Whether the process that a table is named after lives.
fn has_owner(table: &str) -> bool {
    let mut parts = table.trim_start_matches(PREFIX).split('_');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (process, start) = (number(), number());
    let process = process.and_then(|process| u32::try_from(process).ok());
    process.is_some_and(|process| start.is_some() && start_time(process) == start)
}

/// When a process started, in clock ticks since the machine did (proc(5), field 22 of `stat`).
fn start_time(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything; field 3 follows the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

fn script(text: &str) -> io::Result<()> {
    run(Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()), text).map(|_| ())
}

fn run(command: &mut Command, input: &str) -> io::Result<String> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("nft (package nftables): {error}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(explain)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(explain)?;
    }
    let output = child.wait_with_output().map_err(explain)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or("failed").trim();
    let refused = complaint.contains("Operation not permitted");
    let kind = if refused { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, format!("nft: {complaint}")))
}
