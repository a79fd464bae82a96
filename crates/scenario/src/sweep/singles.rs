//! Points of a sweep, described by the positions of their values in the lists. No point is built.

use super::{Product, Sweep, Values};
use crate::path::Path;
use std::collections::BTreeSet;

/// Position of a point: the number of its product, and the number of its value on each axis.
pub type Place = (usize, Vec<usize>);

impl Sweep {
    /// Position of point `number`; `None` beyond the last point.
    pub fn place(&self, number: usize) -> Option<Place> {
        let mut left = number;
        for (product, axes) in self.products.iter().enumerate() {
            match left.checked_sub(axes.points()) {
                Some(beyond) => left = beyond,
                None => return Some((product, axes.place(left))),
            }
        }
        None
    }

    /// Values of point `number`, in the order of the axes.
    pub fn values(&self, number: usize) -> Values {
        let Some((product, place)) = self.place(number) else { return Values::new() };
        let axes = self.products[product].axes.iter().zip(place);
        axes.map(|(axis, value)| (axis.key.clone(), axis.values[value].to_json())).collect()
    }

    /// Values of point `number` as the JSON object that identifies the point in records.
    pub fn key(&self, number: usize) -> String {
        let Some((product, place)) = self.place(number) else { return "{}".to_owned() };
        let axes = self.products[product].axes.iter().zip(place);
        let members: Vec<&str> = axes.map(|(axis, value)| axis.members[value].as_str()).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Number of values of each axis, by product.
    pub fn shape(&self) -> Vec<Vec<usize>> {
        self.products.iter().map(|product| product.axes.iter().map(|axis| axis.values.len()).collect()).collect()
    }

    /// Number of the point that has value `value` on axis `axis` and the first value on every other
    /// axis.
    pub fn alone(&self, product: usize, axis: usize, value: usize) -> usize {
        let before: usize = self.products[..product].iter().map(Product::points).sum();
        before + value * self.products[product].stride(axis)
    }

    /// False if the effect of one axis of a product may depend on the value of another axis. This
    /// can happen with `topology.hops`, because ends of flows move with the last node of a chain.
    /// Other keys of the topology, and lists of flows, decide whether they move.
    pub fn is_separable(&self, product: usize) -> bool {
        let axes = &self.products[product].axes;
        let is_hops = |path: &Path| path.is(&["topology", "hops"]);
        let disturbs = |path: &Path| !is_hops(path) && path.starts_with("topology") || path.is_whole_flow();
        !axes.iter().any(|axis| is_hops(&axis.path)) || !axes.iter().any(|axis| disturbs(&axis.path))
    }

    /// A selection of points in which every value of every axis occurs: once with the first values
    /// of the other axes, and once with their last values.
    pub fn singles(&self) -> BTreeSet<usize> {
        let mut numbers = BTreeSet::new();
        for (product, lengths) in self.shape().iter().enumerate() {
            numbers.insert(self.alone(product, 0, 0));
            let points = self.products[product].points();
            for (axis, &length) in lengths.iter().enumerate() {
                let stride = self.products[product].stride(axis);
                for value in 0..length {
                    let first = self.alone(product, axis, value);
                    let last = first + points - 1 - (length - 1) * stride;
                    numbers.extend([first, last]);
                }
            }
        }
        numbers
    }
}

impl Product {
    /// Number of points between one value of an axis and the next.
    fn stride(&self, axis: usize) -> usize {
        self.axes.iter().skip(axis + 1).map(|axis| axis.values.len()).product()
    }

    fn place(&self, number: usize) -> Vec<usize> {
        let of_axis = |axis: usize| number / self.stride(axis) % self.axes[axis].values.len();
        (0..self.axes.len()).map(of_axis).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_settings::diagnostic::Problems;
    use meshpace_settings::value::{Origin, Table};

    const TEXT: &str =
        "[[sweep]]\n'a.b' = [1, 2.5, 'x']\nc = [true, { d = 1 }]\n[[sweep]]\n'a.b' = [9]\nc = [0, 1, 2]\n";

    fn sweep(text: &str) -> (Sweep, Table) {
        let (document, _) = toml::de::DeTable::parse_recoverable(text);
        let mut root = Table::from_toml(document.get_ref(), &Origin::File);
        let problems = Problems::default();
        let sweep = Sweep::take(&mut root, &problems);
        assert_eq!(problems.count(), 0);
        (sweep, root)
    }

    #[test]
    fn values_and_keys_are_those_of_the_points() {
        let (sweep, root) = sweep(TEXT);
        assert_eq!((sweep.points(), sweep.shape()), (9, vec![vec![3, 2], vec![1, 3]]));
        for number in 0..9 {
            let (_, values) = sweep.point(number, &root, &Problems::default());
            let object: serde_json::Map<_, _> = values.iter().cloned().collect();
            assert_eq!(sweep.key(number), serde_json::Value::Object(object).to_string());
            assert_eq!(sweep.values(number), values);
        }
        assert_eq!((sweep.place(3), sweep.place(8)), (Some((0, vec![1, 1])), Some((1, vec![0, 2]))));
        assert_eq!((sweep.place(9), sweep.key(9)), (None, "{}".to_owned()));
    }

    #[test]
    fn every_value_stands_alone_once() {
        let (sweep, _) = sweep(TEXT);
        assert_eq!((sweep.alone(0, 0, 2), sweep.alone(0, 1, 1), sweep.alone(1, 1, 2)), (4, 1, 8));
        let (larger, _) = self::sweep("[sweep]\na = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\n");
        let singles = larger.singles();
        let of = |a: usize, b: usize, c: usize| a * 9 + b * 3 + c;
        let expected: BTreeSet<usize> = (0..3)
            .flat_map(|value| [0, 2].map(|other| (value, other)))
            .flat_map(|(value, other)| [of(value, other, other), of(other, value, other), of(other, other, value)])
            .collect();
        assert_eq!(singles, expected);
        assert_eq!(self::sweep("[sweep]\nseeds = 2\n").0.singles(), BTreeSet::from([0]));
    }
}
