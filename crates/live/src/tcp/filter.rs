//! The packet filter that keeps the host's TCP quiet about ports that are not its own.
//!
//! The host answers segments for a port it does not know with a reset, which would end our connection. A table of nftables
//! of this process's own drops those resets, and nothing else, of the ports in use. It goes when it is dropped; after a
//! process that was killed, [`clean`] removes it. A table is known by a random token, in its name and in the comment of its
//! rule, and whether its owner lives by a socket of that name in the abstract namespace (unix(7)): both belong to the
//! network namespace, whatever the namespaces of processes are. Our own resets carry a mark and pass.

use crate::netlink::deliver_no_longer;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};

/// Beginning of the names of all our tables; a token follows.
pub const PREFIX: &str = "meshpace_";

/// Hexadecimal digits of a token.
const DIGITS: usize = 16;

/// The mark of the packets we send.
pub const MARK: u32 = 0x6d70;

/// The version of IP whose packets a table sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// As `nft` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }

    /// Any address of it.
    pub(crate) fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

/// A table that is installed, and removed when it is dropped.
#[derive(Debug)]
pub struct Table {
    family: Family,
    name: String,
    /// The number of its token.
    number: u32,
    /// Bound as long as this lives: the kernel lets go of it whatever ends the process.
    _alive: UnixDatagram,
}

impl Table {
    /// Installs a new one in the network namespace of the calling thread; needs `CAP_NET_ADMIN` and the command `nft`. What dead
    /// processes have left is removed first. `rules` are what a script adds to the table of this name, with its family before it, and of
    /// this number; one of them has the comment.
    ///
    /// # Errors
    ///
    /// No rights, no `nft`, no random numbers, or what `nft` has against the rules.
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

    /// A number that no other table has: for marks and tables of routes.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // If it cannot be removed now, the next start does it.
        let _ = remove(self.family, &self.name);
    }
}

/// From a token: above every number that people give to tables of routes.
fn number(token: &str) -> u32 {
    u32::from_str_radix(&token[..8], 16).unwrap_or(0) & 0x3fff_ffff | 0x4000_0000
}

/// The filter of one address.
#[derive(Debug)]
pub struct Filter(Table);

impl Filter {
    /// Installs an empty one for `address`.
    ///
    /// # Errors
    ///
    /// Those of [`Table::install`].
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

    /// Keeps the host quiet about `port`.
    ///
    /// # Errors
    ///
    /// `nft`'s.
    pub fn add(&self, port: u16) -> io::Result<()> {
        script(&format!("add element ip {} ports {{ {port} }}\n", self.0.name))
    }

    /// No longer.
    ///
    /// # Errors
    ///
    /// `nft`'s.
    pub fn remove(&self, port: u16) -> io::Result<()> {
        script(&format!("delete element ip {} ports {{ {port} }}\n", self.0.name))
    }
}

/// The tables of processes that are gone.
///
/// # Errors
///
/// Those of [`tables`].
pub fn leftovers() -> io::Result<Vec<String>> {
    Ok(abandoned()?.into_iter().map(|(_, table)| table).collect())
}

/// Removes them; which.
///
/// # Errors
///
/// Those of [`tables`], and `nft`'s.
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

/// All tables of ours in the network namespace of the calling thread. What only has such a name is not ours.
///
/// # Errors
///
/// There is no `nft`, or it may not be asked.
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

/// Removes a table, and before it the routes that only packets with its mark take.
fn remove(family: Family, table: &str) -> io::Result<()> {
    if let Some(token) = table.strip_prefix(PREFIX).filter(|token| is_token(token)) {
        // Most have none.
        let _ = deliver_no_longer(family.any(), number(token));
    }
    script(&format!("delete table {} {table}\n", family.name()))
}

/// Takes the name of a table in the abstract namespace: an error if its owner lives.
fn claim(table: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(table)?)
}

/// True if the owner of a table lives.
fn has_owner(table: &str) -> bool {
    // Anything but the name's being free speaks for leaving the table alone.
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
