//! `[sweep]`: all combinations of values from several lists. The points are in the order of the
//! file, and the first key changes slowest. Several `[[sweep]]` are several products over the same
//! keys, one after the other.

mod singles;

use super::chain;
use super::path::Path;
use super::{MAX_POINTS, MAX_SEEDS};
use meshpace_settings::diagnostic::Problems;
use meshpace_settings::value::{Kind, Origin, Table, Value};
use std::collections::BTreeSet;

/// Values of the sweep at one point, in the sweep's order.
pub type Values = Vec<(String, serde_json::Value)>;

/// Products of a sweep, and its seeds.
#[derive(Default, Debug)]
pub struct Sweep {
    products: Vec<Product>,
    /// Seeds per point.
    pub seeds: u64,
}

/// One table: all combinations of the values of its axes.
#[derive(Default, Debug)]
struct Product {
    axes: Vec<Axis>,
}

/// One key and its values.
#[derive(Debug)]
struct Axis {
    key: String,
    path: Path,
    origin: Origin,
    values: Vec<Value>,
    /// The key with each value, as a member of a JSON object.
    members: Vec<String>,
}

impl Sweep {
    /// Removes `[sweep]` from the tree and reads it.
    pub fn take(root: &mut Table, problems: &Problems) -> Sweep {
        let mut sweep = Sweep { products: vec![Product::default()], seeds: 1 };
        let Some(entry) = root.remove("sweep") else { return sweep };
        let tables = match entry.value.kind {
            Kind::Table(table) => vec![table],
            Kind::Array(values)
                if !values.is_empty() && values.iter().all(|value| matches!(value.kind, Kind::Table(_))) =>
            {
                let table = |value: Value| if let Kind::Table(table) = value.kind { Some(table) } else { None };
                values.into_iter().filter_map(table).collect()
            }
            _ => {
                problems.at(&entry.value.origin, "sweep: expected a table", "expected [sweep]");
                return sweep;
            }
        };
        let mut seeds = None;
        sweep.products = tables.into_iter().map(|table| Product::read(table, &mut seeds, problems)).collect();
        sweep.seeds = seeds.unwrap_or(1);
        let keys = |product: &Product| product.axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>();
        for product in &sweep.products[1..] {
            if keys(product) != keys(&sweep.products[0]) {
                let origin = product.axes.first().map_or(&entry.origin, |axis| &axis.origin);
                let message = "sweep: several [[sweep]] vary the same keys in the same order";
                problems.at(origin, message, format!("expected {}", keys(&sweep.products[0]).join(", ")));
            }
        }
        if sweep.points() > MAX_POINTS {
            let message = format!("sweep: expected at most {MAX_POINTS} points, found more");
            problems.at(&entry.origin, message, "the product of these lists");
        }
        sweep
    }

    /// Keys that are swept.
    pub fn keys(&self) -> Vec<&str> {
        self.products.first().into_iter().flat_map(|product| &product.axes).map(|axis| axis.key.as_str()).collect()
    }

    /// True if the string is one of the values, or is inside one.
    pub fn has_string(&self, text: &str) -> bool {
        let values = self.products.iter().flat_map(|product| &product.axes).flat_map(|axis| &axis.values);
        values.into_iter().any(|value| value.has_string(text))
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.products.iter().fold(0usize, |points, product| points.saturating_add(product.points()))
    }

    /// Tree of point `number`, and the values of the sweep at that point.
    pub fn point(&self, number: usize, base: &Table, problems: &Problems) -> (Table, Values) {
        let mut number = number;
        for product in &self.products {
            match number.checked_sub(product.points()) {
                Some(beyond) => number = beyond,
                None => return product.point(number, base, problems),
            }
        }
        (base.clone(), Vec::new())
    }
}

impl Product {
    /// Reads one table. `seeds` is the number of seeds of the tables before it, and is updated.
    fn read(table: Table, seeds: &mut Option<u64>, problems: &Problems) -> Product {
        let mut product = Product::default();
        for entry in table.entries {
            if entry.key == "seeds" {
                match entry.value.kind {
                    Kind::Integer(count) if (1..=MAX_SEEDS as i64).contains(&count) => {
                        if seeds.is_some_and(|seeds| seeds != count as u64) {
                            problems.at(
                                &entry.value.origin,
                                "sweep.seeds: differs from an earlier number of seeds",
                                "expected the same number everywhere",
                            );
                        }
                        *seeds = Some(count as u64);
                    }
                    _ => problems.at(
                        &entry.value.origin,
                        format!("sweep.seeds: expected a whole number of seeds from 1 to {MAX_SEEDS}"),
                        "expected a number such as 5",
                    ),
                }
                continue;
            }
            if let Some(axis) = Axis::read(entry.key, entry.origin, entry.value, problems) {
                if let Some(other) = product.axes.iter().find(|other| other.path.overlaps(&axis.path)) {
                    let message = format!("sweep.\"{}\": overlaps with \"{}\" of the same sweep", axis.key, other.key);
                    problems.at(&axis.origin, message, "expected keys that do not contain each other");
                }
                product.axes.push(axis);
            }
        }
        product
    }

    fn points(&self) -> usize {
        self.axes.iter().fold(1usize, |points, axis| points.saturating_mul(axis.values.len()))
    }

    fn point(&self, number: usize, base: &Table, problems: &Problems) -> (Table, Values) {
        let mut tree = base.clone();
        let mut values = Vec::new();
        let mut below = self.points();
        for axis in &self.axes {
            below /= axis.values.len();
            let value = &axis.values[number / below % axis.values.len()];
            let carries = axis.path.is(&["topology", "hops"]) && !self.axes.iter().any(|axis| axis.sets_flow_ends());
            if let Err(why) = axis.path.set(&mut tree, &axis.origin, value) {
                problems.at(&axis.origin, format!("sweep.\"{}\": {why}", axis.key), "expected a key of the scenario");
            }
            if carries {
                chain::carry_ends(&mut tree, chain::last_node(base));
            }
            values.push((axis.key.clone(), value.to_json()));
        }
        (tree, values)
    }
}

impl Axis {
    fn read(key: String, origin: Origin, value: Value, problems: &Problems) -> Option<Axis> {
        let path = match Path::parse(&key) {
            Ok(path) if !path.starts_with("sweep") && !path.starts_with("plot") => path,
            _ => {
                problems.at(&origin, format!("sweep.\"{key}\": not a key of a scenario"), "expected a dotted key");
                return None;
            }
        };
        let values = match value.kind {
            Kind::Array(values) if !values.is_empty() => values,
            // A dotted key without quotes makes nested tables: [sweep] topology.hops = [1, 2].
            Kind::Table(_) => {
                let message = format!("sweep.{key}: expected a list of values, found a table");
                problems.at(&origin, message, "write the dotted key in quotes, such as \"topology.hops\" = [1, 2]");
                return None;
            }
            _ => {
                let message = format!("sweep.\"{key}\": expected a list of at least one value");
                problems.at(&value.origin, message, "expected a list such as [1, 2]");
                return None;
            }
        };
        let member = |value: &Value| format!("{}:{}", serde_json::Value::from(key.as_str()), value.to_json());
        let members: Vec<String> = values.iter().map(member).collect();
        let mut seen = BTreeSet::new();
        for (value, member) in values.iter().zip(&members) {
            // 1 and 1.0 are two values, because their JSON differs. 0.0 and -0.0 are one value.
            let is_new = match value.kind {
                Kind::Float(0.0) => seen.insert("0.0"),
                _ => seen.insert(member.as_str()),
            };
            if !is_new {
                let message = format!("sweep.\"{key}\": the value {} occurs twice", value.brief());
                problems.at(&value.origin, message, "expected every value once");
            }
        }
        Some(Axis { key, path, origin, values, members })
    }

    fn sets_flow_ends(&self) -> bool {
        self.path.is_of_flow("from") || self.path.is_of_flow("to")
    }
}
