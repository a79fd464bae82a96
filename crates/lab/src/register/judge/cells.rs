//! Published numbers beside ours.
//!
//! - Reproduced: the two numbers differ by no more than their joined half widths (the root of the
//!   sum of their squares), or by no more than the metric's tolerance. The joined half widths must
//!   also be at most half of the larger number.
//! - In shape: our number clearly is in the published order to every other row whose published
//!   number differs by more than the joined half widths.
//! - Differs: our number is clearly in the opposite order to one of these rows.
//! - Cannot be told: our half widths leave the order open.

use super::Verdict;
use super::said::{self, Said};
use crate::register::data::{Check, Curve, Metric, Number, Numbers};
use crate::register::observations::Observations;
use crate::register::select::X;
use crate::statistics::{Estimate, estimate};

/// A published number and the verdict on it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Id of the curve, which is a row of the table.
    pub curve: String,
    /// Id of the metric.
    pub metric: String,
    /// Position on the horizontal axis.
    pub x: X,
    /// Published number.
    pub published: Number,
    /// Our estimate of it.
    pub ours: Estimate,
    /// The verdict.
    pub verdict: Verdict,
    /// Ids of the rows to which our number is in another order than the published one.
    pub against: Vec<String>,
    /// Whether the cell counts in the totals. Other readings of a row do not count, nor do numbers
    /// that a claim judges.
    pub counts: bool,
}

/// Judges all published numbers of a panel, including those that do not count in the totals.
pub fn cells(observations: &Observations, panel: usize) -> Vec<Cell> {
    let published = observations.published;
    let mut cells = Vec::new();
    for curve in &published.curves {
        let row = published.published.get(curve.reading_of.as_ref().unwrap_or(&curve.id));
        for id in row.into_iter().flat_map(|row| row.keys()) {
            let Some(metric) = published.metric(id) else { continue };
            cells.extend(observations.xs().iter().filter_map(|x| cell(observations, panel, curve, &metric, x)));
        }
    }
    cells
}

/// Published number of a curve at an x. `None` if there is none.
fn published_at(observations: &Observations, curve: &Curve, metric: &str, x: &X) -> Option<Number> {
    let row = observations.published.published.get(curve.reading_of.as_ref().unwrap_or(&curve.id))?;
    match row.get(metric)? {
        Numbers::One(number) => Some(*number),
        Numbers::ByX(numbers) => numbers.get(&x.text).copied(),
    }
}

fn cell(observations: &Observations, panel: usize, curve: &Curve, metric: &Metric, x: &X) -> Option<Cell> {
    let ours_of =
        |curve: &Curve| estimate(&observations.values(panel, curve, metric, None, x), observations.published.level);
    let number = published_at(observations, curve, &metric.id, x)?;
    let ours = ours_of(curve);
    // A number that a claim judges is not judged twice.
    let is_claimed = panel == 0
        && observations.published.claims.iter().any(|claim| match &claim.check {
            Check::Value { of, .. } => {
                of.curve == curve.id
                    && *of.metric.as_ref().unwrap_or(&observations.published.first_metric()) == metric.id
                    && of.x.is_none_or(|own| own == x.value)
            }
            _ => false,
        });
    let cell = |verdict, against| Cell {
        curve: curve.id.clone(),
        metric: metric.id.clone(),
        x: x.clone(),
        published: number,
        ours,
        verdict,
        against,
        counts: curve.reading_of.is_none() && !is_claimed,
    };
    if !ours.half_width.is_finite() {
        return Some(cell(Verdict::CannotBeJudged, Vec::new()));
    }
    let same_row = |other: &Curve| other.id == curve.id || Some(&other.id) == curve.reading_of.as_ref();
    // Whether our number is in the published order to that of another row. `None` if the published
    // numbers do not determine an order.
    let stands = |other: &Curve| {
        if same_row(other) || other.reading_of.is_some() {
            return None;
        }
        let theirs = published_at(observations, other, &metric.id, x)?;
        let difference = number.mean() - theirs.mean();
        let is_clear = difference.abs() > number.half_width().hypot(theirs.half_width());
        let other = ours_of(other);
        let (distance, half) =
            ((ours.mean - other.mean) * difference.signum(), ours.half_width.hypot(other.half_width));
        // A row that was not run leaves the order open.
        is_clear.then(|| match half.is_finite() {
            true => Said::on_side([distance - half, distance + half], 0.0, 0.0),
            false => Said::Open,
        })
    };
    let others = || observations.published.curves.iter();
    let against: Vec<String> =
        others().filter(|other| stands(other) == Some(Said::Fails)).map(|other| other.id.clone()).collect();
    let distance = (ours.mean - number.mean()).abs();
    let joined = ours.half_width.hypot(number.half_width());
    // Half widths that contain nearly everything show nothing.
    let is_narrow = joined <= metric.reach(number.mean().abs().max(ours.mean.abs()), 50.0);
    let is_near = distance <= joined || distance <= metric.reach(number.mean(), metric.tolerance_pct);
    let verdict = match (is_near, is_narrow) {
        (true, true) => Verdict::Reproduced,
        (true, false) => Verdict::CannotBeTold,
        (false, _) if has_others(observations, curve, metric, x) => {
            said::all(others().filter_map(stands)).verdict(Verdict::InShape)
        }
        (false, _) => Verdict::Differs,
    };
    Some(cell(verdict, against))
}

/// Returns whether there is another row to compare the order with. A single number has no shape.
fn has_others(observations: &Observations, curve: &Curve, metric: &Metric, x: &X) -> bool {
    let own = curve.reading_of.as_ref().unwrap_or(&curve.id);
    let is_other = |other: &Curve| other.id != *own && other.reading_of.is_none();
    let with_number = |other: &&Curve| published_at(observations, other, &metric.id, x).is_some();
    observations.published.curves.iter().filter(with_number).any(is_other)
}
