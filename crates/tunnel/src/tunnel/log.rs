//! Log of a tunnel: one line per event on standard error, for users or for programs. Text that
//! comes from strangers can neither begin a new line nor control the terminal. The number of lines
//! per second is limited.

use clap::ValueEnum;
use meshpace_core::{Duration, Time};
use meshpace_live::Clock;
use serde_json::json;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Largest number of lines per second, which may be written in one burst. Further events are only
/// counted.
const LINES_PER_SECOND: u32 = 100;

/// Longest message, characters.
const LONGEST: usize = 1000;

/// Format of a line.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// `meshpace: NAME: MESSAGE`
    #[default]
    Text,
    /// An object with `time` (seconds since 1970), `level`, `tunnel` (the name of the entry, or null) and `message`
    Json,
}

/// Importance of an event.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// An end, or a part of it, does not work.
    Error,
    /// A stream or a session failed.
    Warn,
    /// Start and end of ends and sessions, and reloads.
    #[default]
    Info,
    /// Every stream.
    Debug,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// State of the log: the format of lines, and the number of lines that may still be written.
struct Log {
    format: Format,
    level: Level,
    left: u32,
    since: Time,
    untold: u64,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { format: Format::Text, level: Level::Info, left: LINES_PER_SECOND, since: Time::ZERO, untold: 0 });

/// Sets the format of lines. Events less important than `level` are not written from now on.
pub fn set(format: Format, level: Level) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    (log.format, log.level) = (format, level);
}

/// Logs an event of the end called `tunnel`; of the whole process if that is empty.
pub fn say(level: Level, tunnel: &str, message: &str) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = log.lines(Clock.now(), level, tunnel, message);
    // An error is ignored: if standard error is closed, nobody reads it.
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Logs a warning. The message itself names what it is about.
pub fn warn(message: &str) {
    say(Level::Warn, "", message);
}

impl Log {
    /// Line of an event, after a line about suppressed events if there were any.
    fn lines(&mut self, now: Time, level: Level, tunnel: &str, message: &str) -> String {
        if level > self.level {
            return String::new();
        }
        let mut lines = String::new();
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.left, self.since) = (LINES_PER_SECOND, now);
            let untold = std::mem::take(&mut self.untold);
            if untold > 0 {
                lines += &self.line(
                    Level::Warn,
                    "",
                    &format!("{untold} more events were not logged, because there were too many"),
                );
            }
        }
        // Errors are always written. No stranger can cause them at will.
        if self.left == 0 && level > Level::Error {
            self.untold += 1;
            return lines;
        }
        self.left = self.left.saturating_sub(1);
        lines + &self.line(level, tunnel, message)
    }

    fn line(&self, level: Level, tunnel: &str, message: &str) -> String {
        let message = one_line(message);
        match self.format {
            Format::Text if tunnel.is_empty() => format!("meshpace: {message}\n"),
            Format::Text => format!("meshpace: {tunnel}: {message}\n"),
            Format::Json => {
                #[expect(clippy::disallowed_methods, reason = "a log tells when something happened; no result does")]
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let time = since.as_millis() as f64 / 1e3;
                let tunnel = Some(tunnel).filter(|tunnel| !tunnel.is_empty());
                format!("{}\n", json!({"time": time, "level": level.name(), "tunnel": tunnel, "message": message}))
            }
        }
    }
}

/// The text without control characters and without characters that change the writing direction,
/// cut to the longest length.
fn one_line(text: &str) -> String {
    let shown = meshpace_command::printable::printable(text);
    let mut line = String::new();
    for character in shown.chars().take(LONGEST) {
        if character.is_control() { line.extend(character.escape_unicode()) } else { line.push(character) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(format: Format, level: Level) -> Log {
        Log { format, level, left: LINES_PER_SECOND, since: Time::ZERO, untold: 0 }
    }

    #[test]
    fn an_event_is_one_line_whatever_a_stranger_has_in_it() {
        let hostile = "x\n\u{1b}[2Jmeshpace: all is well\r\u{202e}\u{1b}[31mred";
        for format in [Format::Text, Format::Json] {
            let lines = log(format, Level::Info).lines(Time::ZERO, Level::Warn, "north", hostile);
            assert_eq!(lines.matches('\n').count(), 1, "{lines:?}");
            assert!(!lines.trim_end_matches('\n').chars().any(char::is_control), "{lines:?}");
            assert!(!lines.contains('\u{202e}') && lines.contains("north"), "{lines:?}");
        }
        let lines = log(Format::Json, Level::Info).lines(Time::ZERO, Level::Error, "", "x\"y");
        let object: serde_json::Value = serde_json::from_str(&lines).unwrap();
        assert_eq!((&object["level"], &object["message"]), (&"error".into(), &"x\"y".into()));
        assert!(object["tunnel"].is_null() && object["time"].is_f64(), "{object}");
        let long = "é".repeat(10 * LONGEST);
        assert!(
            log(Format::Text, Level::Info).lines(Time::ZERO, Level::Info, "", &long).chars().count() < LONGEST + 20
        );
    }

    #[test]
    fn what_nobody_wants_to_know_is_not_told_and_too_much_is_counted() {
        let mut log = log(Format::Text, Level::Warn);
        assert_eq!(log.lines(Time::ZERO, Level::Info, "", "x"), "");
        let told = (0..1000).filter(|_| !log.lines(Time::ZERO, Level::Warn, "", "x").is_empty()).count();
        assert_eq!(told, LINES_PER_SECOND as usize);
        assert_eq!(log.lines(Time::ZERO, Level::Error, "", "broken"), "meshpace: broken\n");
        let later = Time::ZERO + Duration::from_secs(1);
        let lines = log.lines(later, Level::Warn, "", "x");
        assert_eq!(lines, "meshpace: 900 more events were not logged, because there were too many\nmeshpace: x\n");
    }
}
