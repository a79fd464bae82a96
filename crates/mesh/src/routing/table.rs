//! Table of routing protocols. A new protocol needs a folder and a line here. Macros in
//! `config.rs`, `message.rs` and `router.rs` generate the choice in a scenario, the messages and
//! the router from the table.

/// Passes the table to the macro `$make`: for each protocol its name in code and in scenarios, the
/// state machine of a node, its configuration and its messages. Static routes have no line, because
/// they have neither messages nor a state per node.
macro_rules! routing_protocols {
    ($make:ident) => {
        $make! {
            Aodv "aodv" super::aodv::Aodv<P>, super::aodv::AodvConfig, super::aodv::Message;
            Olsr "olsr" super::olsr::Olsr, super::olsr::OlsrConfig, super::olsr::Message;
            Flooding "flooding" super::flooding::Flooding, super::flooding::FloodingConfig, core::convert::Infallible;
        }
    };
}

pub(super) use routing_protocols;
