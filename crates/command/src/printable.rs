//! Text from untrusted sources on a terminal. Names of targets, titles of scenarios and names in
//! records may contain sequences that move the cursor, hide earlier output, or make the terminal
//! send input in the reader's place.

use std::borrow::Cow;

/// Returns the text with every control character written as an escape (`\u{1b}`), except line ends,
/// tabs and sequences that only set colours (ECMA-48, 8.3.117: SGR). Marks that change the
/// direction of writing are escaped, too.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = colour(rest).unwrap_or(character.len_utf8());
        let (piece, later) = rest.split_at(length);
        if length == character.len_utf8() && is_hidden(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push_str(piece);
        }
        rest = later;
    }
    Cow::Owned(shown)
}

fn is_hidden(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control() && !matches!(character, '\n' | '\t')
}

/// Length in bytes of the colour sequence with which the text begins, such as `ESC [ 1 ; 33 m`;
/// `None` if it begins with something else.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_only_shows_stays() {
        for text in ["", "a → b, ± 3 %\n\tx", "\u{1b}[1;33mSTARVED\u{1b}[0m\n", "\u{1b}[m"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn what_acts_is_spelled_out() {
        for (text, shown) in [
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("over\rwritten", "over\\u{d}written"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}[3\u{1b}[31m", "\\u{1b}[3\u{1b}[31m"),
            ("evil\u{202e}txt", "evil\\u{202e}txt"),
            ("\u{7f}\u{8}", "\\u{7f}\\u{8}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
