//! A quantity against a number, and the best of several against the best of others.

use super::{Given, Look, Measured, Verdict, together};
use crate::register::data::{Bound, Term};
use crate::register::observations::Sample;
use crate::statistics::{Estimate, estimate};

/// Above, below or between numbers at every x.
pub fn level(look: &Look, of: &[Term], bound: Bound, core: Option<[f64; 2]>) -> Given {
    together(of.iter().map(|term| one_level(look, term, bound, core)).collect::<Result<_, _>>()?)
}

fn one_level(look: &Look, of: &Term, bound: Bound, core: Option<[f64; 2]>) -> Result<(Verdict, String), String> {
    let samples = look.within(of, core)?;
    let verdicts: Vec<(Verdict, &Sample, Estimate)> = samples
        .iter()
        .map(|sample| {
            let ours = measured(look, of, sample)?;
            let (mean, half) = (ours.mean, ours.half_width);
            let (is_inside, is_clear) = match bound {
                Bound::Above(limit) => (mean > limit, mean - half > limit),
                Bound::Below(limit) => (mean < limit, mean + half < limit),
                Bound::Between([low, high]) => ((low..=high).contains(&mean), 2.0 * half <= high - low),
            };
            let verdict = match (is_inside, is_clear) {
                (true, true) => Verdict::Reproduced,
                (true, false) => Verdict::InShape,
                (false, _) => Verdict::Differs,
            };
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

/// "12.3 ± 0.4" with as many digits as mean something.
pub fn number(estimate: &Estimate) -> String {
    let digits = match estimate.mean.abs() {
        mean if mean < 1.0 => 4,
        mean if mean < 10.0 => 3,
        mean if mean < 100.0 => 2,
        _ => 1,
    };
    format!("{:.digits$} ± {:.digits$}", estimate.mean, estimate.half_width)
}

/// The quantity at its x, if there is one only.
pub fn one_value(look: &Look, of: &Term) -> Option<Measured> {
    let samples = look.sample(of).ok()?;
    let [sample] = &samples[..] else { return None };
    let ours = measured(look, of, sample).ok()?;
    let published = look.observations.published;
    let metric = published.metric(&of.metric.clone().unwrap_or_else(|| published.first_metric()));
    let unit = metric.map(|metric| metric.unit).unwrap_or_default();
    Some(Measured { value: ours.mean, low: ours.mean - ours.half_width, high: ours.mean + ours.half_width, unit })
}

/// A published value.
pub fn value(look: &Look, of: &Term, published: f64, tolerance_pct: f64) -> Given {
    let samples = look.sample(of)?;
    let [sample] = &samples[..] else { return Err(format!("{} has several x: say which with @", look.told(of))) };
    let ours = measured(look, of, sample)?;
    let distance = (ours.mean - published).abs();
    let ratio = ours.mean / published;
    let holds = distance <= ours.half_width && 2.0 * ours.half_width <= published.abs();
    let verdict = if distance <= tolerance_pct / 100.0 * published.abs() || holds {
        Verdict::Reproduced
    } else if (0.5..=2.0).contains(&ratio) {
        Verdict::InShape
    } else {
        Verdict::Differs
    };
    Ok((verdict, format!("{}: {}{}; published {published}", look.told(of), number(&ours), look.at(&sample.x))))
}

/// The best of several against the best of others.
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
    let is_clear = (of.1.mean - over.1.mean).abs() > of.1.half_width.hypot(over.1.half_width);
    let verdict = if pct * published <= 0.0 || !is_clear {
        Verdict::Differs
    } else if (pct - published).abs() <= (published.abs() / 3.0).max(2.0) {
        Verdict::Reproduced
    } else {
        Verdict::InShape
    };
    let side = |(name, ours): &(String, Estimate)| format!("{name} with {}", number(ours));
    Ok((verdict, format!("{} against {}: {pct:+.1} %; published {published:+} %", side(&of), side(&over))))
}
