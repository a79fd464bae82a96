//! Tests of OLSR as a conversation between state machines: relays, convergence, costs, losses, and
//! loops.

mod convergence;
mod etx;
mod links;
mod loops;
mod notices;
mod relays;
mod world;
