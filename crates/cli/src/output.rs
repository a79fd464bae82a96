//! Output of the commands. Standard output has the results only; all messages for people go to
//! standard error.

pub use meshpace_command::output::{
    Failure, be_quiet, complain, end, failed, finish, finish_pieces, is_quiet, note, results, tell,
};

use meshpace_lab::record::tally;

/// Reports starved flows on standard error, also with `--quiet`, because other results mean little
/// without this fact.
pub fn alarm(sentences: &[String]) {
    for sentence in sentences {
        complain(&tally::coloured(sentence, console::colors_enabled_stderr()));
    }
}
