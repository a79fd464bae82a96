//! OLSR as a conversation between machines: relays, convergence, costs, losses, and what loops there are.

mod convergence;
mod etx;
mod links;
mod loops;
mod notices;
mod relays;
mod world;
