//! Entry points for fuzzers: functions that parse arbitrary bytes as files or as requests of
//! strangers. They panic if a check fails.
//!
//! They are built by fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; `fuzz/` has the targets) and
//! by this crate's tests. The tests run each function on the inputs in `fuzz/corpus` and on
//! mutations of them.

pub use crate::tunnel::fuzzing::{http, tunnelfile};

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_file_of_tunnels_is_read_or_refused_where_it_is_wrong() {
        drive("tunnelfile", super::tunnelfile);
    }

    #[test]
    fn any_request_for_metrics_has_one_answer_or_none() {
        drive("http", super::http);
    }
}
