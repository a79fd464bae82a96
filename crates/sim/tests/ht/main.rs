//! 802.11n and 802.11a: one cell against theory, links and cells against ns-3.44, chains of 802.11a against a measurement.

mod cells;
mod field;
mod ns3;
mod scene;
mod theory;
