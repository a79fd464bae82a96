//! Actions of `doctor`, shared by the commands that have it.

use meshpace_live::doctor::Finding;
use meshpace_live::tcp::filter;
use serde_json::json;
use std::io;

/// Removes what killed processes have left in the packet filter. Returns a description of what was
/// removed.
///
/// # Errors
///
/// The packet filter cannot be read or changed.
pub fn clean() -> io::Result<String> {
    let tables = filter::clean()?;
    Ok(if tables.is_empty() { "nothing to remove".to_owned() } else { format!("removed {}", tables.join(", ")) })
}

/// A finding as a line of JSON.
pub fn object(finding: &Finding) -> String {
    let Finding { subject, ok, found, needed_for, remedy } = finding;
    format!("{}\n", json!({"subject": subject, "ok": ok, "found": found, "needed_for": needed_for, "remedy": remedy}))
}
