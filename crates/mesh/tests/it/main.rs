//! The integration tests of this crate, in one program: one link instead of many.

mod aodv;
mod block_ack;
mod dcf;
mod link;
mod olsr;
mod packet_errors;
mod parcel;
