//! The link layer through its one interface: queue disciplines, markers, and what they do together. Expectations follow
//! from the papers' and RFCs' rules and are worked out beside each test.

mod fq_codel;
mod fq_codel_airtime;
mod llap;
mod llap_chain;
mod markers;
mod parcel;
