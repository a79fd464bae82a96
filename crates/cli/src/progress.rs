//! Progress of a campaign. It is measured by the estimated cost of the runs and not by their
//! number, because the longest runs are made first.

use crate::output::{complain, is_quiet};
use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use meshpace_lab::campaign::Work;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between two lines of progress if there is no terminal.
const LINE: Duration = Duration::from_secs(10);
/// CPU time or elapsed time after which lines of progress begin. A short campaign prints none, even
/// on a busy machine.
const LONG: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(120));
/// Number of steps of the progress bar per second of estimated cost.
const STEPS: f64 = 1e6;

/// Progress on standard error. On a terminal it is a bar with the remaining time if there is more
/// than one run. Without a terminal it is a line every 10 s if the campaign takes long.
pub struct Progress {
    bar: ProgressBar,
    work: Arc<Mutex<State>>,
}

#[derive(Clone, Copy)]
struct State {
    all: Work,
    done: Work,
    /// Part of `done` that was there at the start.
    known: Work,
}

impl Progress {
    /// Starts the progress of this amount of work.
    pub fn new(all: Work) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let target = if all.runs > 1 && is_terminal && !is_quiet() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{bar:40} {msg}, {elapsed} elapsed, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(steps(all)), target);
        let bar = bar.with_style(style.expect("the template is right")).with_message(count(Work::default(), all));
        let state = State { all, done: Work::default(), known: Work::default() };
        let work = Arc::new(Mutex::new(state));
        if !is_terminal && !is_quiet() {
            let (watched, work) = (bar.downgrade(), Arc::clone(&work));
            std::thread::spawn(move || {
                loop {
                    #[expect(clippy::disallowed_methods, reason = "a thread that tells people how far it is")]
                    std::thread::sleep(LINE);
                    match watched.upgrade() {
                        Some(bar) if !bar.is_finished() => {
                            let state = *work.lock().unwrap_or_else(PoisonError::into_inner);
                            tell(&bar, &state);
                        }
                        _ => return,
                    }
                }
            });
        }
        Progress { bar, work }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let state = {
            let mut state = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut state);
            *state
        };
        self.bar.set_length(steps(state.all));
        self.bar.set_message(count(state.done, state.all));
        self.bar.set_position(steps(state.done));
    }

    /// Counts work that an earlier start of the campaign completed.
    pub fn known(&self, work: Work) {
        self.change(|state| {
            state.done += work;
            state.known += work;
        });
        self.bar.reset_eta();
    }

    /// Counts work as done.
    pub fn done(&self, work: Work) {
        self.change(|state| state.done += work);
    }

    /// Adds work to the total.
    pub fn more(&self, work: Work) {
        self.change(|state| state.all += work);
    }

    /// Redraws the bar.
    pub fn tick(&self) {
        self.bar.tick();
    }

    /// Hides the bar while `write` prints something else.
    pub fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn steps(work: Work) -> u64 {
    (work.cost_s * STEPS) as u64
}

fn count(done: Work, all: Work) -> String {
    format!("{} of {} runs", done.runs, all.runs)
}

/// Prints a line of progress, if the campaign has taken long enough.
fn tell(bar: &ProgressBar, state: &State) {
    let gone = bar.elapsed();
    let used = ProcessTime::try_now().map_or(gone, |used| used.as_duration());
    if used >= LONG.0 || gone >= LONG.1 {
        complain(&line(state, gone.as_secs()));
    }
}

fn line(state: &State, gone_s: u64) -> String {
    let (made, left) = (state.done.cost_s - state.known.cost_s, state.all.cost_s - state.done.cost_s);
    let left = (made > 0.0).then(|| format!(", about {:.0} s left", gone_s as f64 * (left / made).max(0.0)));
    let percent = if state.all.cost_s > 0.0 { 100.0 * state.done.cost_s / state.all.cost_s } else { 0.0 };
    let count = count(state.done, state.all);
    format!("{count}, {percent:.0} % of the work, {gone_s} s elapsed{}", left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_left_by_the_cost() {
        let all = Work { runs: 40, cost_s: 100.0 };
        let none = Work::default();
        let told = |done, known| line(&State { all, done, known }, 20);
        assert_eq!(told(none, none), "0 of 40 runs, 0 % of the work, 20 s elapsed");
        // A tenth of the runs, and half of the work.
        let done = Work { runs: 4, cost_s: 50.0 };
        assert_eq!(told(done, none), "4 of 40 runs, 50 % of the work, 20 s elapsed, about 20 s left");
        // What was there from before took no time now.
        let known = Work { runs: 2, cost_s: 40.0 };
        assert_eq!(told(done, known), "4 of 40 runs, 50 % of the work, 20 s elapsed, about 100 s left");
    }
}
