//! Checks of the course of one curve along x.

use super::compare::{Comparison, told};
use super::said::{NO_DIFFERENCE_PCT, Said};
use super::trend::correlation;
use super::{Given, Look, Verdict, is_within, together};
use crate::register::data::Term;
use crate::register::gain::Gain;
use crate::register::observations::{Choice, Sample};
use crate::statistics::spearman;
use std::collections::BTreeMap;

fn compare(look: &Look, of: &Term, one: &Sample, other: &Sample) -> Result<Comparison, String> {
    let why = || format!("fewer than two runs of {}{} or{}", look.told(of), look.at(&one.x), look.at(&other.x));
    Comparison::of(one, other).ok_or_else(why)
}

/// Judges whether quantities rise (`sign` 1) or fall (`sign` -1) along x as a whole.
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
    let is_wrong = |change: &Comparison| {
        let clear = if sign > 0.0 { change.high < 0.0 } else { change.low > 0.0 };
        clear && -sign * change.pct > tolerance
    };
    let name = look.told(of);
    let toward = |low: f64, high: f64| if sign > 0.0 { [low, high] } else { [-high, -low] };
    let ends = Said::on_side(toward(whole.low, whole.high), 0.0, 0.0);
    let runs = correlation(&of_runs(&samples)).ok_or_else(|| format!("{name}: fewer than four runs"))?;
    let trend = Said::on_side(toward(runs.low, runs.high), 0.0, 0.0);
    let means: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.x.value, mean(&sample.values))).collect();
    let is_course = spearman(&means).is_some_and(|r| sign * r >= COURSE);
    let back: Vec<String> = steps
        .iter()
        .filter(|(_, _, change)| is_wrong(change))
        .map(|(from, to, change)| format!("{} from {} to {}", told(change), from.x.text, to.x.text))
        .collect();
    let verdict = match ends.max(trend) {
        Said::Holds if !is_course => Verdict::Differs,
        Said::Holds if back.is_empty() => Verdict::Reproduced,
        Said::Holds => Verdict::InShape,
        other => other.verdict(Verdict::InShape),
    };
    let but = if back.is_empty() { String::new() } else { format!("; but {}", back.join(", ")) };
    let evidence = format!(
        "{name}: {} from {} to {}, rank correlation {:+.2} ({:+.2} to {:+.2}){but}",
        told(&whole),
        first.x.text,
        last.x.text,
        runs.r,
        runs.low,
        runs.high
    );
    Ok((verdict, evidence))
}

/// Smallest rank correlation of the means at which a course falls or rises as a whole. It is half
/// of the correlation of a course without a step back.
const COURSE: f64 = 0.5;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// All runs with their x. If a seed draws the places of nodes, each value is divided by the mean of
/// its seed, which removes what the runs of the seed have in common.
fn of_runs(samples: &[Sample]) -> Vec<(f64, f64)> {
    let mut own: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        for (seed, value) in sample.seeds.iter().flatten().zip(&sample.values) {
            own.entry(*seed).or_default().push(*value);
        }
    }
    let is_whole = |seed: &u64| own.get(seed).is_some_and(|values| values.len() == samples.len());
    let of_one = |sample: &Sample| -> Vec<(f64, f64)> {
        let x = sample.x.value;
        match &sample.seeds {
            None => sample.values.iter().map(|value| (x, *value)).collect(),
            Some(seeds) => seeds
                .iter()
                .zip(&sample.values)
                .filter(|(seed, _)| is_whole(seed))
                .map(|(seed, value)| (x, value / mean(&own[seed])))
                .filter(|(_, value)| value.is_finite())
                .collect(),
        }
    };
    samples.iter().flat_map(of_one).collect()
}

/// Judges whether quantities are the same at every x.
pub fn flat(look: &Look, of: &[Term], within: f64, core: Option<[f64; 2]>) -> Given {
    let one = |term: &Term| {
        let samples = look.within(term, core)?;
        let by_mean = |a: &&Sample, b: &&Sample| mean(&a.values).total_cmp(&mean(&b.values));
        let (Some(largest), Some(smallest)) = (samples.iter().max_by(by_mean), samples.iter().min_by(by_mean)) else {
            return Err("there are no runs".to_owned());
        };
        let spread = compare(look, term, largest, smallest)?;
        // The largest mean is above the smallest by construction, so only the distance is tested.
        let verdict = match Said::within([spread.low.max(0.0), spread.high], [0.0, within]) {
            Said::Open if spread.pct <= within && spread.high <= 2.0 * within => Verdict::InShape,
            said => said.verdict(Verdict::Reproduced),
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

/// Judges whether a quantity is largest at an x within `first` and `last`.
pub fn peak(look: &Look, of: &Term, over: Option<&Term>, [first, last]: [f64; 2]) -> Given {
    let samples = look.sample(of)?;
    let why = |sample: &Sample| {
        format!("fewer than two runs of {}{}, or nothing was delivered", look.told(of), look.at(&sample.x))
    };
    // Heights are gains over a common base: over the other curve, or over the constant 1.
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
            // The base is exact, so that a difference of two heights has the uncertainty of the two
            // samples alone.
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
    let is_clearly_above = |number: usize| heights[best].1.divided_by(&heights[number].1).interval_pct().0 > 0.0;
    let (outside, inside): (Vec<usize>, Vec<usize>) = (0..heights.len()).partition(|&number| !is_inside(number));
    let is_near = |number: usize| inside.iter().any(|other| other.abs_diff(number) <= 1);
    let verdict = if is_inside(best) && outside.iter().all(|&number| is_clearly_above(number)) {
        Verdict::Reproduced
    } else if is_near(best) && outside.iter().all(|&number| is_near(number) || is_clearly_above(number)) {
        Verdict::InShape
    } else if inside.iter().any(|&number| !is_clearly_above(number)) {
        Verdict::CannotBeTold
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

/// Judges whether the best value of a parameter is below `limit`, or need not be above it.
pub fn tuned_below(look: &Look, of: &Term, limit: f64, core: Option<[f64; 2]>) -> Given {
    let published = look.observations.published;
    let curve = published.curve(&of.curve).ok_or_else(|| format!("there is no curve {}", of.curve))?;
    let mut verdict = Verdict::Reproduced;
    let mut said = Vec::new();
    for x in look.observations.xs().iter().filter(|x| is_within(x.value, core)) {
        let choices = look.observations.choices(look.panel, curve, x);
        let by_mean = |a: &&Choice, b: &&Choice| mean(&a.values).total_cmp(&mean(&b.values));
        let best = choices.iter().max_by(by_mean);
        let small = choices.iter().filter(|choice| choice.value < limit).max_by(by_mean);
        let large = choices.iter().filter(|choice| choice.value >= limit).max_by(by_mean);
        let (Some(best), Some(small)) = (best, small) else { continue };
        said.push(format!("{} at {}", best.text, x.text));
        let Some(large) = large else { continue };
        let lost = Comparison::of_independent(&large.values, &small.values)
            .ok_or_else(|| format!("fewer than two runs of {}{}", look.told(of), look.at(x)))?;
        verdict = verdict.max(if lost.high < 0.0 {
            Verdict::Reproduced
        } else if lost.high < NO_DIFFERENCE_PCT {
            Verdict::InShape
        } else if lost.low > 0.0 {
            Verdict::Differs
        } else {
            Verdict::CannotBeTold
        });
    }
    if said.is_empty() {
        Err("there are no runs".to_owned())
    } else {
        Ok((verdict, format!("best: {}", said.join(", "))))
    }
}
