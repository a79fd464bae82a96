//! Bodies for fuzzers: functions of the bytes of files and of strangers that panic when something is wrong.
//!
//! Built by fuzzers alone (`--cfg fuzzing`, as `cargo fuzz` does it; `fuzz/` has the targets), and by this crate's tests, which run each on the inputs in
//! `fuzz/corpus` and on changes of them.

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
