//! Checks of one curve against another.

use super::compare::{Comparison, pairs, told};
use super::said::{self, NO_DIFFERENCE_PCT, Said};
use super::{Given, Look, Measured, Verdict, is_within, together};
use crate::register::data::{At, Term};
use crate::register::select::X;

/// Comparison of two terms at every x.
fn compared(look: &Look, of: &Term, over: &Term) -> Result<Vec<(X, Comparison)>, String> {
    let pairs = pairs(look.sample(of)?, look.sample(over)?, (of.x.is_some(), over.x.is_some()));
    if pairs.is_empty() {
        return Err(format!("{} and {} have no runs at the same x", look.told(of), look.told(over)));
    }
    let compare = |(one, other): (crate::register::observations::Sample, crate::register::observations::Sample)| {
        let comparison = Comparison::of(&one, &other);
        let why = || format!("fewer than two runs of {} or {}{}", look.told(of), look.told(over), look.at(&one.x));
        comparison.map(|comparison| (one.x.clone(), comparison)).ok_or_else(why)
    };
    pairs.into_iter().map(compare).collect()
}

fn at(look: &Look, (x, comparison): &(X, Comparison)) -> String {
    format!("{}{}", told(comparison), look.at(x))
}

fn least(all: &[(X, Comparison)]) -> Option<&(X, Comparison)> {
    all.iter().min_by(|a, b| a.1.pct.total_cmp(&b.1.pct))
}

fn most(all: &[(X, Comparison)]) -> Option<&(X, Comparison)> {
    all.iter().max_by(|a, b| a.1.pct.total_cmp(&b.1.pct))
}

/// Gain at the x that decides. `None` if every x decides.
pub fn decisive_gain(look: &Look, of: &Term, over: &Term, place: At, core: Option<[f64; 2]>) -> Option<Measured> {
    let mut all = compared(look, of, over).ok()?;
    all.retain(|(x, _)| is_within(x.value, core));
    let (x, gain) = match place {
        At::Largest => most(&all)?,
        At::Smallest => least(&all)?,
        At::Every => return None,
    };
    Some(Measured { value: gain.pct, low: gain.low, high: gain.high, unit: "%".to_owned(), at: look.at(x) })
}

/// Judges the gain of `of` over `over`.
pub fn gain(
    look: &Look,
    of: &Term,
    over: &Term,
    place: At,
    published: [f64; 2],
    tolerance: f64,
    core: Option<[f64; 2]>,
) -> Given {
    let mut all = compared(look, of, over)?;
    all.retain(|(x, _)| is_within(x.value, core));
    let (Some(smallest), Some(largest)) = (least(&all), most(&all)) else {
        return Err("there are no runs in the range that is judged".to_owned());
    };
    let [low, high] = published;
    // `weak` and `strong` are the ends of the published range as distances from zero, on the
    // published side.
    let (sign, weak, strong) = if high <= 0.0 && low < 0.0 { (-1.0, -high, -low) } else { (1.0, low, high) };
    // A published gain of about zero requires neither side of zero.
    let none = NO_DIFFERENCE_PCT.min(weak / 2.0).max(0.0);
    let on_its_side = |gain: &Comparison| match weak > 0.0 {
        true => Said::on_side(signed(gain, sign), 0.0, none),
        false => Said::Holds,
    };
    let of_the_size = |gain: &Comparison| Said::within(signed(gain, sign), [weak / 2.0, strong * 2.0]);
    let published_told = if low == high { format!("{low:+} %") } else { format!("{low:+} % to {high:+} %") };
    if place == At::Every {
        let mut sorted: Vec<&Comparison> = all.iter().map(|(_, gain)| gain).collect();
        sorted.sort_by(|a, b| a.pct.total_cmp(&b.pct));
        let middle = of_the_size(sorted[sorted.len() / 2]);
        let sides = said::all(all.iter().map(|(_, gain)| on_its_side(gain)));
        let is_near = all.iter().all(|(_, gain)| (low - tolerance..=high + tolerance).contains(&gain.pct));
        let verdict = match is_near {
            true => sides.verdict(Verdict::Reproduced),
            false => sides.max(middle).verdict(Verdict::InShape),
        };
        return Ok((
            verdict,
            format!("from {} to {}; published {published_told}", at(look, smallest), at(look, largest)),
        ));
    }
    let chosen = if place == At::Largest { largest } else { smallest };
    let gain = &chosen.1;
    let is_near = (low - tolerance..=high + tolerance).contains(&gain.pct);
    let holds = gain.low <= high && low <= gain.high;
    // An interval that contains nearly everything shows nothing.
    let width = gain.high - gain.low;
    let is_narrow = width <= strong || is_near && width <= 2.0 * tolerance;
    let verdict = match on_its_side(gain) {
        Said::Holds if (is_near || holds) && is_narrow => Verdict::Reproduced,
        Said::Holds if is_near || holds => Verdict::CannotBeTold,
        side => side.max(of_the_size(gain)).verdict(Verdict::InShape),
    };
    let which = match place {
        _ if all.len() == 1 => "",
        At::Largest => "largest: ",
        _ => "smallest: ",
    };
    Ok((verdict, format!("{which}{}; published {published_told}", at(look, chosen))))
}

/// Ends of a gain's interval, seen from the published side of zero.
fn signed(gain: &Comparison, sign: f64) -> [f64; 2] {
    if sign > 0.0 { [gain.low, gain.high] } else { [-gain.high, -gain.low] }
}

/// Judges whether each term of `of` is above each term of `over`.
pub fn above(look: &Look, of: &[Term], over: &[Term], by_pct: f64, core: Option<[f64; 2]>) -> Given {
    let mut parts = Vec::new();
    for one in of {
        for other in over {
            parts.push(pair_above(look, one, other, by_pct, core)?);
        }
    }
    together(parts)
}

/// Judges whether each term is above the next one.
pub fn order(look: &Look, of: &[Term], core: Option<[f64; 2]>) -> Given {
    together(of.windows(2).map(|pair| pair_above(look, &pair[0], &pair[1], 0.0, core)).collect::<Result<_, _>>()?)
}

fn pair_above(
    look: &Look,
    of: &Term,
    over: &Term,
    by_pct: f64,
    core: Option<[f64; 2]>,
) -> Result<(Verdict, String), String> {
    let all = compared(look, of, over)?;
    let said = |gain: &Comparison| Said::above(gain, by_pct);
    let names = format!("{} over {}", look.told(of), look.told(over));
    let failing: Vec<_> = all.iter().filter(|(_, gain)| said(gain) != Said::Holds).cloned().collect();
    let Some(lowest) = least(&failing) else {
        let least = least(&all).map(|least| at(look, least)).unwrap_or_default();
        let which = if all.len() > 1 { "at least " } else { "" };
        return Ok((Verdict::Reproduced, format!("{names}: {which}{least}")));
    };
    let not = if all.len() > 1 {
        let places: Vec<&str> = failing.iter().map(|(x, _)| x.text.as_str()).collect();
        format!("not clearly at {}, lowest {}", places.join(", "), at(look, lowest))
    } else {
        at(look, lowest)
    };
    let mut inner: Vec<_> = all.iter().filter(|(x, _)| is_within(x.value, core)).cloned().collect();
    if inner.is_empty() {
        inner.clone_from(&all);
    }
    let verdict = said::all(inner.iter().map(|(_, gain)| said(gain))).verdict(Verdict::InShape);
    if verdict == Verdict::InShape {
        let least = least(&inner).map(|least| at(look, least)).unwrap_or_default();
        return Ok((verdict, format!("{names}: in the range that counts at least {least}; {not}")));
    }
    Ok((verdict, format!("{names}: {not}")))
}

/// Judges whether `of` is above `over` beyond the x where the curves cross.
pub fn above_beyond(look: &Look, of: &Term, over: &Term, beyond: f64) -> Given {
    let all = compared(look, of, over)?;
    let is_above = |gain: &Comparison| gain.low > 0.0;
    let (near, far): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(x, _)| x.value <= beyond);
    let Some(lowest) = least(&far) else { return Err(format!("there are no runs beyond {beyond}")) };
    // The last x at which `of` is not above.
    let last = all.iter().rposition(|(_, gain)| !is_above(gain));
    let crossing = match last {
        None => "above everywhere".to_owned(),
        Some(last) if last + 1 == all.len() => "not above at the last".to_owned(),
        Some(last) => format!("above from {} on", all[last + 1].0.text),
    };
    let before = near.last().map_or(String::new(), |last| format!(", {}", at(look, last)));
    let evidence = format!("{}; {crossing}{before}", at(look, lowest));
    // The published crossing is right after the last x that is not beyond. A crossing one x earlier
    // also counts as close.
    let is_close = last.is_some_and(|last| last + 1 == near.len() || last + 2 == near.len());
    let holds = if is_close { Verdict::Reproduced } else { Verdict::InShape };
    Ok((said::all(far.iter().map(|(_, gain)| Said::above(gain, 0.0))).verdict(holds), evidence))
}

/// Judges whether two terms are the same within a margin.
pub fn same(look: &Look, of: &Term, over: &Term, within: f64, core: Option<[f64; 2]>) -> Given {
    let all = compared(look, of, over)?;
    let farthest =
        all.iter().filter(|(x, _)| is_within(x.value, core)).max_by(|a, b| a.1.pct.abs().total_cmp(&b.1.pct.abs()));
    let Some(farthest) = farthest else { return Err("there are no runs in the range that is judged".to_owned()) };
    let said = |gain: &Comparison, within: f64| Said::within([gain.low, gain.high], [-within, within]);
    let inner = || all.iter().filter(|(x, _)| is_within(x.value, core)).map(|(_, gain)| gain);
    let verdict = if all.iter().all(|(_, gain)| said(gain, within) == Said::Holds) {
        Verdict::Reproduced
    } else if inner().all(|gain| gain.pct.abs() <= within && said(gain, 2.0 * within) == Said::Holds) {
        Verdict::InShape
    } else {
        // A comparison that holds with the margin, or with twice the margin, is at best in shape
        // here.
        said::all(inner().map(|gain| said(gain, within)).chain([Said::Open])).verdict(Verdict::InShape)
    };
    let names = format!("{} against {}", look.told(of), look.told(over));
    Ok((verdict, format!("{names}: {}; the margin is {within} %", at(look, farthest))))
}
