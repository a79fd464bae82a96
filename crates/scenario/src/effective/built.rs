//! Digest of the point that the reader builds from an outline. The built point contains everything
//! that its runs depend on, including the defaults of keys that are not written.

use super::{Outline, is_observed};
use crate::files::Load;
use crate::read_point;
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::{Kind, Table, Value};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

/// Hash of formatted text. The whole text of a large point is never in memory.
struct Hashing(Sha256);

impl Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

impl Outline {
    /// Builds point `number` with files from `load`, and returns its SHA-256. The values of the
    /// sweep and the keys of [`super::OBSERVED`] are left out. Points with the same digest have the
    /// same runs, and their records use the same names for transports and flows. `None` if this
    /// program refuses the point.
    pub fn built(&self, number: usize, load: Load<'_>) -> Option<[u8; 32]> {
        digest(&self.sweep.point(number, &self.root, &Problems::default()).0, load)
    }

    /// True if point `number` writes `key` with its default: the point without the key is the same.
    pub fn is_default(&self, number: usize, key: &str, load: Load<'_>) -> bool {
        let (mut tree, _) = self.sweep.point(number, &self.root, &Problems::default());
        let written = digest(&tree, load);
        !is_observed(key) && remove(&mut tree, key) && written.is_some() && digest(&tree, load) == written
    }
}

fn digest(tree: &Table, load: Load<'_>) -> Option<[u8; 32]> {
    let problems = Problems::default();
    let (mut point, ..) = read_point(tree, Vec::new(), load, 1, &problems);
    if problems.count() > 0 {
        return None;
    }
    (point.config.series, point.config.watch) = (None, Vec::new());
    let mut hash = Hashing(Sha256::new());
    // The debug format writes numbers with enough digits to distinguish any two values.
    write!(hash, "{point:?}").ok()?;
    Some(hash.0.finalize().into())
}

/// Removes a dotted key, such as `flow.0.segment`, and the tables that are empty without it. Returns
/// whether the key was there.
fn remove(table: &mut Table, key: &str) -> bool {
    if table.remove(key).is_some() {
        return true;
    }
    let Some((first, rest)) = key.split_once('.') else { return false };
    let (is_there, is_empty) = match table.get_mut(first).map(|value| &mut value.kind) {
        Some(Kind::Table(inner)) => (remove(inner, rest), inner.entries.is_empty()),
        Some(Kind::Array(items)) => (remove_from(items, rest), false),
        _ => (false, false),
    };
    if is_there && is_empty {
        table.remove(first);
    }
    is_there
}

/// Like [`remove`] for a list of tables: `0.segment`.
fn remove_from(items: &mut [Value], key: &str) -> bool {
    let Some((number, rest)) = key.split_once('.') else { return false };
    match number.parse::<usize>().ok().and_then(|number| items.get_mut(number)).map(|item| &mut item.kind) {
        Some(Kind::Table(inner)) => remove(inner, rest),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::outline;
    use crate::keys;

    fn load(name: &str) -> Result<Vec<u8>, String> {
        (keys::examples().1)(name)
    }

    fn built(text: &str, sets: &[&str]) -> [u8; 32] {
        outline(text, sets, &[]).built(0, &load).unwrap_or_else(|| panic!("refused: {text}{sets:?}"))
    }

    const TEXT: &str = "[[flow]]\n[[flow]]\nfrom = 7\nto = 0\n";

    #[test]
    fn a_key_with_its_default_is_the_key_not_written() {
        for set in [
            "duration=200 s",
            "duration=0.2e6 ms",
            "warmup=0 s",
            "starved_after=0.1",
            "radio.rate=2 Mbit/s",
            "radio.rts_cts=true",
            "radio.queue=50",
            "radio={}",
            "mac.profile=ns2",
            "mac={ profile = 'ns2', short_retry_limit = 7 }",
            "routing.protocol=static",
            "link.queue=drop-tail",
            "link.queue={ kind = 'drop-tail' }",
            "link={ marker = 'none', repeats = 0 }",
            "topology.kind=chain",
            "topology={ kind = 'chain', hops = 7, spacing = '0.2 km' }",
            "flow.0.start=1 s",
            "flow.1.start=1000 ms",
            "flow.traffic=ftp",
            "flow.count=1",
            "flow.0.to=7",
            "flow.0.transport=tcp-ap",
            "flow.0.transport={ name = 'tcp-ap' }",
        ] {
            assert_eq!(built(TEXT, &[set]), built(TEXT, &[]), "{set}");
            let of = |sets: &[&str]| outline(TEXT, sets, &[]).point(0).1;
            assert_ne!(of(&[set]).digest(), of(&[]).digest(), "{set}");
            // The end of a flow has no default that stands in a list of keys.
            let is_listed = !set.starts_with("flow.0.to=");
            let is_default = |key: &str| outline(TEXT, &[set], &[]).is_default(0, key, &load);
            assert!(of(&[]).changes(&of(&[set])).iter().all(|change| is_default(&change.key)), "{set}");
            let digest = |sets: &[&str]| of(sets).digest_without_defaults();
            assert_eq!(digest(&[set]) == digest(&[]), is_listed, "{set}");
        }
    }

    #[test]
    fn a_key_with_another_value_is_another_run() {
        for set in [
            "duration=201 s",
            "warmup=1 ms",
            "starved_after=0.2",
            "radio.rate=1 Mbit/s",
            "radio.rts_cts=false",
            "link.queue=llap",
            "topology.hops=8",
            "topology.spacing=201 m",
            "flow.0.start=2 s",
            "flow.0.to=6",
            "flow.0.transport=newreno",
            "flow.0.name=first",
            "batches={}",
        ] {
            assert_ne!(built(TEXT, &[set]), built(TEXT, &[]), "{set}");
            let (key, _) = set.split_once('=').unwrap();
            assert!(!outline(TEXT, &[set], &[]).is_default(0, key, &load), "{set}");
        }
        let observed = outline(TEXT, &["series=1 s"], &[]);
        assert!(!observed.is_default(0, "series", &load) && !observed.is_default(0, "duration", &load));
        // The run is the same, and the records call the transport by its table.
        let changed = "flow.0.transport={ name = 'newreno', pacing = 'none' }";
        assert_ne!(built(TEXT, &[changed]), built(TEXT, &["flow.0.transport=newreno"]));
        for same in ["series=1 s", "title=Other", "plot={}"] {
            assert_eq!(built(TEXT, &[same]), built(TEXT, &[]), "{same}");
        }
    }

    #[test]
    fn a_default_depends_on_the_other_keys() {
        let ht = "[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\n[topology]\nspacing = '10 m'\n[[flow]]\n";
        assert_eq!(built(ht, &["radio.basic_rate=6 Mbit/s"]), built(ht, &[]));
        let dsss = "[[flow]]\n";
        assert_eq!(built(dsss, &["radio.basic_rate=1 Mbit/s"]), built(dsss, &[]));
        assert_ne!(built(ht, &["radio.basic_rate=12 Mbit/s"]), built(ht, &[]));
        assert_eq!(outline("[[flow]]\ntransport = 'nothing'\n", &[], &[]).built(0, &load), None);
    }
}
