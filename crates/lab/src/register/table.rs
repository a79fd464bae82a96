//! Published tables: each cell a mean with its half width, held against our records.
//!
//! | Mark | Rule |
//! |---|---|
//! | reproduced | the difference is no larger than the joined half widths, the root of the sum of their squares, or than the column's tolerance |
//! | in shape | ours stands to every other row of the group as published, wherever the published values differ by more than their joined half widths |
//! | differs | otherwise |
//!
//! Several rows may be readings of one published row; each is compared with the first reading of the others.

use super::Verdict;
use crate::statistics::{Estimate, estimate};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a paper says in one or more tables of the same columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The experiment's id.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Confidence level of the published half widths and of ours: 0.9, say.
    pub level: f64,
    /// What a reader must know beside the tables, what was tried included.
    pub notes: Vec<String>,
    /// The columns.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// The tables.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
    /// Statements on the best of several rows.
    #[serde(rename = "claim", default)]
    pub claims: Vec<BestClaim>,
}

/// A column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The key of its published values.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The field of the record.
    pub field: String,
    /// What the field is multiplied by.
    pub scale: f64,
    /// How far from the published value ours may be, per cent of it, and still reproduce it.
    pub tolerance_pct: f64,
    /// Values of the sweep that its records have.
    #[serde(default)]
    pub point: Map<String, Value>,
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its title.
    pub title: String,
    /// Values of the sweep that its records have.
    #[serde(default)]
    pub point: Map<String, Value>,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The row's published name.
    pub name: String,
    /// Which reading of it this is, if there are several.
    #[serde(default)]
    pub reading: String,
    /// The value of `flow.transport`.
    pub transport: Value,
    /// Published means and half widths by column.
    pub published: BTreeMap<String, [f64; 2]>,
}

/// "The best of these is so much above the best of those", judged within each group that has both.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestClaim {
    /// The statement.
    pub text: String,
    /// The column.
    pub column: String,
    /// The title of the only table that counts; all without.
    #[serde(default)]
    pub group: Option<String>,
    /// Names of rows.
    pub of: Vec<String>,
    /// Names of the rows they are compared with.
    pub over: Vec<String>,
    /// Whether the smallest is the best.
    #[serde(default)]
    pub smaller: bool,
    /// The published difference, per cent of the second.
    pub published_pct: f64,
}

/// What is needed of a record: everything.
type Record = Map<String, Value>;

/// A cell that was judged.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Published mean and half width.
    pub published: [f64; 2],
    /// Ours.
    pub ours: Estimate,
    /// How they agree.
    pub verdict: Verdict,
    /// Rows to which ours stands otherwise than published.
    pub against: Vec<String>,
}

/// Records, one JSON object per line.
///
/// # Errors
/// The number of the line that is no record, and why.
pub fn read(lines: &str) -> Result<Vec<Record>, String> {
    let line = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
    };
    lines.lines().enumerate().map(line).collect()
}

fn joined(a: f64, b: f64) -> f64 {
    a.hypot(b)
}

impl Tables {
    fn values(&self, records: &[Record], group: &Group, row: &Row, column: &Column) -> Vec<f64> {
        let wanted = |record: &&Record| {
            let Some(Value::Object(point)) = record.get("point") else { return false };
            let has = |(key, value): (&String, &Value)| point.get(key) == Some(value);
            point.get("flow.transport") == Some(&row.transport)
                && group.point.iter().all(has)
                && column.point.iter().all(has)
        };
        let value =
            |record: &Record| record.get(&column.field).and_then(Value::as_f64).unwrap_or(f64::NAN) * column.scale;
        records.iter().filter(wanted).map(value).collect()
    }

    /// Ours for a cell.
    pub fn ours(&self, records: &[Record], group: &Group, row: &Row, column: &Column) -> Estimate {
        estimate(&self.values(records, group, row, column), self.level)
    }

    /// A cell with its mark; None where nothing was published.
    pub fn cell(&self, records: &[Record], group: &Group, row: &Row, column: &Column) -> Option<Cell> {
        let published = *row.published.get(&column.id)?;
        let ours = self.ours(records, group, row, column);
        if !ours.half_width.is_finite() {
            return Some(Cell { published, ours, verdict: Verdict::CannotBeJudged, against: Vec::new() });
        }
        let others = group.rows.iter().enumerate().filter(|(number, other)| {
            let first = group.rows.iter().position(|row| row.name == other.name);
            other.name != row.name && first == Some(*number)
        });
        let stands_otherwise = |other: &Row| {
            let Some(theirs) = other.published.get(&column.id) else { return false };
            let clear = (published[0] - theirs[0]).abs() > joined(published[1], theirs[1]);
            let here = ours.mean - self.ours(records, group, other, column).mean;
            clear && here * (published[0] - theirs[0]) <= 0.0
        };
        let against: Vec<String> =
            others.filter(|(_, other)| stands_otherwise(other)).map(|(_, other)| other.name.clone()).collect();
        let difference = (ours.mean - published[0]).abs();
        let verdict = if difference <= joined(ours.half_width, published[1])
            || difference <= column.tolerance_pct / 100.0 * published[0].abs()
        {
            Verdict::Reproduced
        } else if against.is_empty() {
            Verdict::InShape
        } else {
            Verdict::Differs
        };
        Some(Cell { published, ours, verdict, against })
    }

    /// Judges a statement on the best rows: in shape if the difference has the published sign and exceeds the
    /// joined half widths, reproduced if it is also within a third of the published one or two percentage points.
    pub fn judge(&self, records: &[Record], claim: &BestClaim) -> (Verdict, String) {
        let nothing = || (Verdict::CannotBeJudged, "there are no runs".to_owned());
        let Some(column) = self.columns.iter().find(|column| column.id == claim.column) else { return nothing() };
        let groups =
            || self.groups.iter().filter(|group| claim.group.as_ref().is_none_or(|title| group.title == *title));
        let best = |names: &[String]| {
            let row = |group: &'_ Group, name: &String| {
                let row = group.rows.iter().find(|row| row.name == *name)?;
                Some((name.clone(), self.ours(records, group, row, column)))
            };
            let found = groups().flat_map(|group| names.iter().filter_map(move |name| row(group, name)));
            let found = found.filter(|(_, ours)| ours.half_width.is_finite());
            let order = |a: &(String, Estimate), b: &(String, Estimate)| a.1.mean.total_cmp(&b.1.mean);
            if claim.smaller { found.min_by(order) } else { found.max_by(order) }
        };
        let (Some(of), Some(over)) = (best(&claim.of), best(&claim.over)) else { return nothing() };
        let pct = 100.0 * (of.1.mean / over.1.mean - 1.0);
        let clear = (of.1.mean - over.1.mean).abs() > joined(of.1.half_width, over.1.half_width);
        let published = claim.published_pct;
        let verdict = if pct.is_nan() {
            Verdict::CannotBeJudged
        } else if pct * published <= 0.0 || !clear {
            Verdict::Differs
        } else if (pct - published).abs() <= (published.abs() / 3.0).max(2.0) {
            Verdict::Reproduced
        } else {
            Verdict::InShape
        };
        let side = |(name, ours): &(String, Estimate)| format!("{name} with {:.2} ± {:.2}", ours.mean, ours.half_width);
        let ratio = if pct.is_finite() { format!("{pct:+.1} %") } else { "no ratio, the second is zero".to_owned() };
        let told = format!("{} against {}: {ratio}; published {published:+.1} %", side(&of), side(&over));
        (verdict, told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        toml::from_str(
            r#"
            id = "X"
            title = "X"
            source = "X"
            level = 0.9
            notes = []
            column = [{ id = "a", title = "a", field = "aggregate_goodput_bps", scale = 0.001, tolerance_pct = 10.0 }]
            [[group]]
            title = "one"
            row = [
                { name = "slow", transport = "s", published = { a = [100.0, 1.0] } },
                { name = "fast", transport = "f", published = { a = [200.0, 1.0] } },
                { name = "fast", reading = "other", transport = "g", published = { a = [200.0, 1.0] } },
                { name = "fast too", transport = "h", published = { a = [200.5, 1.0] } },
            ]
            [[claim]]
            text = "twice as much"
            column = "a"
            of = ["fast", "fast too"]
            over = ["slow"]
            published_pct = 100.0
            "#,
        )
        .unwrap()
    }

    fn records(values: &[(&str, f64)]) -> Vec<Record> {
        let line = |(name, kbps): &(&str, f64)| {
            [-1.0, 0.0, 1.0].map(|noise| {
                let bps = 1e3 * (kbps + noise);
                format!("{{\"point\":{{\"flow.transport\":\"{name}\"}},\"aggregate_goodput_bps\":{bps}}}")
            })
        };
        read(&values.iter().flat_map(line).collect::<Vec<_>>().join("\n")).unwrap()
    }

    fn verdicts(values: &[(&str, f64)]) -> Vec<Verdict> {
        let (tables, records) = (tables(), records(values));
        let group = &tables.groups[0];
        group.rows.iter().map(|row| tables.cell(&records, group, row, &tables.columns[0]).unwrap().verdict).collect()
    }

    #[test]
    fn a_cell_is_near_or_in_order_or_differs() {
        use Verdict::{CannotBeJudged, Differs, InShape, Reproduced};
        assert_eq!(
            verdicts(&[("s", 108.0), ("f", 190.0), ("g", 150.0), ("h", 205.0)]),
            [Reproduced, Reproduced, InShape, Reproduced]
        );
        assert_eq!(
            verdicts(&[("s", 50.0), ("f", 70.0), ("g", 40.0), ("h", 60.0)]),
            [InShape, InShape, Differs, InShape]
        );
        // Falsified: the slow one is the fastest.
        assert_eq!(
            verdicts(&[("s", 300.0), ("f", 70.0), ("g", 400.0), ("h", 60.0)]),
            [Differs, Differs, InShape, Differs]
        );
        assert_eq!(verdicts(&[("s", 100.0)])[1], CannotBeJudged);
    }

    #[test]
    fn the_best_of_several_is_compared() {
        let tables = tables();
        let verdict = |values: &[(&str, f64)]| tables.judge(&records(values), &tables.claims[0]).0;
        assert_eq!(verdict(&[("s", 100.0), ("f", 120.0), ("h", 204.0)]), Verdict::Reproduced);
        assert_eq!(verdict(&[("s", 100.0), ("f", 120.0), ("h", 130.0)]), Verdict::InShape);
        assert_eq!(verdict(&[("s", 100.0), ("f", 90.0), ("h", 80.0)]), Verdict::Differs);
        assert_eq!(verdict(&[("s", 100.0), ("f", 101.0), ("h", 80.0)]), Verdict::Differs, "not clear");
        assert_eq!(verdict(&[("s", 100.0)]), Verdict::CannotBeJudged);
    }
}
