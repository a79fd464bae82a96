//! Timers of the flows, as the engine numbers them.

use super::flow::CONNECTIONS;
use crate::engine::TimerId;

/// Number of ends of a connection: the sender's and the receiver's.
const ENDS: usize = 2;
/// Number of timers of a flow: one for each end of each connection, then the application's.
const PER_FLOW: usize = CONNECTIONS * ENDS + 1;

/// Timer of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowTimer {
    /// Timer of an end of the connection at an index.
    End { place: usize, end: usize },
    /// Timer of the application.
    Application,
}

impl FlowTimer {
    /// Number of the timer at the engine, for flow `flow`.
    #[inline]
    pub fn id(self, flow: usize) -> TimerId {
        let own = match self {
            FlowTimer::End { place, end } => place * ENDS + end,
            FlowTimer::Application => CONNECTIONS * ENDS,
        };
        TimerId((flow * PER_FLOW + own) as u32)
    }

    /// Flow and timer that belong to a number of the engine.
    #[inline]
    pub fn of(id: TimerId) -> (usize, FlowTimer) {
        let (flow, own) = (id.0 as usize / PER_FLOW, id.0 as usize % PER_FLOW);
        let timer = if own == CONNECTIONS * ENDS {
            FlowTimer::Application
        } else {
            FlowTimer::End { place: own / ENDS, end: own % ENDS }
        };
        (flow, timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_has_a_number_of_its_own() {
        for number in 0..3 * PER_FLOW as u32 {
            let (flow, timer) = FlowTimer::of(TimerId(number));
            assert_eq!(timer.id(flow), TimerId(number));
        }
        assert_eq!(FlowTimer::of(FlowTimer::Application.id(7)), (7, FlowTimer::Application));
    }
}
