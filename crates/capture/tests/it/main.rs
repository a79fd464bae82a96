//! The integration tests of this crate, in one program: one link instead of many.

mod ht_pcap;
mod olsr_pcap;
mod pcap;
