//! Recognition of files that people give instead of a dump, with advice on what to give: other
//! commands of the same programs, other formats of a table, files that are not text.

/// Kinds of files that are not text, by their first bytes, with a sentence for people.
const BYTES: [(&[u8], &str); 7] = [
    (&[0x1f, 0x8b], "this file is compressed (gzip): unpack it with gunzip first"),
    (b"PK\x03\x04", "this is a spreadsheet or a zip archive: save the table as CSV, or unpack it"),
    (&[0xff, 0xfe], UTF_16),
    (&[0xfe, 0xff], UTF_16),
    (&[0xd4, 0xc3, 0xb2, 0xa1], CAPTURE),
    (&[0xa1, 0xb2, 0xc3, 0xd4], CAPTURE),
    (&[0x0a, 0x0d, 0x0d, 0x0a], CAPTURE),
];
const UTF_16: &str = "this text is in UTF-16: save it as UTF-8 (in a spreadsheet: \"CSV UTF-8\")";
const CAPTURE: &str = "this is a capture of packets, which has no links: give a dump of the routing daemon, or the output of `iw dev wlan0 station dump`";

/// Sentence for a file that is not text, chosen by its first bytes. `None` if they are not known.
pub fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    BYTES.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, why)| *why)
}

/// Outputs of other commands: words of one line, and advice on what to give instead.
const COMMANDS: [(&[&str], &str); 7] = [
    (&["Client", "VID"], "this is batctl's table of clients (tg or tl): give the output of `batctl o`"),
    (
        &["dBm", "(SNR"],
        "this is the list of iwinfo, which does not have the number of retries: give the output of `iw dev wlan0 station dump`",
    ),
    (
        &["DEST", "ADDR", "NEXT", "HOP"],
        "these are paths of 802.11s, without their links: give the output of `iw dev wlan0 station dump`",
    ),
    (&["lladdr"], NEIGHBOURS),
    (&["HWaddress", "Iface"], NEIGHBOURS),
    (&["Kernel", "IP", "routing", "table"], ROUTES),
    (&["default", "via"], ROUTES),
];
const NEIGHBOURS: &str = "this is a table of addresses (ip neigh, arp), which has nothing about the radio: give the output of `iw dev wlan0 station dump`, or a dump of the routing daemon";
const ROUTES: &str = "this is a table of routes, which has nothing about the links: give the output of `iw dev wlan0 station dump`, or a dump of the routing daemon";

/// Sentence for a text that is not a dump. `None` if the kind of the text is not known.
pub fn of_text(text: &str) -> Option<String> {
    if text.lines().any(|line| line.starts_with("BSS ") && line.contains("(on ")) {
        return Some("this is a scan (`iw dev wlan0 scan`), which lists networks but not the quality of links: give the output of `iw dev wlan0 station dump`".to_owned());
    }
    let has = |words: &[&str]| {
        text.lines().any(|line| words.iter().all(|word| line.split_whitespace().any(|found| found.starts_with(word))))
    };
    if let Some((_, why)) = COMMANDS.iter().find(|(words, _)| has(words)) {
        return Some((*why).to_owned());
    }
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    for separator in [';', '\t'] {
        let titles: Vec<String> = first.split(separator).map(|title| title.trim().to_ascii_lowercase()).collect();
        if ["from", "to"].iter().all(|end| titles.iter().any(|title| title == end)) {
            let name = if separator == ';' { "semicolons" } else { "tabs" };
            return Some(format!(
                "the columns of this table are separated by {name}: use commas, and decimal points in numbers"
            ));
        }
    }
    let titles: Vec<&str> = first.split(',').map(str::trim).collect();
    let is_title = |title: &&str| title.chars().next().is_some_and(char::is_alphabetic) && title.len() < 40;
    (titles.len() > 1 && titles.iter().all(is_title) && text.lines().count() > 1)
        .then(|| format!("this table has the columns {}: name the columns of the two ends of a link from and to; a map has x_m and y_m, or latitude and longitude", titles.join(", ")))
}
