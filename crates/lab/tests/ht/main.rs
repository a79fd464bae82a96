//! 802.11a and 802.11n in the scenes of `meshpace validate ht`: chains of 802.11a against a measurement, and what an MPDU costs.

mod field;
mod random;
