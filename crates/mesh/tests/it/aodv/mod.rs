//! Tests of AODV as a conversation between state machines: discovery, failures, repair, and the
//! absence of loops however links change.

mod conversations;
mod copies;
mod hello;
mod local_repair;
mod loops;
mod notices;
mod replay;
mod world;
