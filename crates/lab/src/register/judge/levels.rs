//! Checks of a quantity against a number, and of the best of several terms against the best of
//! others.

use super::said::{NO_DIFFERENCE_PCT, Said};
use super::{Given, Look, Measured, Verdict, together};
use crate::register::data::{Bound, Metric, NEAR, Term};
use crate::register::observations::Sample;
use crate::statistics::{Estimate, estimate};

/// Judges whether quantities are above, below or between numbers at every x.
pub fn level(look: &Look, of: &[Term], bound: Bound, core: Option<[f64; 2]>) -> Given {
    together(of.iter().map(|term| one_level(look, term, bound, core)).collect::<Result<_, _>>()?)
}

fn one_level(look: &Look, of: &Term, bound: Bound, core: Option<[f64; 2]>) -> Result<(Verdict, String), String> {
    let samples = look.within(of, core)?;
    let metric = metric(look, of)?;
    let verdicts: Vec<(Verdict, &Sample, Estimate)> = samples
        .iter()
        .map(|sample| {
            let ours = measured(look, of, sample)?;
            let (mean, interval) = (ours.mean, [ours.mean - ours.half_width, ours.mean + ours.half_width]);
            // Distance that the interval may reach beyond the limit.
            let reach = |limit: f64| metric.reach(limit, metric.tolerance_pct);
            let (is_inside, nearly, limits) = match bound {
                Bound::Above(limit) => (mean > limit, interval[0] >= limit - reach(limit), [limit, f64::INFINITY]),
                Bound::Below(limit) => (mean < limit, interval[1] <= limit + reach(limit), [f64::NEG_INFINITY, limit]),
                Bound::Between([low, high]) => {
                    ((low..=high).contains(&mean), 2.0 * ours.half_width <= high - low, [low, high])
                }
            };
            let said = match Said::within(interval, limits) {
                // A mean that is exactly on the limit is neither above nor below it.
                Said::Holds if !is_inside => Said::Fails,
                said => said,
            };
            let is_in_shape = said == Said::Open && is_inside && nearly;
            let verdict = if is_in_shape { Verdict::InShape } else { said.verdict(Verdict::Reproduced) };
            Ok((verdict, sample, ours))
        })
        .collect::<Result<_, String>>()?;
    let distance = |ours: &Estimate| match bound {
        Bound::Above(limit) => ours.mean - limit,
        Bound::Below(limit) => limit - ours.mean,
        Bound::Between([low, high]) => (ours.mean - low).min(high - ours.mean),
    };
    let Some((_, sample, ours)) = verdicts.iter().min_by(|a, b| distance(&a.2).total_cmp(&distance(&b.2))) else {
        return Err("there are no runs".to_owned());
    };
    let worst = verdicts.iter().map(|(verdict, _, _)| *verdict).max().unwrap_or(Verdict::CannotBeJudged);
    let wanted = match bound {
        Bound::Above(limit) => format!("above {limit}"),
        Bound::Below(limit) => format!("below {limit}"),
        Bound::Between([low, high]) => format!("{low} to {high}"),
    };
    let nearest = if verdicts.len() > 1 { "the least clear is " } else { "" };
    Ok((worst, format!("{}: {nearest}{}{}; expected {wanted}", look.told(of), number(ours), look.at(&sample.x))))
}

fn metric(look: &Look, of: &Term) -> Result<Metric, String> {
    let published = look.observations.published;
    let id = of.metric.clone().unwrap_or_else(|| published.first_metric());
    published.metric(&id).ok_or_else(|| format!("there is no metric {id}"))
}

fn measured(look: &Look, of: &Term, sample: &Sample) -> Result<Estimate, String> {
    let ours = estimate(&sample.values, look.level());
    if ours.count < 2 || !ours.half_width.is_finite() {
        return Err(format!(
            "fewer than two runs of {}{} in which it could be measured",
            look.told(of),
            look.at(&sample.x)
        ));
    }
    Ok(ours)
}

/// Text such as "12.3 ± 0.4". The number of decimals depends on the size of the mean.
pub fn number(estimate: &Estimate) -> String {
    let digits = match estimate.mean.abs() {
        mean if mean < 1.0 => 4,
        mean if mean < 10.0 => 3,
        mean if mean < 100.0 => 2,
        _ => 1,
    };
    format!("{:.digits$} ± {:.digits$}", estimate.mean, estimate.half_width)
}

/// Measured value of a quantity. `None` unless the term selects exactly one x.
pub fn one_value(look: &Look, of: &Term) -> Option<Measured> {
    let samples = look.sample(of).ok()?;
    let [sample] = &samples[..] else { return None };
    let ours = measured(look, of, sample).ok()?;
    let unit = metric(look, of).map(|metric| metric.unit).unwrap_or_default();
    Some(Measured {
        value: ours.mean,
        low: ours.mean - ours.half_width,
        high: ours.mean + ours.half_width,
        unit,
        at: look.at(&sample.x),
    })
}

/// Judges whether a quantity has a published value.
pub fn value(look: &Look, of: &Term, published: f64, tolerance_pct: f64) -> Given {
    let samples = look.sample(of)?;
    let [sample] = &samples[..] else { return Err(format!("{} has several x: say which with @", look.told(of))) };
    let ours = measured(look, of, sample)?;
    let metric = metric(look, of)?;
    let distance = (ours.mean - published).abs();
    let holds = distance <= metric.reach(published, tolerance_pct) || distance <= ours.half_width;
    // In shape means half to twice the published value. For a bounded quantity the distance is also
    // at most twice `NEAR` of the largest possible value.
    let reach = |size: f64| metric.top().map_or(size, |top| size.min(2.0 * NEAR * top));
    let (one, other) = (published - reach(0.5 * published.abs()), published + reach(published.abs()));
    let shape = if published < 0.0 { [2.0 * published, 0.5 * published] } else { [one, other] };
    let is_narrow = ours.half_width <= metric.reach(published, 50.0);
    let verdict = match (holds, is_narrow) {
        (true, true) => Verdict::Reproduced,
        (true, false) => Verdict::CannotBeTold,
        (false, _) => {
            Said::within([ours.mean - ours.half_width, ours.mean + ours.half_width], shape).verdict(Verdict::InShape)
        }
    };
    Ok((verdict, format!("{}: {}{}; published {published}", look.told(of), number(&ours), look.at(&sample.x))))
}

/// Judges the gain of the best of several terms over the best of others.
pub fn best_gain(look: &Look, of: &[Term], over: &[Term], smaller: bool, published: f64) -> Given {
    let best = |terms: &[Term]| -> Result<(String, Estimate), String> {
        let mut found = Vec::new();
        for term in terms {
            for sample in look.sample(term)? {
                found.push((format!("{}{}", look.told(term), look.at(&sample.x)), measured(look, term, &sample)?));
            }
        }
        let order = |a: &(String, Estimate), b: &(String, Estimate)| a.1.mean.total_cmp(&b.1.mean);
        let chosen = if smaller { found.into_iter().min_by(order) } else { found.into_iter().max_by(order) };
        chosen.ok_or_else(|| "there are no runs".to_owned())
    };
    let (of, over) = (best(of)?, best(over)?);
    let pct = 100.0 * (of.1.mean / over.1.mean - 1.0);
    if !pct.is_finite() {
        return Err(format!("{} with {}: there is no ratio to it", over.0, number(&over.1)));
    }
    let sign = published.signum();
    let half = 100.0 * of.1.half_width.hypot(over.1.half_width) / over.1.mean.abs();
    let none = NO_DIFFERENCE_PCT.min(published.abs() / 2.0);
    let is_near = (pct - published).abs() <= (published.abs() / 3.0).max(2.0);
    let holds = if is_near { Verdict::Reproduced } else { Verdict::InShape };
    let verdict = Said::on_side([sign * pct - half, sign * pct + half], 0.0, none).verdict(holds);
    let side = |(name, ours): &(String, Estimate)| format!("{name} with {}", number(ours));
    Ok((verdict, format!("{} against {}: {pct:+.1} %; published {published:+} %", side(&of), side(&over))))
}
