//! 802.11n and 802.11a: one cell against theory, links, cells, chains and hidden terminals against ns-3.44, chains of 802.11a against a measurement.

mod cells;
mod field;
mod hops;
mod ns3;
mod random;
mod scene;
mod theory;
