//! Plots in half of the bytes: the library that draws them writes one element per dash and tick and the same font on
//! every text. What is seen stays the same.

use std::fmt::Write;

const POINTS: &str = " points=\"";

/// The same picture: lines of one look that follow each other become one path, and what every element has is left out.
pub fn compact(svg: &str) -> String {
    let mut short = String::with_capacity(svg.len() / 2);
    let mut path: Option<(&str, String)> = None;
    for line in svg.lines() {
        let opened = line.strip_prefix("<polyline ").and_then(|rest| rest.strip_suffix("\"/>"));
        // Where lines of a path cross, the colour is laid on once; it must be opaque to be the same.
        let opaque = opened.and_then(|rest| rest.split_once(POINTS)).filter(|(look, _)| look.contains("opacity=\"1\""));
        let Some((look, points)) = opaque else {
            close(&mut short, path.take());
            short.push_str(line);
            short.push('\n');
            continue;
        };
        if path.as_ref().is_none_or(|(other, _)| *other != look) {
            close(&mut short, path.replace((look, String::new())));
        }
        if let Some((_, drawn)) = &mut path {
            drawn.push('M');
            drawn.push_str(points.trim_end());
        }
    }
    close(&mut short, path);
    // The page sets the font; a text that follows its tag on the next line may stand on the same.
    short.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "").replace("\n</text>", "</text>")
}

fn close(svg: &mut String, path: Option<(&str, String)>) {
    if let Some((look, drawn)) = path {
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<path {look} d=\"{drawn}\"/>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_look_become_one_path() {
        let look = "fill=\"none\" opacity=\"1\" stroke=\"#000000\" stroke-width=\"1\"";
        let faint = "fill=\"none\" opacity=\"0.5\" stroke=\"#000000\" stroke-width=\"1\"";
        let svg = format!(
            "<svg width=\"4\">\n<polyline {look} points=\"1,2 3,4 \"/>\n<polyline {look} points=\"5,6 7,8 9,10 \"/>\n\
             <text font-family=\"sans-serif\" opacity=\"1\" fill=\"#000000\">\n50\n</text>\n\
             <polyline {look} points=\"0,0 1,1 \"/>\n<polyline {faint} points=\"0,0 1,1 \"/>\n</svg>\n"
        );
        let kept = "fill=\"none\" stroke=\"#000000\" stroke-width=\"1\"";
        let expected = format!(
            "<svg width=\"4\">\n<path {kept} d=\"M1,2 3,4M5,6 7,8 9,10\"/>\n<text fill=\"#000000\">\n50</text>\n\
             <path {kept} d=\"M0,0 1,1\"/>\n<polyline {faint} points=\"0,0 1,1 \"/>\n</svg>\n"
        );
        assert_eq!(compact(&svg), expected);
    }
}
