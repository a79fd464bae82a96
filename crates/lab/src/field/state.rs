//! Settings of a measured mesh. All advice starts from them.

/// Use of RTS in a mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rts {
    /// No RTS.
    #[default]
    Off,
    /// RTS before every frame.
    On,
    /// RTS before frames of more than this number of bytes.
    Above(u32),
    /// The use of RTS is not known. It is simulated as off, and no advice is given about it.
    Unknown,
}

/// Settings of a mesh. The defaults are those of Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Number of transmissions after which the MAC gives up a frame.
    pub attempts: u32,
    /// Use of RTS.
    pub rts: Rts,
    /// Congestion control as Linux names it: cubic, reno or bbr. Any other name is treated as
    /// cubic.
    pub congestion: String,
    /// True if at least one setting was found, so that the settings may differ from the defaults.
    pub is_found: bool,
    /// Keys of a scenario with their values as TOML, if the whole radio is known. Otherwise empty.
    pub radio: Vec<(&'static str, String)>,
}

impl Default for State {
    fn default() -> State {
        State { attempts: 7, rts: Rts::Off, congestion: "cubic".to_owned(), is_found: false, radio: Vec::new() }
    }
}

/// Keys that describe the whole radio.
const RADIO: [&str; 3] = ["mac.profile", "radio.rate", "radio.basic_rate"];

impl State {
    /// Reads what the kit wrote about a radio: the output of `iw phy`, or keys of a scenario if the
    /// mesh is emulated.
    pub fn find(&mut self, text: &str) {
        for row in text.lines() {
            if let Some((key, value)) = row.split_once('=') {
                self.find_key(key.trim(), value.trim());
            } else if let Some((key, value)) = row.trim().split_once(':') {
                let Ok(number) = value.trim().parse::<u32>() else { continue };
                match key {
                    "RTS threshold" => (self.rts, self.is_found) = (threshold(number), true),
                    key if key.starts_with("Retry short") && number > 0 => {
                        (self.attempts, self.is_found) = (number.min(255), true);
                    }
                    _ => {}
                }
            }
        }
    }

    fn find_key(&mut self, key: &str, value: &str) {
        let is_value = value.len() < 40 && format!("value = {value}").parse::<toml::Table>().is_ok();
        let number = value.trim_matches('"').trim_end_matches(" B").parse::<u32>();
        match (key, value) {
            ("radio.rts_cts", "true") => (self.rts, self.is_found) = (Rts::On, true),
            ("radio.rts_cts", "false") => (self.rts, self.is_found) = (Rts::Off, true),
            ("radio.rts_threshold", _) => {
                if let Ok(bytes) = number {
                    (self.rts, self.is_found) = (threshold(bytes), true);
                }
            }
            ("mac.short_retry_limit", _) => {
                if let Ok(attempts @ 1..=255) = number {
                    (self.attempts, self.is_found) = (attempts, true);
                }
            }
            _ => {
                let known = RADIO.iter().find(|known| **known == key).filter(|_| is_value);
                self.radio.retain(|(other, _)| Some(other) != known);
                self.radio.extend(known.map(|key| (*key, value.to_owned())));
            }
        }
    }

    /// Bit rate of the whole radio, for people. `None` if it is not known.
    pub fn rate(&self) -> Option<&str> {
        let rate = self.radio.iter().find(|(key, _)| *key == "radio.rate")?;
        Some(rate.1.trim_matches('"'))
    }
}

fn threshold(bytes: u32) -> Rts {
    if bytes == 0 { Rts::On } else { Rts::Above(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iw_tells_the_threshold_and_the_attempts() {
        // As iw 5.19 prints it (info.c), shortened; without a threshold there is no such line.
        let mut state = State::default();
        state.find(
            "Wiphy phy0\n\tmax # scan SSIDs: 4\n\tRTS threshold: 500\n\tRetry short limit: 4\n\tRetry long limit: 6\n",
        );
        assert_eq!((state.attempts, state.rts, state.is_found), (4, Rts::Above(500), true));
        let mut state = State::default();
        state.find("Wiphy phy0\n\tRetry short long limit: 7\n");
        assert_eq!((state.attempts, state.rts), (7, Rts::Off));
    }

    #[test]
    fn keys_of_an_emulated_radio_are_taken_and_others_are_not() {
        let mut state = State::default();
        state.find("mac.profile=\"ns2\"\nradio.rate=\"11 Mbit/s\"\nradio.rts_cts=true\nmac.short_retry_limit=7\ntopology.file=\"x\"\nradio.basic_rate=]\n");
        assert_eq!((state.rts, state.attempts, state.rate()), (Rts::On, 7, Some("11 Mbit/s")));
        assert_eq!(state.radio.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["mac.profile", "radio.rate"]);
    }
}
