//! 802.11a and 802.11n in the scenes of `meshpace dev validate ht`: chains of 802.11a against a measurement, access by category, rate control, queues by air time, whose turn it is at a station, and what
//! an MPDU costs.

mod airtime;
mod edca;
mod edca_model;
mod field;
mod random;
mod rates;
mod turns;
