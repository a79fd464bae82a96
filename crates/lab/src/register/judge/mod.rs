//! Verdicts: published claims compared with our records. The rules of each kind of check are in the
//! table "Claims" of `docs/register.md`; each function here implements one row of it.
//!
//! Observations are independent runs or batches. Confidence intervals of single quantities have the
//! experiment's level; those of gains have 95 % ([`Gain`](super::Gain)).

mod cells;
mod compare;
mod levels;
mod relations;
mod said;
mod shapes;
#[cfg(test)]
mod tests;
mod trend;

pub use cells::{Cell, cells};
pub(super) use compare::{Comparison, pairs, percent, told};

use super::data::{Check, Claim, Term};
use super::observations::{Observations, Sample};

/// Verdict on a statement, the most favourable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The numbers agree.
    Reproduced,
    /// The direction agrees, but the numbers do not.
    InShape,
    /// Our intervals allow both answers. More seeds are needed.
    CannotBeTold,
    /// Neither the numbers nor the direction agree.
    Differs,
    /// There are no data to judge by.
    CannotBeJudged,
}

impl Verdict {
    /// All verdicts, in the order in which reports list them.
    pub const ALL: [Verdict; 5] =
        [Verdict::Reproduced, Verdict::InShape, Verdict::Differs, Verdict::CannotBeTold, Verdict::CannotBeJudged];

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::InShape => "reproduced in shape",
            Verdict::Differs => "differs",
            Verdict::CannotBeTold => "cannot be told",
            Verdict::CannotBeJudged => "cannot be judged",
        }
    }
}

/// Verdict with the numbers that decided it.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Numbers that decided, in words.
    pub evidence: String,
}

/// Judgements of one claim: in the reading that counts in the totals, in other readings of the
/// paper's text (other curves), and in the other panels of the figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Judgement that counts in the totals. The others are shown beside it.
    pub own: Judgement,
    /// Judgements in other readings of the paper's text that were run. A reading of the claim's
    /// curve has the name of the other curve; a reading of the whole experiment has its title.
    pub readings: Vec<(String, Judgement)>,
    /// Judgements in the other panels, by the number of the panel.
    pub panels: Vec<(usize, Judgement)>,
}

/// Judges a claim.
pub fn judge(claim: &Claim, observations: &Observations) -> Judged {
    let panels = &observations.published.panels;
    let counts = counting(claim, observations);
    let others = (0..panels.len().max(1)).filter(|panel| *panel != counts);
    let also = claim.also.iter().map(|curve| (curve.clone(), claim.check.about(curve)));
    let beside = observations.published.beside.iter();
    let beside = beside.filter_map(|whole| Some((whole.title.clone(), claim.check.with(&whole.curves)?)));
    let was_run = |read: &Check| read.terms().into_iter().all(|term| observations.has_runs(&term.curve));
    let readings = also.chain(beside).filter(|(_, read)| was_run(read));
    Judged {
        own: check(&claim.check, counts, observations),
        readings: readings.map(|(title, read)| (title, check(&read, counts, observations))).collect(),
        panels: others.map(|panel| (panel, check(&claim.check, panel, observations))).collect(),
    }
}

/// Measured number that is compared with a published one.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// Lower end of its confidence interval.
    pub low: f64,
    /// Upper end of its confidence interval.
    pub high: f64,
    /// Unit of the three numbers.
    pub unit: String,
    /// Position on the axis, such as " at 7 hops"; empty without an axis.
    pub at: String,
}

/// Number that decides a claim. `None` if no single number decides it.
pub fn measured(claim: &Claim, observations: &Observations) -> Option<Measured> {
    let look = Look { observations, panel: counting(claim, observations) };
    let found = match &claim.check {
        Check::Gain { of, over, at, core, .. } => relations::decisive_gain(&look, of, over, *at, *core)?,
        Check::Value { of, .. } => levels::one_value(&look, of)?,
        _ => return None,
    };
    [found.value, found.low, found.high].iter().all(|number| number.is_finite()).then_some(found)
}

/// Verdicts on an experiment: one for each of its claims, then one for each published number.
pub fn all(observations: &Observations) -> Vec<Verdict> {
    let claims = observations.published.claims.iter().map(|claim| judge(claim, observations).own.verdict);
    let numbers = cells(observations, 0).into_iter().filter(|cell| cell.counts).map(|cell| cell.verdict);
    claims.chain(numbers).collect()
}

/// Points that need more seeds, because intervals there allow both answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Untold {
    /// Number of the panel.
    pub panel: usize,
    /// Id of the curve.
    pub curve: String,
    /// The x. `None` means every x.
    pub x: Option<f64>,
}

/// Points of an experiment that need more seeds, because a claim or a number cannot be told yet.
pub fn untold(observations: &Observations) -> Vec<Untold> {
    let published = observations.published;
    let mut found = Vec::new();
    for claim in &published.claims {
        let panel = counting(claim, observations);
        if check(&claim.check, panel, observations).verdict == Verdict::CannotBeTold {
            let terms = claim.check.terms().into_iter();
            found.extend(terms.map(|term| Untold { panel, curve: term.curve.clone(), x: term.x }));
        }
    }
    let open = |cell: &Cell| cell.counts && cell.verdict == Verdict::CannotBeTold;
    for cell in cells(observations, 0).into_iter().filter(open) {
        // The cell's own point needs more seeds, and so do the points of all curves with a
        // published value of this metric. Published numbers may be ratios to them.
        let rows = published.published.iter().filter(|(_, row)| row.contains_key(&cell.metric));
        found.extend(rows.map(|(curve, _)| Untold { panel: 0, curve: curve.clone(), x: Some(cell.x.value) }));
    }
    found
}

/// Panel in which a claim counts.
fn counting(claim: &Claim, observations: &Observations) -> usize {
    let panels = &observations.published.panels;
    claim.panel.as_ref().and_then(|id| panels.iter().position(|panel| panel.id == *id)).unwrap_or(0)
}

/// A verdict with its evidence, or the reason why there is none.
type Given = Result<(Verdict, String), String>;

fn check(check: &Check, panel: usize, observations: &Observations) -> Judgement {
    let look = Look { observations, panel };
    let given = match check {
        Check::NotJudged { why } => Err(why.clone()),
        Check::Gain { of, over, at, published_pct, tolerance_pct, core } => {
            relations::gain(&look, of, over, *at, published_pct.ends(), *tolerance_pct, *core)
        }
        Check::BestGain { of, over, smaller, published_pct } => {
            levels::best_gain(&look, of, over, *smaller, *published_pct)
        }
        Check::Above { of, over, by_pct, core } => relations::above(&look, of, over, *by_pct, *core),
        Check::Order { of, core } => relations::order(&look, of, *core),
        Check::AboveBeyond { of, over, beyond } => relations::above_beyond(&look, of, over, *beyond),
        Check::Same { of, over, within_pct, core } => relations::same(&look, of, over, *within_pct, *core),
        Check::Level { of, is, core } => levels::level(&look, of, *is, *core),
        Check::Value { of, published, tolerance_pct } => levels::value(&look, of, *published, *tolerance_pct),
        Check::Falls { of, tolerance_pct, core } => shapes::monotone(&look, of, -1.0, *tolerance_pct, *core),
        Check::Rises { of, tolerance_pct, core } => shapes::monotone(&look, of, 1.0, *tolerance_pct, *core),
        Check::Flat { of, within_pct, core } => shapes::flat(&look, of, *within_pct, *core),
        Check::Peak { of, over, x } => shapes::peak(&look, of, over.as_ref(), x.ends()),
        Check::TunedBelow { of, limit, core } => shapes::tuned_below(&look, of, *limit, *core),
    };
    let (verdict, mut evidence) = given.unwrap_or_else(|why| (Verdict::CannotBeJudged, why));
    if verdict == Verdict::CannotBeTold
        && let Some(seeds) = look.seeds(check)
    {
        evidence.push_str(&format!("; {seeds} {} do not tell", if seeds == 1 { "seed" } else { "seeds" }));
    }
    Judgement { verdict, evidence: capital(&evidence) }
}

/// Data that a check examines: the observations in one panel.
struct Look<'a> {
    observations: &'a Observations<'a>,
    panel: usize,
}

impl Look<'_> {
    fn sample(&self, term: &Term) -> Result<Vec<Sample>, String> {
        self.observations.sample(self.panel, term)
    }

    /// Samples within a range of x.
    fn within(&self, term: &Term, core: Option<[f64; 2]>) -> Result<Vec<Sample>, String> {
        let mut samples = self.sample(term)?;
        samples.retain(|sample| is_within(sample.x.value, core));
        if samples.is_empty() { Err("there are no runs in the range that is judged".to_owned()) } else { Ok(samples) }
    }

    /// Smallest number of seeds with which a point of `check` was run.
    fn seeds(&self, check: &Check) -> Option<usize> {
        check.terms().into_iter().filter_map(|term| self.observations.seeds(self.panel, term)).min()
    }

    fn told(&self, term: &Term) -> String {
        self.observations.told(term)
    }

    fn level(&self) -> f64 {
        self.observations.published.level
    }

    fn at(&self, x: &super::select::X) -> String {
        self.observations.at(x)
    }
}

fn is_within(x: f64, core: Option<[f64; 2]>) -> bool {
    core.is_none_or(|[first, last]| (first..=last).contains(&x))
}

/// Joins verdicts: the least favourable one decides. An error if there are none.
fn together(parts: Vec<(Verdict, String)>) -> Given {
    let worst = parts.iter().map(|(verdict, _)| *verdict).max().ok_or("there is nothing to compare")?;
    Ok((worst, parts.into_iter().map(|(_, evidence)| capital(&evidence)).collect::<Vec<_>>().join(". ")))
}

/// Capitalizes the first letter of a sentence.
fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
