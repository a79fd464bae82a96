//! Medium access control of 802.11: frames, air times, the distributed coordination function.

pub mod arrivals;
pub mod backoff;
pub mod block_ack;
pub mod config;
pub mod dcf;
pub mod frame;
pub mod rate_control;
pub mod rules;
pub mod timing;

pub use crate::category::Category;
pub use arrivals::{Arrival, OrderedTime};
pub use backoff::Backoff;
pub use dcf::{Action, AttemptContent, AttemptReport, Dcf, EndingFrame};
pub use frame::{Frame, FrameKind, Mpdu};
pub use rules::Rules;
pub use timing::Timing;
