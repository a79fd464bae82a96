//! TCP-FeW: in congestion avoidance the window grows by a fraction of what NewReno adds.
//!
//! K. Nahm, A. Helmy, C. Kuo, "TCP over Multihop 802.11 Networks: Issues and Performance Enhancement", MobiHoc 2005, with
//! the value 0.01 that DCC, section 5, states: per ACK, cwnd += 0.01 / cwnd. Slow start and the response to loss are those
//! of NewReno, for neither DCC nor its table says otherwise.

/// The window after an ACK of new data.
pub fn increase(cwnd: f64, ssthresh: u32, increment: f64) -> f64 {
    cwnd + if cwnd < f64::from(ssthresh) { 1.0 } else { increment / cwnd }
}
