//! `--robust`: repeats the comparison under other models, after estimating the cost.

use super::sides::{Machine, Sides, parted};
use super::{Arguments, Progress, When, pairs};
use crate::REFUSED;
use crate::output::{Failure, note};
use meshpace_lab::campaign::Work;
use meshpace_lab::robust::{Asked, Choice, FRAMES, Robust, Trial, choices, count, frames};

/// Tests whether the comparison holds under other models, if the arguments ask for that.
pub fn ask(machine: &Machine<'_>, sides: &Sides) -> Result<Asked, Failure> {
    let Arguments { robust, report, .. } = machine.arguments;
    let by_itself = *robust == When::Auto;
    if *robust == When::Never || by_itself && report.is_none() {
        return Ok(Asked::No);
    }
    if sides.scenarios.is_empty() {
        let message =
            "--robust: existing records cannot be repeated under another model; compare the scenario files instead";
        return if by_itself { Ok(Asked::No) } else { Err((REFUSED, message.to_owned())) };
    }
    let choices = choices(&sides.scenarios);
    let models = choices.iter().filter(|choice| choice.scenarios.is_ok()).count();
    let once: u64 = sides.sides.iter().map(|side| frames(&side.runs)).sum();
    let all = once * models as u64;
    if by_itself && all > FRAMES {
        return Ok(Asked::TooMuch { models, frames: all });
    }
    let mut work = Work::default();
    choices
        .iter()
        .filter_map(|choice| choice.scenarios.as_ref().ok())
        .for_each(|scenarios| work += machine.work(scenarios));
    note(&format!(
        "--robust: {models} other models with {} runs and about {} frames; each model needs as many frames as the comparison itself",
        work.runs,
        count(all)
    ));
    let progress = Progress::new(work);
    let found = trials(machine, sides, choices, &progress);
    progress.finish();
    found.map(Asked::Answered)
}

/// Compares every pair under every model.
fn trials(
    machine: &Machine<'_>,
    sides: &Sides,
    choices: Vec<Choice>,
    progress: &Progress,
) -> Result<Vec<Robust>, Failure> {
    let trial = |model: &str, lines| Trial { model: model.to_owned(), lines };
    let written = pairs(&sides.sides)?.into_iter().map(|lines| trial("as written", lines));
    let mut found: Vec<Robust> =
        written.map(|written| Robust { written, others: Vec::new(), not_applicable: Vec::new() }).collect();
    let names: Vec<&str> = sides.sides.iter().map(|side| side.name.as_str()).collect();
    for choice in choices {
        match choice.scenarios {
            Err(why) => {
                found.iter_mut().for_each(|robust| robust.not_applicable.push((choice.name.clone(), why.clone())))
            }
            Ok(scenarios) => {
                let runs = machine.run(&scenarios, &sides.files, progress)?;
                let compared = pairs(&parted(runs, sides.axis.as_deref(), &names))?;
                for (robust, lines) in found.iter_mut().zip(compared) {
                    robust.others.push(trial(&choice.name, lines));
                }
            }
        }
    }
    Ok(found)
}
