//! Packet filter that drops the resets of the host's own TCP for ports that this process uses.
//!
//! The host answers segments for a port that it does not know with a reset, which would end our
//! connection. This process has its own nftables table, which drops those resets for the ports in
//! use, and nothing else. Our own resets carry a mark and pass.
//!
//! The table is removed when it is dropped. If the process was killed, [`clean`] removes its table.
//! A table is identified by a random token in its name and in the comment of its rule. A socket of
//! that name in the abstract namespace (unix(7)) shows whether the owner is alive. Table and socket
//! both belong to the network namespace, whatever the other namespaces of the processes are.

use crate::netlink::deliver_no_longer;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};

/// Beginning of the names of all our tables. A token follows.
pub const PREFIX: &str = "meshpace_";

/// Number of hexadecimal digits of a token.
const DIGITS: usize = 16;

/// Mark of the packets that we send.
pub const MARK: u32 = 0x6d70;

/// IP version of the packets that a table filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// Name of the family in `nft`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }

    /// Unspecified address of the family.
    pub(crate) fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

/// An installed table, which is removed when this is dropped.
#[derive(Debug)]
pub struct Table {
    family: Family,
    name: String,
    /// Number derived from the token of the table.
    number: u32,
    /// Socket that stays bound as long as this exists. The kernel closes it, whatever ends the
    /// process.
    _alive: UnixDatagram,
}

impl Table {
    /// Installs a new table in the network namespace of the calling thread. This needs
    /// `CAP_NET_ADMIN` and the command `nft`. Tables of dead processes are removed first. `rules`
    /// gets the family and name of the table, its number and a comment. It returns the commands of
    /// an `nft` script that add the rules; one of the rules must have the comment.
    ///
    /// # Errors
    ///
    /// Missing rights, no `nft`, no random numbers, or an error that `nft` reports about the rules.
    pub fn install(family: Family, rules: impl FnOnce(&str, u32, &str) -> String) -> io::Result<Table> {
        clean()?;
        let mut token = [0; DIGITS / 2];
        crate::tpa::random(&mut token)?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let (name, number) = (format!("{PREFIX}{token}"), number(&token));
        let alive = claim(&name)?;
        let comment = format!("comment \"{}\"", comment(&token));
        let table = format!("{} {name}", family.name());
        script(&format!("create table {table}\n{}", rules(&table, number, &comment)))?;
        Ok(Table { family, name, number, _alive: alive })
    }

    /// Number that no other table has, for marks and routing tables.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // If the table cannot be removed now, the next start of a process removes it.
        let _ = remove(self.family, &self.name);
    }
}

/// Derives a number from a token. It is larger than the numbers that people give to routing tables.
fn number(token: &str) -> u32 {
    u32::from_str_radix(&token[..8], 16).unwrap_or(0) & 0x3fff_ffff | 0x4000_0000
}

/// Filter for one address.
#[derive(Debug)]
pub struct Filter(Table);

impl Filter {
    /// Installs a filter without ports for `address`.
    ///
    /// # Errors
    ///
    /// The errors of [`Table::install`].
    pub fn install(address: Ipv4Addr) -> io::Result<Filter> {
        let rules = |table: &str, _: u32, comment: &str| {
            format!(
                "add set {table} ports {{ type inet_service; }}\n\
                 add chain {table} output {{ type filter hook output priority 0; policy accept; }}\n\
                 add rule {table} output ip saddr {address} tcp sport @ports tcp flags & rst == rst meta mark != {MARK} \
                 drop {comment}\n"
            )
        };
        Table::install(Family::V4, rules).map(Filter)
    }

    /// Drops the host's resets for `port`.
    ///
    /// # Errors
    ///
    /// The error of `nft`.
    pub fn add(&self, port: u16) -> io::Result<()> {
        script(&format!("add element ip {} ports {{ {port} }}\n", self.0.name))
    }

    /// Stops dropping the host's resets for `port`.
    ///
    /// # Errors
    ///
    /// The error of `nft`.
    pub fn remove(&self, port: u16) -> io::Result<()> {
        script(&format!("delete element ip {} ports {{ {port} }}\n", self.0.name))
    }
}

/// Names of the tables of dead processes.
///
/// # Errors
///
/// The errors of [`tables`].
pub fn leftovers() -> io::Result<Vec<String>> {
    Ok(abandoned()?.into_iter().map(|(_, table)| table).collect())
}

/// Removes the tables of dead processes. Returns their names.
///
/// # Errors
///
/// The errors of [`tables`], and those of `nft`.
pub fn clean() -> io::Result<Vec<String>> {
    let left = abandoned()?;
    for (family, table) in &left {
        remove(*family, table)?;
    }
    Ok(left.into_iter().map(|(_, table)| table).collect())
}

fn abandoned() -> io::Result<Vec<(Family, String)>> {
    Ok(ours()?.into_iter().filter(|(_, table)| !has_owner(table)).collect())
}

/// Names of all our tables in the network namespace of the calling thread. A table that has such a
/// name but not the comment is not ours.
///
/// # Errors
///
/// The command `nft` does not exist, or it may not be used.
pub fn tables() -> io::Result<Vec<String>> {
    Ok(ours()?.into_iter().map(|(_, table)| table).collect())
}

fn ours() -> io::Result<Vec<(Family, String)>> {
    let mut ours = Vec::new();
    let listed = run(Command::new("nft").args(["list", "tables"]).stdin(Stdio::null()), "")?;
    for line in listed.lines() {
        let Some((kind, name)) = line.trim().strip_prefix("table ").and_then(|table| table.split_once(' ')) else {
            continue;
        };
        let family = Family::ALL.into_iter().find(|family| family.name() == kind);
        let token = name.strip_prefix(PREFIX).filter(|token| is_token(token));
        if let (Some(family), Some(token)) = (family, token)
            && let Ok(content) = run(Command::new("nft").args(["list", "table", kind, name]).stdin(Stdio::null()), "")
            && content.contains(&format!("comment \"{}\"", comment(token)))
        {
            ours.push((family, name.to_owned()));
        }
    }
    Ok(ours)
}

fn is_token(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

fn comment(token: &str) -> String {
    format!("meshpace {token}")
}

/// Removes a table. Before that, removes the routes for packets with its mark.
fn remove(family: Family, table: &str) -> io::Result<()> {
    if let Some(token) = table.strip_prefix(PREFIX).filter(|token| is_token(token)) {
        // Most tables have no such routes.
        let _ = deliver_no_longer(family.any(), number(token));
    }
    script(&format!("delete table {} {table}\n", family.name()))
}

/// Binds the name of a table in the abstract namespace. This fails if the table's owner is alive.
fn claim(table: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(table)?)
}

/// True if the owner of a table is alive.
fn has_owner(table: &str) -> bool {
    // The table is removed only if its name is free: any other error is a reason to keep the table.
    claim(table).is_err()
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
