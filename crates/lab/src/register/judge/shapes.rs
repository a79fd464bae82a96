//! The course of one curve along x.

use super::compare::{Comparison, told};
use super::{Given, Look, Verdict, is_within, together};
use crate::register::data::Term;
use crate::register::gain::Gain;
use crate::register::observations::Sample;

fn compare(look: &Look, of: &Term, one: &Sample, other: &Sample) -> Result<Comparison, String> {
    let why = || format!("fewer than two runs of {}{} or{}", look.told(of), look.at(&one.x), look.at(&other.x));
    Comparison::of(one, other).ok_or_else(why)
}

/// Rises (`sign` 1) or falls (-1) from each x to the next.
pub fn monotone(look: &Look, of: &[Term], sign: f64, tolerance: f64, core: Option<[f64; 2]>) -> Given {
    together(of.iter().map(|term| one_monotone(look, term, sign, tolerance, core)).collect::<Result<_, _>>()?)
}

fn one_monotone(
    look: &Look,
    of: &Term,
    sign: f64,
    tolerance: f64,
    core: Option<[f64; 2]>,
) -> Result<(Verdict, String), String> {
    let samples = look.within(of, core)?;
    let (Some(first), Some(last)) = (samples.first(), samples.last().filter(|_| samples.len() > 1)) else {
        return Err(format!("there is only one x of {}", look.told(of)));
    };
    let whole = compare(look, of, last, first)?;
    let steps: Vec<(&Sample, &Sample, Comparison)> = samples
        .windows(2)
        .map(|pair| Ok((&pair[0], &pair[1], compare(look, of, &pair[1], &pair[0])?)))
        .collect::<Result<_, String>>()?;
    let is_right = |change: &Comparison| if sign > 0.0 { change.low > 0.0 } else { change.high < 0.0 };
    let is_wrong = |change: &Comparison| {
        let clear = if sign > 0.0 { change.high < 0.0 } else { change.low > 0.0 };
        clear && -sign * change.pct > tolerance
    };
    let list = |steps: &[&(&Sample, &Sample, Comparison)]| {
        let step = |(from, to, change): &&(&Sample, &Sample, Comparison)| {
            format!("{} from {} to {}", told(change), from.x.text, to.x.text)
        };
        steps.iter().map(step).collect::<Vec<_>>().join(", ")
    };
    let unclear: Vec<_> = steps.iter().filter(|(_, _, change)| !is_right(change)).collect();
    let wrong: Vec<_> = steps.iter().filter(|(_, _, change)| is_wrong(change)).collect();
    let name = look.told(of);
    let whole_told = format!("{} from {} to {}", told(&whole), first.x.text, last.x.text);
    Ok(if unclear.is_empty() {
        (Verdict::Reproduced, format!("{name}: at every step; {whole_told}"))
    } else if wrong.is_empty() && is_right(&whole) {
        (Verdict::InShape, format!("{name}: {whole_told}; not clearly {}", list(&unclear)))
    } else {
        (
            Verdict::Differs,
            format!("{name}: {whole_told}; but {}", list(if wrong.is_empty() { &unclear } else { &wrong })),
        )
    })
}

/// The same at every x.
pub fn flat(look: &Look, of: &[Term], within: f64, core: Option<[f64; 2]>) -> Given {
    let one = |term: &Term| {
        let samples = look.within(term, core)?;
        let mean = |sample: &&Sample| sample.values.iter().sum::<f64>() / sample.values.len() as f64;
        let by_mean = |a: &&Sample, b: &&Sample| mean(a).total_cmp(&mean(b));
        let (Some(largest), Some(smallest)) = (samples.iter().max_by(by_mean), samples.iter().min_by(by_mean)) else {
            return Err("there are no runs".to_owned());
        };
        let spread = compare(look, term, largest, smallest)?;
        let verdict = if spread.high <= within {
            Verdict::Reproduced
        } else if spread.pct <= within {
            Verdict::InShape
        } else {
            Verdict::Differs
        };
        let evidence = format!(
            "{}: largest{} {} above the smallest{}; the margin is {within} %",
            look.told(term),
            look.at(&largest.x),
            told(&spread),
            look.at(&smallest.x)
        );
        Ok((verdict, evidence))
    };
    together(of.iter().map(one).collect::<Result<_, _>>()?)
}

/// Largest at an x.
pub fn peak(look: &Look, of: &Term, over: Option<&Term>, [first, last]: [f64; 2]) -> Given {
    let samples = look.sample(of)?;
    let why = |sample: &Sample| {
        format!("fewer than two runs of {}{}, or nothing was delivered", look.told(of), look.at(&sample.x))
    };
    // Heights over the same ground: a gain each, over the other curve or over the curve's own first sample.
    let heights: Vec<(&Sample, Gain)> = match over {
        Some(over) => {
            let grounds = look.sample(over)?;
            let at = |sample: &Sample| {
                grounds.iter().find(|ground| ground.x == sample.x).map(|ground| ground.values.clone())
            };
            let with = samples.iter().filter_map(|sample| Some((sample, at(sample)?)));
            with.map(|(sample, ground)| {
                Gain::of(&sample.values, &ground).map(|gain| (sample, gain)).ok_or_else(|| why(sample))
            })
            .collect::<Result<_, _>>()?
        }
        None => {
            // An exact ground, so that a difference of two heights has the uncertainty of the two samples alone.
            let ground = [1.0, 1.0];
            let heights = samples.iter().map(|sample| (sample, Gain::of(&sample.values, &ground)));
            heights
                .map(|(sample, gain)| gain.map(|gain| (sample, gain)).ok_or_else(|| why(sample)))
                .collect::<Result<_, _>>()?
        }
    };
    let Some(best) = (0..heights.len()).max_by(|&a, &b| heights[a].1.ln().total_cmp(&heights[b].1.ln())) else {
        return Err("there are no runs".to_owned());
    };
    let is_inside = |number: usize| (first..=last).contains(&heights[number].0.x.value);
    if !(0..heights.len()).any(is_inside) {
        return Err(format!("there are no runs at {first} to {last}"));
    }
    let is_clearly_above = |number: usize| heights[best].1.over(&heights[number].1).interval_pct().0 > 0.0;
    let (outside, inside): (Vec<usize>, Vec<usize>) = (0..heights.len()).partition(|&number| !is_inside(number));
    let is_next = inside.iter().any(|&number| number.abs_diff(best) <= 1);
    let verdict = if is_inside(best) && outside.iter().all(|&number| is_clearly_above(number)) {
        Verdict::Reproduced
    } else if is_next || inside.iter().any(|&number| !is_clearly_above(number)) {
        Verdict::InShape
    } else {
        Verdict::Differs
    };
    let published = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let unclear: Vec<&str> = (0..heights.len())
        .filter(|&number| number != best && !is_clearly_above(number))
        .map(|number| heights[number].0.x.text.as_str())
        .collect();
    let beside = if unclear.is_empty() { String::new() } else { format!(", not clearly above {}", unclear.join(", ")) };
    Ok((verdict, format!("{}: largest{}{beside}; published {published}", look.told(of), look.at(&heights[best].0.x))))
}

/// The best value of a parameter is small, or need not be large.
pub fn tuned_below(look: &Look, of: &Term, limit: f64, core: Option<[f64; 2]>) -> Given {
    let published = look.observations.published;
    let curve = published.curve(&of.curve).ok_or_else(|| format!("there is no curve {}", of.curve))?;
    let mut verdict = Verdict::Reproduced;
    let mut said = Vec::new();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for x in look.observations.xs().iter().filter(|x| is_within(x.value, core)) {
        let choices = look.observations.choices(look.panel, curve, x);
        let best = choices.iter().max_by(|a, b| mean(&a.values).total_cmp(&mean(&b.values)));
        let small = choices.iter().filter(|choice| choice.value < limit);
        let small = small.max_by(|a, b| mean(&a.values).total_cmp(&mean(&b.values)));
        let (Some(best), Some(small)) = (best, small) else { continue };
        said.push(format!("{} at {}", best.text, x.text));
        if best.value < limit {
            continue;
        }
        let lost = Comparison::of_independent(&best.values, &small.values)
            .ok_or_else(|| format!("fewer than two runs of {}{}", look.told(of), look.at(x)))?;
        verdict = verdict.max(if lost.low > 0.0 { Verdict::Differs } else { Verdict::InShape });
    }
    if said.is_empty() {
        Err("there are no runs".to_owned())
    } else {
        Ok((verdict, format!("best: {}", said.join(", "))))
    }
}
