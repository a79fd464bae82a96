//! Tests of the link layer through its only interface: queue disciplines, markers, and their
//! combination. Expectations follow from the rules of papers and RFCs and are computed beside each
//! test.

mod fq_codel;
mod fq_codel_airtime;
mod llap;
mod llap_chain;
mod markers;
mod parcel;
