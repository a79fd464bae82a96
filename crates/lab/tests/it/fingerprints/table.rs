//! The committed table: its content, the changes that are allowed, and the faults of a table that
//! was changed otherwise.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Beginning of the file.
const HEAD: &str = "\
# Fingerprints of short runs: hashes of (time, node, frame kind, bytes) of every transmission and delivery.
# crates/lab/tests/it/fingerprints.rs runs them; CONTRIBUTING.md tells how and when to record them anew.
#
# revision NUMBER DIGEST REASON       the revisions of the model, and a digest of the rows below as the last of them left them
# FINGERPRINT REVISION SOURCE RUN     SOURCE is a digest of the scenario, REVISION the one that gave the row its fingerprint
";

/// A run with its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// Scenario and point, or transport and topology.
    pub name: String,
    /// Digest of the scenario's text.
    pub source: u64,
    /// Fingerprint of the engine.
    pub fingerprint: u64,
}

/// A row: a run, and the revision of the model that produced its fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    ran: Ran,
    revision: u32,
}

/// A revision of the model.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Revision {
    number: u32,
    digest: u64,
    reason: String,
}

/// The table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    revisions: Vec<Revision>,
    rows: Vec<Row>,
}

/// FNV-1a hash.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Table {
    /// Parses the table. The error is the line that is not valid.
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut table = Table::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("revision ") {
                Some(rest) => table.revisions.push(revision(rest).ok_or(line)?),
                None => table.rows.push(row(line).ok_or(line)?),
            }
        }
        Ok(table)
    }

    /// The text of the table.
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for Revision { number, digest, reason } in &self.revisions {
            let _ = writeln!(text, "revision {number} {digest:016x} {reason}");
        }
        text.push('\n');
        text + &self.lines()
    }

    /// The text of the rows.
    fn lines(&self) -> String {
        let mut text = String::new();
        for Row { ran: Ran { name, source, fingerprint }, revision } in &self.rows {
            let _ = writeln!(text, "{fingerprint:016x} {revision} {source:016x} {name}");
        }
        text
    }

    /// The last revision in the table.
    pub fn revision(&self) -> u32 {
        self.revisions.last().map_or(0, |last| last.number)
    }

    fn digest(&self) -> u64 {
        digest(self.lines().as_bytes())
    }

    fn by_name(&self) -> BTreeMap<&str, &Row> {
        self.rows.iter().map(|row| (row.ran.name.as_str(), row)).collect()
    }

    /// Faults of the table, one per line, compared with runs of the model of `revision`.
    pub fn complaints(&self, ran: &[Ran], revision: u32) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.revision() != revision {
            complaints.push(format!("the table is of revision {}, the model is of {revision}", self.revision()));
        }
        if self.revisions.last().is_some_and(|last| last.digest != self.digest()) {
            complaints.push("rows were changed by hand: their digest is not that of the last revision".to_owned());
        }
        let mut known = self.by_name();
        for Ran { name, fingerprint, .. } in ran {
            match known.remove(name.as_str()) {
                None => complaints.push(format!("not in the table: {name}")),
                Some(row) if row.ran.fingerprint != *fingerprint => {
                    complaints.push(format!("{:016x} before, {fingerprint:016x} now: {name}", row.ran.fingerprint));
                }
                Some(_) => {}
            }
        }
        complaints.extend(known.into_keys().map(|name| format!("in the table, but not run: {name}")));
        complaints
    }

    /// The table after these runs with the model of `revision`.
    ///
    /// # Errors If the fingerprint of an unchanged scenario changed but the revision did not, or if
    /// there is no reason.
    pub fn recorded(&self, ran: &[Ran], revision: u32, reason: &str) -> Result<Table, String> {
        let last = self.revision();
        if revision < last {
            return Err(format!("the table knows revision {last} already, the model says {revision}"));
        }
        let known = self.by_name();
        let mut table = Table { revisions: self.revisions.clone(), rows: Vec::new() };
        for ran in ran {
            let before = known.get(ran.name.as_str());
            let same = before.filter(|row| row.ran.fingerprint == ran.fingerprint);
            let is_changed = same.is_none() && before.is_some_and(|row| row.ran.source == ran.source);
            if is_changed && revision == last {
                return Err(format!("{} changed: raise MODEL_REVISION to {} first", ran.name, last + 1));
            }
            table.rows.push(Row { ran: ran.clone(), revision: same.map_or(revision, |row| row.revision) });
        }
        if revision > last {
            if reason.trim().len() < 10 {
                return Err("say in a few words why the fingerprints change".to_owned());
            }
            table.revisions.push(Revision { number: revision, digest: 0, reason: reason.trim().replace('\n', " ") });
        }
        let digest = table.digest();
        if let Some(last) = table.revisions.last_mut() {
            last.digest = digest;
        }
        Ok(table)
    }

    /// Changes since `earlier` that no recording makes, one per line.
    pub fn rewritten(&self, earlier: &Table) -> Vec<String> {
        let mut found = Vec::new();
        let closed = earlier.revisions.iter().filter(|before| before.number < earlier.revision());
        for before in closed.filter(|before| !self.revisions.contains(before)) {
            found.push(format!("revision {} was another one", before.number));
        }
        let known = earlier.by_name();
        for row in &self.rows {
            let Some(before) = known.get(row.ran.name.as_str()) else { continue };
            if before.revision >= row.revision && before.ran.source == row.ran.source && **before != *row {
                found.push(format!(
                    "in revision {} this was {:016x}: {}",
                    row.revision, before.ran.fingerprint, row.ran.name
                ));
            }
        }
        found
    }
}

fn revision(rest: &str) -> Option<Revision> {
    let mut words = rest.splitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let digest = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(Revision { number, digest, reason: words.next()?.to_owned() })
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.splitn(4, ' ');
    let fingerprint = u64::from_str_radix(words.next()?, 16).ok()?;
    let revision = words.next()?.parse().ok()?;
    let source = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(Row { ran: Ran { name: words.next()?.to_owned(), source, fingerprint }, revision })
}

fn ran(name: &str, source: u64, fingerprint: u64) -> Ran {
    Ran { name: name.to_owned(), source, fingerprint }
}

#[test]
fn a_changed_run_needs_a_new_revision_and_a_reason() {
    let first = Table::default().recorded(&[ran("a", 1, 10), ran("b", 1, 20)], 1, "the first table").unwrap();
    assert_eq!(first.complaints(&[ran("a", 1, 10), ran("b", 1, 20)], 1), [""; 0]);
    assert_eq!(Table::parse(&first.text()), Ok(first.clone()), "it is read as it was written");
    let changed = [ran("a", 1, 10), ran("b", 1, 21)];
    assert_eq!(first.complaints(&changed, 1).len(), 1);
    assert!(first.recorded(&changed, 1, "an excuse that helps nothing").unwrap_err().contains("MODEL_REVISION to 2"));
    assert!(first.recorded(&changed, 2, "").is_err(), "no reason");
    let second = first.recorded(&changed, 2, "b counts from one").unwrap();
    assert_eq!(second.complaints(&changed, 2), [""; 0]);
    assert!(second.complaints(&changed, 1)[0].contains("revision"));
    assert_eq!(second.rows.iter().map(|row| row.revision).collect::<Vec<_>>(), [1, 2]);
    assert!(second.rewritten(&first).is_empty());
    assert!(second.recorded(&changed, 1, "back again, please").is_err());
}

#[test]
fn a_new_or_rewritten_scenario_needs_no_new_revision() {
    let first = Table::default().recorded(&[ran("a", 1, 10), ran("b", 1, 20)], 1, "the first table").unwrap();
    let now = [ran("a", 2, 11), ran("c", 1, 30)];
    assert_eq!(first.complaints(&now, 1).len(), 3, "changed, new, gone");
    let second = first.recorded(&now, 1, "").unwrap();
    assert_eq!(second.complaints(&now, 1), [""; 0]);
    assert!(second.rewritten(&first).is_empty());
}

#[test]
fn a_change_by_hand_is_seen() {
    let first = Table::default().recorded(&[ran("a", 1, 10)], 1, "the first table").unwrap();
    let mut forged = first.clone();
    forged.rows[0].ran.fingerprint = 11;
    assert!(forged.complaints(&[ran("a", 1, 11)], 1)[0].contains("by hand"));
    // If the digest is corrected too, only an earlier state of the file shows the change.
    forged.revisions[0].digest = forged.digest();
    assert!(forged.complaints(&[ran("a", 1, 11)], 1).is_empty());
    assert_eq!(forged.rewritten(&first).len(), 1);
    let second = first.recorded(&[ran("a", 1, 12)], 2, "another model").unwrap();
    let third = second.recorded(&[ran("a", 1, 13)], 3, "a third model").unwrap();
    let mut rewritten = third.clone();
    rewritten.revisions[0].reason = "history was otherwise".to_owned();
    assert_eq!(rewritten.rewritten(&third), ["revision 1 was another one"]);
}
