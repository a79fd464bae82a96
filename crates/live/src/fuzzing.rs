//! Bodies for fuzzers: functions of the bytes of a stranger that panic when something is wrong.
//!
//! Built by fuzzers alone (`--cfg fuzzing`, as `cargo fuzz` does it; `fuzz/` has the targets), and by this crate's tests, which run each on the inputs in
//! `fuzz/corpus` and on changes of them.

pub use crate::tpa::fuzzing::{datagram, listener, opening};
pub use crate::tunnel::fuzzing::{session, socks};

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_datagram_is_a_segment_or_is_passed_over() {
        drive("datagram", super::datagram);
    }

    #[test]
    fn any_request_is_answered_by_no_more_than_it_was() {
        drive("listener", super::listener);
    }

    #[test]
    fn any_opening_is_read_as_it_would_be_written() {
        drive("opening", super::opening);
    }

    #[test]
    fn any_bytes_of_a_far_end_cost_no_more_than_was_promised() {
        drive("session", super::session);
    }

    #[test]
    fn any_request_by_socks_names_a_target_or_is_refused() {
        drive("socks", super::socks);
    }
}
