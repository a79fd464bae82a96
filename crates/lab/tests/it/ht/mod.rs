//! Tests of 802.11a and 802.11n in the scenes of `meshpace dev validate ht`: chains of 802.11a
//! against a measurement, access by category, rate control, queues by air time, turns of neighbours
//! at a station, and the cost of an MPDU.

mod airtime;
mod edca;
mod edca_model;
mod field;
mod random;
mod rates;
mod turns;
