//! The integration tests of this crate, in one program: one link instead of many.

mod advise;
mod bad_input;
mod bench;
mod book;
mod campaign;
mod compare;
mod decrypt;
mod documented;
mod emulate;
mod kernel;
mod kit;
mod lists;
mod manual;
mod medium;
mod network;
mod pcap;
mod picture;
mod report_page;
mod reproduce;
mod run;
mod soak;
mod store;
mod tunnel;
mod tunnel_file;
mod tunnel_operations;
mod view;
