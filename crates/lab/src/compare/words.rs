//! Comparisons in words: one sentence for each metric, and cells of tables.

use super::{Counts, LEAST, Line, Side, disagreeing, lacks_more_paths, metric, over};

/// The mean of the first side in words.
pub fn mean(line: &Line) -> String {
    let Some(metric) = metric(line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let value = scale * line.a;
    if value.is_infinite() {
        return format!("{} none", metric.noun);
    }
    let digits = digits(value.abs().max(1e-9));
    format!("{} {value:.digits$} {unit}", metric.noun).trim_end().to_owned()
}

/// Distance between the two, with the interval: "12.3 ± 4.0 kbit/s"; none where there is no interval.
pub fn amount(line: &Line) -> Option<String> {
    let metric = metric(line.metric)?;
    let [low, high] = line.interval?;
    let (unit, scale) = metric.unit;
    let digits = digits_of(line, scale);
    let (size, half) = (scale * line.difference.abs(), scale * (high - low) / 2.0);
    Some(format!("{size:.digits$} ± {half:.digits$} {}", of_difference(unit)).trim_end().to_owned())
}

/// The second less the first, for a column of a table whose head has the unit: "+12.3 ± 4.0". What is said where a side has none: `none`, for both, for
/// the first and for the second.
pub fn cell(line: &Line, none: [&str; 3]) -> String {
    match line.counts.map(|of| of.none > 0) {
        [true, true] => return none[0].to_owned(),
        [true, false] => return none[1].to_owned(),
        [false, true] => return none[2].to_owned(),
        [false, false] => {}
    }
    let scale = metric(line.metric).map_or(1.0, |metric| metric.unit.1);
    let digits = if scale * line.a.abs() < 10.0 { 3 } else { 1 };
    let difference = scale * line.difference;
    match line.interval {
        Some([low, high]) => format!("{difference:+.digits$} ± {:.digits$}", scale * (high - low) / 2.0),
        None => format!("{difference:+.digits$}, too few seeds"),
    }
}

/// A line in plain words: which of `names` is better, both values, their difference with its interval, and what has to be known beside.
pub fn words(line: &Line, names: [&str; 2]) -> String {
    let beside = [over(line).map(|over| format!("mean over {over}")), both_starve(line, names)];
    beside.into_iter().flatten().fold(sentence(line, names), |text, more| format!("{text}; {more}"))
}

/// The sentences of a pair.
#[derive(Debug)]
pub struct Sentences {
    /// What is true of several lines, said once.
    pub shared: Vec<String>,
    /// A sentence for each line that is shown; true with it if a side is better.
    pub lines: Vec<(String, bool)>,
}

impl Sentences {
    /// Of the lines of a pair that are shown.
    pub fn of(lines: &[Line], names: [&str; 2]) -> Sentences {
        let shown: Vec<&Line> = lines.iter().filter(|line| line.is_shown).collect();
        let over_all = same_in_all(shown.iter().map(|line| over(line)));
        let starve = same_in_all(shown.iter().map(|line| both_starve(line, names)).filter(Option::is_some));
        let told = |line: &&Line| {
            let mut text = sentence(line, names);
            if let Some(over) = over(line).filter(|_| over_all.is_none()) {
                text += &format!("; mean over {over}");
            }
            if let Some(both) = both_starve(line, names).filter(|_| starve.is_none()) {
                text += &format!("; {both}");
            }
            (text, line.better_in_family.is_some())
        };
        let lines = shown.iter().map(told).collect();
        let capital = |text: String| text[..1].to_uppercase() + &text[1..] + ".";
        let over_all = over_all.map(|over| format!("Values are means over {over}."));
        Sentences { shared: over_all.into_iter().chain(starve.map(capital)).collect(), lines }
    }
}

/// The text that all have; none if they differ, or if there are fewer than two.
fn same_in_all(mut texts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let first = texts.next()??;
    let mut others = texts.peekable();
    others.peek()?;
    others.all(|text| text.as_ref() == Some(&first)).then_some(first)
}

/// The sentence of a line alone.
fn sentence(line: &Line, names: [&str; 2]) -> String {
    let Some(metric) = metric(line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let digits = digits_of(line, scale);
    let number = |value: f64| {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{:.digits$}{unit}", scale * value)
    };
    let sides = [(line.a, line.counts[0]), (line.b, line.counts[1])].map(|(value, counts)| match counts {
        Counts { none, runs, .. } if none > 0 => format!("none (a flow was starved in {none} of {runs} runs)"),
        Counts { missing, runs, .. } if missing > 0 => {
            format!("{} (measured in {} of {runs} runs)", number(value), runs - missing)
        }
        _ => number(value),
    });
    let both = format!("{} for {}, {} for {}", sides[0], names[0], sides[1], names[1]);
    let (noun, does) = (metric.noun, metric.ahead);
    let against = |side: Side| {
        let (winner, other) = (side as usize, 1 - side as usize);
        format!("{} {does}: {} against {}", names[winner], sides[winner], sides[other])
    };
    let text = match (line.ahead_in_family(), line.better_in_family, amount(line)) {
        (_, _, None) if line.seeds < LEAST => {
            let runs = if line.seeds == 1 { "1 run".to_owned() } else { format!("{} runs", line.seeds) };
            format!("{noun}: {both}; {runs} are too few to estimate the difference; use --seeds {LEAST} or more")
        }
        (Some(_), Some(side), None) => against(side),
        (_, _, None) => format!("{noun}: {both}{}", chance(line)),
        (_, _, Some(by)) if metric.is_fact => format!("{noun}: {both} (difference {by})"),
        (None, _, Some(by)) => {
            format!("no clear difference in {noun}: {both} (difference {by}{})", chance(line))
        }
        (Some(side), None, Some(by)) => {
            let why = unfair(line, side, names);
            format!("no side is called better in {noun}, because {why}: {both} (difference {by})")
        }
        (Some(_), Some(side), Some(by)) => {
            let wins = if side == Side::A { line.seeds - line.b_wins } else { line.b_wins };
            let seeds = if line.paired { format!(", in {wins} of {} seeds", line.seeds) } else { String::new() };
            format!("{} (difference {by}{seeds})", against(side))
        }
    };
    match disagreeing(line) {
        Some([a, b]) => {
            format!(
                "which of the two {does} depends on the point: {} at {a}, {} at {b}; {noun}: {both}",
                names[0], names[1]
            )
        }
        None => text,
    }
}

/// The reason why a side that is ahead is not called better.
fn unfair(line: &Line, side: Side, names: [&str; 2]) -> String {
    let Counts { runs, starved_runs, without_path, .. } = line.counts[side as usize];
    let name = names[side as usize];
    if line.counts.iter().any(|counts| counts.missing > 0) {
        return "it was not measured in all runs".to_owned();
    }
    match lacks_more_paths(line.counts, side) {
        true => format!("a flow of {name} has no path in {without_path} of {runs} runs"),
        false => format!("{name} starves a flow in {starved_runs} of {runs} runs"),
    }
}

/// The p-values of a side that is ahead by this metric alone and not after the correction for all metrics; nothing otherwise.
fn chance(line: &Line) -> String {
    match (line.ahead(), line.ahead_in_family(), line.p, line.p_holm) {
        (Some(_), None, Some(p), Some(corrected)) => {
            format!("; p = {p:.3}, corrected for all metrics {corrected:.2}")
        }
        _ => String::new(),
    }
}

/// The fact that both sides starve flows, beside a metric of something else; none if one of them does not, or if a delay says it.
fn both_starve(line: &Line, names: [&str; 2]) -> Option<String> {
    let is_of_silence = metric(line.metric).is_some_and(|metric| metric.is_of_silence);
    if is_of_silence || line.counts.iter().any(|counts| counts.starved_runs == 0 || counts.none > 0) {
        return None;
    }
    let in_runs = |side: usize| {
        let counts = line.counts[side];
        format!("{} in {} of {} runs", names[side], counts.starved_runs, counts.runs)
    };
    Some(format!("both starve a flow: {}, {}", in_runs(0), in_runs(1)))
}

/// Unit of a difference of two values in `unit`.
fn of_difference(unit: &str) -> &str {
    if unit == "%" { "percentage points" } else { unit }
}

/// Digits behind the point for the numbers of a line: three significant ones of its difference, or of the half width of its interval if that is larger;
/// of the larger value five at most.
fn digits_of(line: &Line, scale: f64) -> usize {
    let size = if line.difference.is_finite() { line.difference.abs() } else { line.a.min(line.b) };
    let half = line.interval.map_or(0.0, |[low, high]| (high - low) / 2.0);
    let values = [line.a, line.b].into_iter().filter(|value| value.is_finite()).map(f64::abs).fold(0.0, f64::max);
    let [of_size, of_values] = [size.max(half), values].map(|value| digits(scale * value.clamp(1e-9, 1e9)));
    of_size.min(of_values + 2)
}

/// Digits behind the point with which a number has three that mean something.
fn digits(value: f64) -> usize {
    (2 - value.log10().floor() as i32).clamp(0, 4) as usize
}
