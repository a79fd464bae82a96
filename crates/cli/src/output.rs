//! Standard output carries results and nothing else; everything for people goes to standard error.

pub use meshpace_command::output::{Failure, be_quiet, complain, end, failed, finish, is_quiet, note, results, tell};

use meshpace_lab::record::tally;

/// Says who starved, on standard error, to everybody: nothing else that came out means much without it.
pub fn alarm(sentences: &[String]) {
    for sentence in sentences {
        complain(&tally::coloured(sentence, console::colors_enabled_stderr()));
    }
}
