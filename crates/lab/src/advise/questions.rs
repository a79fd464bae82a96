//! Questions of an operator and the possible answers to each. The state of the mesh is where all
//! answers start.

use crate::field::state::{Rts, State};

/// Text of a state for people.
pub fn state_words(state: &State) -> String {
    let [attempts, rts, control, _] = questions(state).map(|question| question.usual.name);
    format!("{attempts}, {rts}, {control}")
}

/// Questions whose choices change the sender. Each has the error of the model of such a sender, as
/// a share of the measured goodput of the sender in use. Linux's BBR carries up to a fifth more
/// than its model. Pacing is done by a tunnel on a real mesh: over five emulated nodes, a tunnel of
/// quiet trains carried at worst 0.58 of what its model carries (docs/measuring-kit.md).
pub const SENDER: [(&str, f64); 2] = [("congestion control", 0.2), ("pacing", 0.75)];

/// A setting that can be chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Name of the choice for people.
    pub name: String,
    /// The choice as arguments of `--set`.
    pub sets: Vec<String>,
}

/// A question and the possible answers to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Name of the question.
    pub name: &'static str,
    /// Choice that the mesh has in its present state.
    pub usual: Choice,
    /// Choices that are tried instead.
    pub others: Vec<Choice>,
}

/// A choice with its settings.
pub fn choice(name: impl Into<String>, sets: &[&str]) -> Choice {
    Choice { name: name.into(), sets: sets.iter().map(|set| (*set).to_owned()).collect() }
}

fn attempts(number: u32) -> Choice {
    choice(format!("{number} attempts"), &[&format!("mac.short_retry_limit={number}")])
}

fn rts(rts: Rts) -> Choice {
    match rts {
        Rts::Off => choice("no RTS", &["radio.rts_cts=false"]),
        Rts::Unknown => choice("RTS that nothing tells of", &["radio.rts_cts=false"]),
        Rts::On => choice("RTS before every frame", &["radio.rts_cts=true"]),
        Rts::Above(bytes) => choice(
            format!("RTS before frames of more than {bytes} bytes"),
            &[&format!("radio.rts_threshold={bytes} B")],
        ),
    }
}

fn congestion(name: &str) -> Choice {
    match name {
        "reno" => choice("NewReno", &["flow.transport=newreno+delack"]),
        "bbr" => choice("BBR", &["flow.transport=bbr"]),
        _ => choice("CUBIC", &["flow.transport=cubic+delack"]),
    }
}

/// A question whose alternatives are all choices except the usual one.
fn question(name: &'static str, usual: Choice, all: impl IntoIterator<Item = Choice>) -> Question {
    Question { name, others: all.into_iter().filter(|choice| choice.sets != usual.sets).collect(), usual }
}

/// All questions for a mesh in this state. No alternative to Linux's BBR is tried. The simulator's
/// BBR carries about an eighth less than Linux's, while its NewReno carries as much as Linux's or
/// more (docs/measuring-kit.md). The comparison would therefore have the wrong sign.
pub fn questions(state: &State) -> [Question; 4] {
    let control = congestion(&state.congestion);
    let controls =
        [congestion("cubic"), congestion("reno"), choice("NewReno with a small window", &["flow.transport=cwl"])];
    let controls = if state.congestion == "bbr" { Vec::new() } else { controls.to_vec() };
    let thresholds = if state.rts == Rts::Unknown { &[][..] } else { &[Rts::Off, Rts::On, Rts::Above(500)] };
    [
        question("retry limit", attempts(state.attempts), [4, 7, 15].map(attempts)),
        question("RTS threshold", rts(state.rts), thresholds.iter().copied().map(rts)),
        question(SENDER[0].0, control.clone(), controls),
        question(
            SENDER[1].0,
            choice("no pacing", &[&control.sets[0]]),
            [
                choice("adaptive pacing (TCP-AP)", &["flow.transport=tcp-ap+delack"]),
                choice("quiet trains", &["flow.transport=quiet-train"]),
                choice(
                    "trains that leave at once",
                    &["flow.transport={ name = \"quiet-train\", interval = \"10 us\", train = 64 }"],
                ),
            ],
        ),
    ]
}

/// Arguments of `--set` with which a choice of a question is tried. With `None` all settings are
/// the usual ones.
pub fn sets(questions: &[Question], varied: Option<(&Question, &Choice)>) -> Vec<String> {
    let key = |set: &str| set.split('=').next().unwrap_or_default().to_owned();
    let chosen = varied.map(|(_, choice)| choice.sets.as_slice()).unwrap_or_default();
    let same = |set: &&String| chosen.iter().any(|other| key(other) == key(set));
    let mut all: Vec<String> = Vec::new();
    for question in questions {
        let replaced = varied.is_some_and(|(asked, _)| asked.name == question.name);
        for set in question.usual.sets.iter().filter(|set| !replaced && !same(set)) {
            if !all.contains(set) {
                all.push(set.clone());
            }
        }
    }
    all.extend(chosen.iter().cloned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_changed_at_a_time() {
        let found = State { attempts: 4, rts: Rts::On, congestion: "bbr".to_owned(), ..State::default() };
        for (state, expected) in [
            (State::default(), ["mac.short_retry_limit=7", "radio.rts_cts=false", "flow.transport=cubic+delack"]),
            (found, ["mac.short_retry_limit=4", "radio.rts_cts=true", "flow.transport=bbr"]),
        ] {
            let questions = questions(&state);
            let usual = sets(&questions, None);
            assert_eq!(usual, expected);
            for question in &questions {
                let is_left_out = state.congestion == "bbr" && question.name == "congestion control";
                assert_eq!(question.others.len() >= 2, !is_left_out, "{question:?}");
                for choice in &question.others {
                    let sets = sets(&questions, Some((question, choice)));
                    assert_eq!(sets.len(), usual.len(), "{sets:?}");
                    let changed: Vec<&String> = sets.iter().filter(|set| !usual.contains(set)).collect();
                    assert_eq!(changed, choice.sets.iter().collect::<Vec<_>>(), "{}", choice.name);
                }
            }
        }
    }

    #[test]
    fn nothing_is_tried_of_a_setting_that_is_not_known() {
        let questions = questions(&State { rts: Rts::Unknown, ..State::default() });
        assert_eq!((questions[1].others.len(), &sets(&questions, None)[1]), (0, &"radio.rts_cts=false".to_owned()));
        assert!(questions.iter().flat_map(|question| &question.others).all(|choice| !choice.name.contains("RTS")));
    }

    #[test]
    fn a_state_names_its_own_settings() {
        let state = State { attempts: 5, rts: Rts::Above(1200), ..State::default() };
        assert_eq!(state_words(&state), "5 attempts, RTS before frames of more than 1200 bytes, CUBIC");
        assert_eq!(questions(&state)[1].others.len(), 3, "off, on and above 500");
    }
}
