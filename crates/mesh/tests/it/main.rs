//! Integration tests of this crate in one program, which needs one link step instead of many.

mod aodv;
mod block_ack;
mod dcf;
mod link;
mod olsr;
mod packet_errors;
mod parcel;
