//! AODV as a conversation between machines: discovery, failures, repair, and no loops under any flapping of links.

mod conversations;
mod copies;
mod hello;
mod local_repair;
mod loops;
mod notices;
mod replay;
mod world;
