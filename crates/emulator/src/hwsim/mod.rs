//! Medium for the radios of the kernel's mac80211_hwsim. Their frames cross the engine, where
//! otherwise wmediumd would carry them.
//!
//! mac80211_hwsim passes every frame that a radio sends to the registered program, over generic
//! netlink, with the rates that mac80211 requests. [`message`] decodes and encodes these messages,
//! [`socket`] connects to the kernel, [`config`] reads wmediumd's files, [`medium`] is the mesh
//! between the radios, and [`run`] joins them under the machine's clock.
//!
//! Limits: there is one DCF for each radio, without EDCA, RTS and aggregates. CCK rates count as 6
//! Mbit/s, and those of VHT and HE as the MCS of 802.11n below them. A unicast frame is delivered
//! to its addressee, and to no monitor. All radios have one channel.

pub mod config;
pub mod medium;
pub mod message;
pub mod run;
pub mod socket;
