//! The medium of the kernel's own Wi-Fi: frames of mac80211_hwsim's radios cross the engine, as they cross wmediumd elsewhere.
//!
//! mac80211_hwsim gives every frame that a radio sends to the program that registered with it, over generic netlink, with the rates at which mac80211 wants it
//! tried. [`message`] reads and writes that, [`socket`] is the door to the kernel, [`config`] reads wmediumd's files, [`medium`] is the
//! mesh between the radios, and [`run`] joins them under the machine's clock.
//!
//! Where it ends: one DCF for each radio, without EDCA, RTS and aggregates; rates of CCK count as 6 Mbit/s, and those of VHT and HE as the MCS of 802.11n below;
//! a unicast frame comes to the radio that it is for, and to no monitor; all radios have one channel.

pub mod config;
pub mod medium;
pub mod message;
pub mod run;
pub mod socket;
