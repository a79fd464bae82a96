//! Identities of all points of a sweep.
//!
//! The digest of a point is the sum of the digests of its settings. If the values of each axis
//! change settings that no other axis changes, a value changes the sum by the same amount at every
//! point. The identity of a point then follows from the identity of the first point and from the
//! point's values. Settings need to be gathered for a few points only.

use super::{Outline, Settings, is_observed};
use sha2::Sha256;
use std::collections::BTreeSet;
use std::iter::Sum;
use std::sync::Arc;

/// Number of points of a product whose identity is calculated in both ways before the sums are used
/// for all of its points.
const COMPARED: usize = 16;

/// Digest of a set of settings; their order does not matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Digest([u64; 4]);

/// Identity of a point's runs: everything that they depend on, except the seed and the revision of
/// the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Digest of the settings that decide the results of the run.
    pub run: Digest,
    /// Meanings of the keys of [`super::OBSERVED`].
    pub observed: Arc<[Option<String>; super::OBSERVED.len()]>,
}

impl Digest {
    /// SHA-256 of one setting.
    pub fn of(key: &str, meaning: &str) -> Digest {
        let mut hash = <Sha256 as sha2::Digest>::new();
        for part in [key, meaning] {
            sha2::Digest::update(&mut hash, (part.len() as u64).to_le_bytes());
            sha2::Digest::update(&mut hash, part);
        }
        let bytes: [u8; 32] = sha2::Digest::finalize(hash).into();
        let word =
            |number: usize| bytes.iter().skip(8 * number).take(8).fold(0, |word, byte| word << 8 | u64::from(*byte));
        Digest([0, 1, 2, 3].map(word))
    }

    fn plus(self, other: Digest) -> Digest {
        Digest([0, 1, 2, 3].map(|word| self.0[word].wrapping_add(other.0[word])))
    }

    fn minus(self, other: Digest) -> Digest {
        Digest([0, 1, 2, 3].map(|word| self.0[word].wrapping_sub(other.0[word])))
    }
}

impl Sum for Digest {
    fn sum<I: Iterator<Item = Digest>>(digests: I) -> Digest {
        digests.fold(Digest::default(), Digest::plus)
    }
}

impl Identity {
    fn of(settings: &Settings) -> Identity {
        Identity { run: settings.digest(), observed: Arc::new(settings.observed()) }
    }
}

/// Amounts by which the values of a product's axes change the digest of its first point.
struct Sums {
    first: Identity,
    /// Change of the digest, by axis and value.
    changes: Vec<Vec<Digest>>,
}

impl Sums {
    fn of(&self, place: &[usize]) -> Digest {
        place.iter().zip(&self.changes).fold(self.first.run, |sum, (value, of_axis)| sum.plus(of_axis[*value]))
    }
}

impl Outline {
    /// Identity of each point, in the order of the sweep.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        let products = self.sweep.shape().len();
        let sums: Vec<Option<Sums>> = (0..products).map(|product| self.sums(product)).collect();
        (0..self.points()).map(move |number| {
            let (product, place) = self.sweep.place(number).unwrap_or_default();
            match sums.get(product) {
                Some(Some(sums)) => Identity { run: sums.of(&place), ..sums.first.clone() },
                _ => Identity::of(&self.point(number).1),
            }
        })
    }

    /// Calculates the sums of a product. `None` if the product is so small that sums save nothing,
    /// if two axes change the same setting, or if an axis changes an observed key.
    fn sums(&self, product: usize) -> Option<Sums> {
        let lengths = self.sweep.shape().swap_remove(product);
        let points: usize = lengths.iter().product();
        if points <= lengths.iter().sum::<usize>() + COMPARED || !self.sweep.is_separable(product) {
            return None;
        }
        let first = self.point(self.sweep.alone(product, 0, 0)).1;
        let base = Identity::of(&first);
        let (mut changes, mut known) = (Vec::new(), BTreeSet::new());
        for (axis, length) in lengths.iter().enumerate() {
            let (mut of_axis, mut changed) = (Vec::new(), BTreeSet::new());
            for value in 0..*length {
                let settings = self.point(self.sweep.alone(product, axis, value)).1;
                changed.extend(first.changed(&settings));
                of_axis.push(settings.digest().minus(base.run));
            }
            if changed.iter().any(|key| is_observed(key) || known.contains(key)) {
                return None;
            }
            known.append(&mut changed);
            changes.push(of_axis);
        }
        let sums = Sums { first: base, changes };
        sums.hold(self, product, points).then_some(sums)
    }
}

impl Sums {
    /// Checks the sums against the settings at points that are spread evenly over the product and
    /// include the last one.
    fn hold(&self, outline: &Outline, product: usize, points: usize) -> bool {
        let before = outline.sweep.alone(product, 0, 0);
        (1..=COMPARED).map(|part| before + points * part / COMPARED - 1).all(|number| {
            let place = outline.sweep.place(number).unwrap_or_default().1;
            self.of(&place) == outline.point(number).1.digest()
        })
    }
}

impl Settings {
    /// Keys whose meanings differ between the two settings. A key that only one of them contains
    /// counts as different.
    fn changed(&self, other: &Settings) -> BTreeSet<String> {
        let differs = |key: &&String| {
            self.0.get(*key).map(|setting| &setting.meaning) != other.0.get(*key).map(|setting| &setting.meaning)
        };
        self.0.keys().chain(other.0.keys()).filter(differs).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_settings::diagnostic::Source;
    use std::collections::BTreeMap;

    fn outline(text: &str) -> Outline {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        Outline::read(&source, BTreeMap::new()).unwrap()
    }

    /// Asserts that the identities are those of the settings. Returns whether the sums were used.
    fn compared(text: &str) -> bool {
        let outline = outline(text);
        let identities: Vec<Identity> = outline.identities().collect();
        let expected: Vec<Identity> =
            (0..outline.points()).map(|number| Identity::of(&outline.point(number).1)).collect();
        assert_eq!(identities, expected, "{text}");
        (0..outline.sweep.shape().len()).all(|product| outline.sums(product).is_some())
    }

    const FLOW: &str = "duration = '9 s'\nseries = '1 s'\n[[flow]]\ntransport = 'tcp-ap'\nto = 4\n[sweep]\nstarved_after = [0.1, 0.2, 0.3, 0.4]\n";

    #[test]
    fn sums_are_what_the_settings_say() {
        let one = "'flow.transport.pacing.alpha' = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n";
        assert!(compared(&format!("{FLOW}'flow.max_window' = [1, 2, 3, 4, 5, 6, 7, 8]\n{one}")));
        assert!(compared(&format!("{FLOW}'topology.hops' = [1, 2, 3, 4, 5, 6, 7, 8]\n{one}")), "ends are carried");
        assert!(compared(&format!(
            "{FLOW}'flow' = [[{{}}], [{{}}, {{}}], [{{ to = 1 }}]]\nradio = [{{}}, {{ noise = '-90 dBm' }}, {{ noise = '-80 dBm' }}]\n"
        )));
    }

    #[test]
    fn what_cannot_be_summed_up_is_gathered() {
        let hops = "'topology.hops' = [4, 2, 3, 1, 5, 6, 7, 8]\n";
        for axes in [
            "'flow.transport.pacing.alpha' = [0.1, 0.2, 0.3]\n'flow.transport.pacing.x' = [1, 2, 3, 4]\n".to_owned(),
            format!("'topology.kind' = ['chain', 'grid', 'parallel']\n{hops}"),
            format!("flow = [[{{ to = 2 }}], [{{ to = 4 }}, {{}}]]\n{hops}"),
            "series = ['1 s', '2 s', '3 s']\n'flow.max_window' = [1, 2, 3, 4, 5]\n".to_owned(),
        ] {
            assert!(!compared(&format!("{FLOW}{axes}")), "{axes}");
        }
        assert!(!compared("[[flow]]\n[sweep]\nduration = ['1 s', '2 s']\n"), "few points");
    }

    #[test]
    fn the_order_of_settings_does_not_matter_and_their_content_does() {
        let of =
            |settings: &[(&str, &str)]| settings.iter().map(|(key, meaning)| Digest::of(key, meaning)).sum::<Digest>();
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        assert_ne!(of(&[("a", "1"), ("b", "2")]), of(&[("a", "2"), ("b", "1")]));
        assert_ne!(of(&[("a", "11")]), of(&[("a1", "1")]));
        // SHA-256 of eight bytes for the length of each part, and nothing else: two empty parts.
        assert_eq!(of(&[("", "")]).0[0], 0x374708fff7719dd5);
    }
}
