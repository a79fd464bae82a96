//! 802.11a and 802.11n in the scenes of `meshpace validate ht`: chains of 802.11a against a measurement, access by category and rate control, and what
//! an MPDU costs.

mod edca;
mod edca_model;
mod field;
mod random;
mod rates;
