//! Verdicts: a published statement held against our records.
//!
//! | Check | reproduced | reproduced in shape | differs |
//! |---|---|---|---|
//! | largest gain | the largest gain is within the tolerance of the published one, or its 95 % interval holds that and is no wider than the published gain (an interval that holds everything shows nothing) | the interval is above zero, and the gain between half and twice the published one | otherwise |
//! | above | at every hop count the 95 % interval of the gain is above zero | so it is at every hop count of the core range | otherwise |
//! | above beyond | beyond the hop count the 95 % interval of the gain is above zero, at it and at the one before it is not | beyond it so it is, but the curves cross elsewhere | otherwise |
//! | best | as "above", over each of the others: the least favourable verdict counts | the same | the same |
//! | gain between | in the core range every gain lies between the published ones, the tolerance added at both ends | every 95 % interval is on the published side of zero, and the middle (median) of the gains lies between half the smaller and twice the larger published gain | otherwise |
//! | tuned below | in the core range the best value of the parameter is below the limit | where it is not, the best value below the limit gives no less goodput than the best of all (the 95 % interval of their ratio holds one) | otherwise |
//! | falls | goodput falls from every hop count to the next, the 95 % interval of the change being below zero | no change is above zero by more than the tolerance with an interval above zero, and the last is below the first | otherwise |
//!
//! A verdict cannot be given where a hop count has fewer than two runs. Intervals are those of [`Gain`].

use super::{Check, Gain, Results};

/// How a statement fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The numbers agree.
    Reproduced,
    /// The direction agrees, the numbers do not.
    InShape,
    /// Neither.
    Differs,
    /// There is nothing to judge by.
    CannotBeJudged,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::InShape => "reproduced in shape",
            Verdict::Differs => "differs",
            Verdict::CannotBeJudged => "cannot be judged",
        }
    }
}

/// A verdict with the numbers that decided it.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers.
    pub evidence: String,
}

/// Judges `check` for the transport `subject` in panel number `panel`.
pub fn judge(check: &Check, subject: &str, panel: usize, results: &Results) -> Judgement {
    let judged = match check {
        Check::NotJudged { why } => Err(why.clone()),
        Check::LargestGain { over, published_pct, tolerance_pct, .. } => {
            gains(results, panel, subject, over).map(|gains| largest_gain(&gains, *published_pct, *tolerance_pct))
        }
        Check::Above { over, core, .. } => {
            gains(results, panel, subject, over).map(|gains| above(&gains, core[0], core[1]))
        }
        Check::AboveBeyond { over, beyond, .. } => {
            gains(results, panel, subject, over).and_then(|gains| above_beyond(&gains, *beyond))
        }
        Check::Best { over, core, .. } => best(results, panel, subject, over, core),
        Check::GainBetween { over, published_pct, tolerance_pct, core, .. } => gains(results, panel, subject, over)
            .and_then(|gains| gain_between(&gains, *published_pct, *tolerance_pct, core)),
        Check::TunedBelow { limit, core, .. } => tuned_below(results, panel, subject, *limit, core),
        Check::Falls { tolerance_pct, .. } => {
            steps(results, panel, subject).and_then(|(steps, whole)| falls(&steps, &whole, *tolerance_pct))
        }
    };
    let (verdict, evidence) = judged.unwrap_or_else(|why| (Verdict::CannotBeJudged, why));
    Judgement { verdict, evidence }
}

type Judged = (Verdict, String);

/// The gain of `subject` over `over` at every hop count.
fn gains(results: &Results, panel: usize, subject: &str, over: &str) -> Result<Vec<(u64, Gain)>, String> {
    let gain = |hops: u64| {
        Gain::of(results.goodputs(panel, subject, hops), results.goodputs(panel, over, hops))
            .map(|gain| (hops, gain))
            .ok_or_else(|| format!("fewer than two runs of {subject} or {over}, or no goodput at all, at {hops} hops"))
    };
    let gains: Vec<_> = results.hops().into_iter().map(gain).collect::<Result<_, _>>()?;
    if gains.is_empty() { Err("there are no runs".to_owned()) } else { Ok(gains) }
}

/// "+101 % (+85 to +119) at 7 hops"
fn told(hops: u64, gain: &Gain) -> String {
    let (low, high) = gain.interval_pct();
    format!("{:+.1} % ({low:+.1} to {high:+.1}) at {hops} {}", gain.pct(), if hops == 1 { "hop" } else { "hops" })
}

fn largest_gain(gains: &[(u64, Gain)], published: f64, tolerance: f64) -> Judged {
    let (hops, best) = gains.iter().fold(&gains[0], |best, next| if next.1.pct() > best.1.pct() { next } else { best });
    let (low, high) = best.interval_pct();
    let held = (low..=high).contains(&published) && high - low <= published;
    let near = (best.pct() - published).abs() <= tolerance || held;
    let verdict = if near {
        Verdict::Reproduced
    } else if low > 0.0 && (published / 2.0..=published * 2.0).contains(&best.pct()) {
        Verdict::InShape
    } else {
        Verdict::Differs
    };
    (verdict, format!("Largest gain {}; published +{published} %", told(*hops, best)))
}

fn above(gains: &[(u64, Gain)], first: u64, last: u64) -> Judged {
    let is_above = |gain: &Gain| gain.interval_pct().0 > 0.0;
    let failing: Vec<&(u64, Gain)> = gains.iter().filter(|(_, gain)| !is_above(gain)).collect();
    let core: Vec<_> = gains.iter().filter(|(hops, _)| (first..=last).contains(hops)).collect();
    let smallest = |gains: &mut dyn Iterator<Item = &(u64, Gain)>| {
        gains.min_by(|a, b| a.1.pct().total_cmp(&b.1.pct())).map(|(hops, gain)| told(*hops, gain)).unwrap_or_default()
    };
    if failing.is_empty() {
        return (Verdict::Reproduced, format!("Smallest gain {}", smallest(&mut gains.iter())));
    }
    let at: Vec<String> = failing.iter().map(|(hops, _)| hops.to_string()).collect();
    let not_above = format!("not above at {} hops, lowest {}", at.join(", "), smallest(&mut failing.iter().copied()));
    if !core.is_empty() && core.iter().all(|(_, gain)| is_above(gain)) {
        let evidence =
            format!("Above from {first} hops on, smallest gain {}; {not_above}", smallest(&mut core.into_iter()),);
        return (Verdict::InShape, evidence);
    }
    let mut evidence = not_above;
    evidence.replace_range(..1, "N");
    (Verdict::Differs, evidence)
}

fn above_beyond(gains: &[(u64, Gain)], beyond: u64) -> Result<Judged, String> {
    let is_above = |gain: &Gain| gain.interval_pct().0 > 0.0;
    let (near, far) = gains.split_at(gains.iter().take_while(|(hops, _)| *hops <= beyond).count());
    let Some(lowest) = far.iter().min_by(|a, b| a.1.pct().total_cmp(&b.1.pct())) else {
        return Err(format!("there are no runs beyond {beyond} hops"));
    };
    let from = 1 + gains.iter().rev().find(|(_, gain)| !is_above(gain)).map_or(0, |(hops, _)| *hops);
    let last = gains.last().map_or(0, |(hops, _)| *hops);
    let crossing = match from {
        from if from > last => "not above at the last hop count".to_owned(),
        1 => "above at every hop count".to_owned(),
        from => format!("above from {from} hops on"),
    };
    let at = near.last().map_or(String::new(), |(hops, gain)| format!(", {}", told(*hops, gain)));
    let evidence = format!("{}; {crossing}{at}", told(lowest.0, &lowest.1));
    let close = (beyond.saturating_sub(1)..=beyond).contains(&(from - 1));
    Ok(if !far.iter().all(|(_, gain)| is_above(gain)) {
        (Verdict::Differs, evidence)
    } else if close {
        (Verdict::Reproduced, evidence)
    } else {
        (Verdict::InShape, evidence)
    })
}

fn best(results: &Results, panel: usize, subject: &str, over: &[String], core: &[u64; 2]) -> Result<Judged, String> {
    let one = |other: &String| {
        let (verdict, evidence) = above(&gains(results, panel, subject, other)?, core[0], core[1]);
        Ok((verdict, format!("Against {other}: {}", lower(&evidence))))
    };
    let judged = over.iter().map(one).collect::<Result<Vec<Judged>, String>>()?;
    let rank = |verdict: Verdict| match verdict {
        Verdict::Reproduced => 0,
        Verdict::InShape => 1,
        Verdict::Differs | Verdict::CannotBeJudged => 2,
    };
    let worst = judged.iter().map(|(verdict, _)| *verdict).max_by_key(|verdict| rank(*verdict));
    let worst = worst.ok_or("there is nothing to compare with")?;
    Ok((worst, judged.into_iter().map(|(_, evidence)| evidence).collect::<Vec<_>>().join(". ")))
}

/// A sentence as part of another.
fn lower(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

fn gain_between(gains: &[(u64, Gain)], published: [f64; 2], tolerance: f64, core: &[u64; 2]) -> Result<Judged, String> {
    let mut core: Vec<_> = gains.iter().filter(|(hops, _)| (core[0]..=core[1]).contains(hops)).collect();
    core.sort_by(|a, b| a.1.pct().total_cmp(&b.1.pct()));
    let (Some(smallest), Some(largest)) = (core.first(), core.last()) else {
        return Err("there are no runs in the range that is judged".to_owned());
    };
    let [low, high] = published;
    let allowed = low - tolerance..=high + tolerance;
    let (sign, weak, strong) = if low >= 0.0 { (1.0, low, high) } else { (-1.0, -high, -low) };
    let on_its_side = |gain: &Gain| {
        let (low, high) = gain.interval_pct();
        if sign > 0.0 { low > 0.0 } else { high < 0.0 }
    };
    let median = sign * core[core.len() / 2].1.pct();
    let verdict = if core.iter().all(|(_, gain)| allowed.contains(&gain.pct())) {
        Verdict::Reproduced
    } else if core.iter().all(|(_, gain)| on_its_side(gain)) && (weak / 2.0..=strong * 2.0).contains(&median) {
        Verdict::InShape
    } else {
        Verdict::Differs
    };
    let evidence = format!(
        "From {} to {}; published {low:+} % to {high:+} %",
        told(smallest.0, &smallest.1),
        told(largest.0, &largest.1)
    );
    Ok((verdict, evidence))
}

fn tuned_below(results: &Results, panel: usize, subject: &str, limit: f64, core: &[u64; 2]) -> Result<Judged, String> {
    let mut verdict = Verdict::Reproduced;
    let mut told = Vec::new();
    for hops in results.hops().into_iter().filter(|hops| (core[0]..=core[1]).contains(hops)) {
        let choices = results.choices(panel, subject, hops);
        let Some(chosen) = results.chosen(panel, subject, hops) else {
            return Err(format!("there are no runs of {subject} at {hops} hops"));
        };
        told.push(format!("{} at {hops}", chosen.text));
        if chosen.value < limit {
            continue;
        }
        let below = choices.iter().filter(|choice| choice.value < limit);
        let rival = below.max_by(|a, b| a.mean().total_cmp(&b.mean()));
        let equal = rival.and_then(|rival| Gain::of(&chosen.kbps, &rival.kbps)).is_some_and(|gain| {
            let (low, high) = gain.interval_pct();
            (low..=high).contains(&0.0)
        });
        if !equal {
            verdict = Verdict::Differs;
        } else if verdict == Verdict::Reproduced {
            verdict = Verdict::InShape;
        }
    }
    if told.is_empty() {
        Err("there are no runs".to_owned())
    } else {
        Ok((verdict, format!("Best: {} hops", told.join(", "))))
    }
}

/// The change from each hop count to the next, and from the first to the last.
#[expect(clippy::type_complexity, reason = "one pair of results, used once")]
fn steps(results: &Results, panel: usize, subject: &str) -> Result<(Vec<(u64, Gain)>, Option<Gain>), String> {
    let hops = results.hops();
    let change = |from: u64, to: u64| {
        Gain::of(results.goodputs(panel, subject, to), results.goodputs(panel, subject, from))
            .ok_or_else(|| format!("fewer than two runs of {subject}, or no goodput at all, at {from} or {to} hops"))
    };
    let steps = hops.windows(2).map(|pair| Ok((pair[1], change(pair[0], pair[1])?))).collect::<Result<_, String>>()?;
    let whole = match (hops.first(), hops.last()) {
        (Some(first), Some(last)) if first < last => Some(change(*first, *last)?),
        _ => None,
    };
    Ok((steps, whole))
}

fn falls(steps: &[(u64, Gain)], whole: &Option<Gain>, tolerance: f64) -> Result<Judged, String> {
    let Some(whole) = whole else { return Err("there is only one hop count".to_owned()) };
    let told = |(hops, change): &(u64, Gain)| {
        let (low, high) = change.interval_pct();
        format!("{:+.1} % ({low:+.1} to {high:+.1}) from {} to {hops} hops", change.pct(), hops - 1)
    };
    let flat: Vec<_> = steps.iter().filter(|(_, change)| change.interval_pct().1 >= 0.0).collect();
    let rising: Vec<_> =
        steps.iter().filter(|(_, change)| change.pct() > tolerance && change.interval_pct().0 > 0.0).collect();
    let list = |steps: &[&(u64, Gain)]| steps.iter().map(|step| told(step)).collect::<Vec<_>>().join(", ");
    let whole_text = format!("{:+.1} % from the first hop count to the last", whole.pct());
    Ok(if flat.is_empty() {
        (Verdict::Reproduced, format!("Falls at every step; {whole_text}"))
    } else if rising.is_empty() && whole.interval_pct().1 < 0.0 {
        (Verdict::InShape, format!("{whole_text}; no clear fall {}", list(&flat)))
    } else {
        (Verdict::Differs, format!("{whole_text}; rises {}", list(if rising.is_empty() { &flat } else { &rising })))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five runs around `mean` whose 95 % interval is about ±1.2 %.
    fn runs(mean: f64) -> Vec<f64> {
        [-0.01, -0.005, 0.0, 0.005, 0.01].map(|x| mean * (1.0 + 1.2 * x)).to_vec()
    }

    /// Made-up goodputs of NewReno and TCP-AP at 1, 2, 3, ... hops.
    fn made_up(newreno: &[f64], tcp_ap: &[f64]) -> Results {
        let mut results = Results::default();
        for (hops, (base, better)) in (1..).zip(newreno.iter().zip(tcp_ap)) {
            results.put(0, "newreno", hops, &runs(*base));
            results.put(0, "tcp-ap", hops, &runs(*better));
        }
        results
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn verdict(check: &Check, results: &Results) -> Verdict {
        let judgement = judge(check, "tcp-ap", 0, results);
        assert!(!judgement.evidence.is_empty());
        judgement.verdict
    }

    fn gain_of_84() -> Check {
        Check::LargestGain { of: names(&["tcp-ap"]), over: "newreno".into(), published_pct: 84.0, tolerance_pct: 10.0 }
    }

    #[test]
    fn the_largest_gain_is_found_and_its_verdict_depends_on_it() {
        let with_gain = |gain: f64| made_up(&[400.0, 200.0, 100.0], &[440.0, 200.0 * (1.0 + gain), 110.0]);
        assert_eq!(verdict(&gain_of_84(), &with_gain(0.84)), Verdict::Reproduced);
        assert_eq!(verdict(&gain_of_84(), &with_gain(0.90)), Verdict::Reproduced);
        assert_eq!(verdict(&gain_of_84(), &with_gain(1.50)), Verdict::InShape);
        assert_eq!(verdict(&gain_of_84(), &with_gain(0.50)), Verdict::InShape);
        // Falsified records: no gain, a third of it, three times as much.
        assert_eq!(verdict(&gain_of_84(), &made_up(&[400.0, 200.0], &[390.0, 190.0])), Verdict::Differs);
        assert_eq!(verdict(&gain_of_84(), &with_gain(0.28)), Verdict::Differs);
        assert_eq!(verdict(&gain_of_84(), &with_gain(2.52)), Verdict::Differs);
        // Too few or too scattered runs: the interval holds 84 % and nearly everything else.
        let mut scattered = with_gain(1.2);
        scattered.put(0, "tcp-ap", 2, &[300.0, 580.0]);
        scattered.put(0, "newreno", 2, &[199.0, 201.0]);
        assert_eq!(verdict(&gain_of_84(), &scattered), Verdict::Differs);
        assert!(judge(&gain_of_84(), "tcp-ap", 0, &with_gain(0.84)).evidence.contains("at 2 hops"));
    }

    #[test]
    fn above_must_hold_everywhere_or_in_the_core() {
        let check = Check::Above { of: names(&["tcp-ap"]), over: "newreno".into(), core: [2, 3] };
        let newreno = [400.0, 200.0, 100.0];
        assert_eq!(verdict(&check, &made_up(&newreno, &[440.0, 220.0, 110.0])), Verdict::Reproduced);
        assert_eq!(verdict(&check, &made_up(&newreno, &[300.0, 220.0, 110.0])), Verdict::InShape);
        // Falsified records: one hop count of the core is below, or not clearly above.
        assert_eq!(verdict(&check, &made_up(&newreno, &[440.0, 220.0, 90.0])), Verdict::Differs);
        assert_eq!(verdict(&check, &made_up(&newreno, &[440.0, 200.5, 110.0])), Verdict::Differs);
    }

    #[test]
    fn falling_is_strict_in_shape_or_not_at_all() {
        let check = Check::Falls { of: names(&["tcp-ap"]), tolerance_pct: 5.0 };
        let with = |tcp_ap: &[f64]| made_up(tcp_ap, tcp_ap);
        assert_eq!(verdict(&check, &with(&[400.0, 300.0, 200.0])), Verdict::Reproduced);
        assert_eq!(verdict(&check, &with(&[400.0, 300.0, 300.0])), Verdict::InShape);
        assert_eq!(verdict(&check, &with(&[400.0, 300.0, 309.0])), Verdict::InShape, "3 % is within the tolerance");
        // Falsified records: a rise on the way, a rise altogether.
        assert_eq!(verdict(&check, &with(&[400.0, 300.0, 360.0])), Verdict::Differs);
        assert_eq!(verdict(&check, &with(&[300.0, 300.0, 301.0])), Verdict::Differs);
    }

    #[test]
    fn a_crossing_must_be_where_it_was_published() {
        let check = Check::AboveBeyond { of: names(&["tcp-ap"]), over: "newreno".into(), beyond: 3 };
        let with = |gains: &[f64]| {
            let newreno = vec![100.0; gains.len()];
            made_up(&newreno, &gains.iter().map(|gain| 100.0 + gain).collect::<Vec<_>>())
        };
        assert_eq!(verdict(&check, &with(&[-20.0, -10.0, -5.0, 10.0, 20.0])), Verdict::Reproduced);
        assert_eq!(verdict(&check, &with(&[-20.0, -10.0, 5.0, 10.0, 20.0])), Verdict::Reproduced, "one hop earlier");
        assert_eq!(verdict(&check, &with(&[-20.0, 10.0, 15.0, 10.0, 20.0])), Verdict::InShape);
        assert_eq!(verdict(&check, &with(&[20.0, 10.0, 15.0, 10.0, 20.0])), Verdict::InShape);
        // Falsified records: below at the end, above only later, no runs there.
        assert_eq!(verdict(&check, &with(&[-20.0, -10.0, -5.0, 10.0, -20.0])), Verdict::Differs);
        assert_eq!(verdict(&check, &with(&[-20.0, -10.0, -5.0, 0.0, 20.0])), Verdict::Differs);
        assert_eq!(verdict(&check, &with(&[-20.0, -10.0, -5.0])), Verdict::CannotBeJudged);
    }

    #[test]
    fn the_best_is_above_everyone() {
        let check = Check::Best { of: names(&["tcp-ap"]), over: vec!["newreno".into(), "third".into()], core: [2, 3] };
        let with = |third: [f64; 3]| {
            let mut results = made_up(&[100.0; 3], &[120.0; 3]);
            for (hops, mean) in (1..).zip(third) {
                results.put(0, "third", hops, &runs(mean));
            }
            results
        };
        assert_eq!(verdict(&check, &with([110.0; 3])), Verdict::Reproduced);
        assert_eq!(verdict(&check, &with([130.0, 110.0, 110.0])), Verdict::InShape);
        assert_eq!(verdict(&check, &with([110.0, 110.0, 130.0])), Verdict::Differs);
        assert_eq!(verdict(&check, &made_up(&[100.0; 3], &[120.0; 3])), Verdict::CannotBeJudged);
    }

    #[test]
    fn a_gain_between_two_numbers_may_be_a_loss() {
        let check = |low: f64, high: f64| Check::GainBetween {
            of: names(&["tcp-ap"]),
            over: "newreno".into(),
            published_pct: [low, high],
            tolerance_pct: 2.0,
            core: [2, 4],
        };
        let with = |gains: [f64; 4]| made_up(&[100.0; 4], &gains.map(|gain| 100.0 + gain));
        assert_eq!(verdict(&check(7.0, 17.0), &with([90.0, 6.0, 12.0, 18.0])), Verdict::Reproduced);
        assert_eq!(verdict(&check(7.0, 17.0), &with([90.0, 6.0, 12.0, 25.0])), Verdict::InShape);
        assert_eq!(verdict(&check(7.0, 17.0), &with([90.0, -6.0, 12.0, 15.0])), Verdict::Differs);
        assert_eq!(verdict(&check(7.0, 17.0), &with([10.0, 60.0, 60.0, 60.0])), Verdict::Differs);
        assert_eq!(verdict(&check(-16.0, -5.0), &with([90.0, -4.0, -12.0, -17.0])), Verdict::Reproduced);
        assert_eq!(verdict(&check(-16.0, -5.0), &with([90.0, -4.0, -12.0, -25.0])), Verdict::InShape);
        assert_eq!(verdict(&check(-16.0, -5.0), &with([90.0, 4.0, -12.0, -12.0])), Verdict::Differs);
        assert_eq!(verdict(&check(-16.0, -5.0), &made_up(&[100.0], &[90.0])), Verdict::CannotBeJudged);
    }

    #[test]
    fn a_tuned_parameter_is_small_or_need_not_be_large() {
        let check = Check::TunedBelow { of: names(&["tcp-ap"]), limit: 4.0, core: [1, 2] };
        let with = |three: f64, four: f64| {
            let mut results = Results::default();
            for hops in 1..=2 {
                results.put_choice(0, "tcp-ap", hops, 3.0, &runs(three));
                results.put_choice(0, "tcp-ap", hops, 4.0, &runs(four));
            }
            results
        };
        assert_eq!(verdict(&check, &with(110.0, 100.0)), Verdict::Reproduced);
        assert_eq!(verdict(&check, &with(100.0, 100.5)), Verdict::InShape);
        assert_eq!(verdict(&check, &with(100.0, 110.0)), Verdict::Differs);
        assert_eq!(verdict(&check, &Results::default()), Verdict::CannotBeJudged);
    }

    #[test]
    fn nothing_is_said_without_runs_or_reasons() {
        assert_eq!(verdict(&gain_of_84(), &Results::default()), Verdict::CannotBeJudged);
        let mut one_run = made_up(&[400.0, 200.0], &[440.0, 368.0]);
        one_run.put(0, "tcp-ap", 2, &[368.0]);
        assert_eq!(verdict(&gain_of_84(), &one_run), Verdict::CannotBeJudged);
        assert_eq!(verdict(&Check::NotJudged { why: "later".into() }, &one_run), Verdict::CannotBeJudged);
    }
}
