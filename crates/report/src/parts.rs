//! Small parts of a page: verdicts in their colours, numbers, and markers of transports.

use super::chart::{self, Style};
use super::palette::{self, Look};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use meshpace_lab::record::{make_directory, write_whole};
use meshpace_lab::register::Verdict;
use meshpace_lab::statistics::{self, Estimate};
use std::path::Path;

/// Creates a page from its title, its style sheet and its element `body`.
pub fn page(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) (PreEscaped(palette::dark_style())) }
            }
            (body)
        }
    };
    page.into_string()
}

/// Writes a file of a page. The file is written completely or not at all.
///
/// # Errors
/// If the file cannot be written. The message contains its path.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let directory = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(format!("{}: not the name of a file", path.display()));
    };
    make_directory(directory).map_err(|error| error.to_string())?;
    write_whole(directory, name, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Class of a verdict in the style sheet.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::InShape => "in-shape",
        Verdict::Differs => "differs",
        Verdict::CannotBeTold => "cannot-be-told",
        Verdict::CannotBeJudged => "cannot-be-judged",
    }
}

/// A verdict in its colour, with a sign that has the same meaning without colour.
pub fn chip(verdict: Verdict) -> Markup {
    let sign = match verdict {
        Verdict::Reproduced => "✓",
        Verdict::InShape => "≈",
        Verdict::Differs => "✗",
        Verdict::CannotBeTold => "?",
        Verdict::CannotBeJudged => "–",
    };
    html! { span class=(format!("chip {}", class(verdict))) { (sign) " " span.words { (verdict.words()) } } }
}

/// Replaces hyphens before digits by minus signs, unless they are part of a name such as TPA-2.
pub fn signs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let minus = c == '-' && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if minus && !out.ends_with(|before: char| before.is_alphanumeric() || before == '*') {
            '\u{2212}'
        } else {
            c
        });
    }
    out
}

/// A mean with the half width of its interval.
pub fn number(estimate: &Estimate) -> Markup {
    if estimate.mean.is_nan() {
        return html! { "–" };
    }
    html! {
        (digits(estimate.mean))
        @if estimate.half_width.is_finite() { " " small { "± " (digits(estimate.half_width)) } }
    }
}

/// Formats a number with its significant digits. A value that could not be measured is a dash.
pub fn digits(value: f64) -> String {
    signs(&statistics::digits(value))
}

/// Line and marker of a transport, as in the plots.
pub fn swatch(look: &Look) -> Markup {
    let style = Style::from(*look);
    let mut drawn = String::new();
    chart::marker(&mut drawn, 15.0, 8.0, &style);
    html! {
        svg viewBox="0 0 30 16" aria-hidden="true" {
            line x1="0" y1="8" x2="30" y2="8" stroke=(style.color) stroke-width="2.5" stroke-dasharray=(style.dashes) {}
            (PreEscaped(drawn))
        }
    }
}

/// Marker of published values.
pub fn ring() -> Markup {
    let mut drawn = String::new();
    chart::published(&mut drawn, 15.0, 8.0, "#777");
    html! { svg viewBox="0 0 30 16" aria-hidden="true" {
        line x1="0" y1="8" x2="30" y2="8" stroke="#777" stroke-width="1.3" stroke-dasharray=(chart::PUBLISHED_DASHES) {}
        (PreEscaped(drawn))
    } }
}

/// Formats a duration, such as "3 min 20 s".
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_hyphens() {
        assert_eq!(signs("TPA-2 with -3.5 (-4 to -3)"), "TPA-2 with \u{2212}3.5 (\u{2212}4 to \u{2212}3)");
        assert_eq!(digits(f64::NAN), "–");
        assert_eq!((digits(0.0), digits(306.31), digits(0.0123)), ("0.0".into(), "306.3".into(), "0.012".into()));
    }

    #[test]
    fn times_are_told_in_their_size() {
        assert_eq!(
            (duration(59.4), duration(200.0), duration(7260.0)),
            ("59 s".into(), "3 min 20 s".into(), "2 h 1 min".into())
        );
    }
}
