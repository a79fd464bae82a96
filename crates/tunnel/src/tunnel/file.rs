//! Configuration file of tunnels: TOML, with a table for each end. Its keys are the options of the
//! command line and are passed to the same parser. There is therefore one list of options, with one
//! meaning and one check.

use super::watch::Watching;
use super::{Connect, Listen};
use clap::builder::ArgAction;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Command, FromArgMatches};
use meshpace_settings::diagnostic::{Problem, Problems};
use meshpace_settings::value::{Entry as Pair, Kind, Origin, Table, Value};
use meshpace_settings::{Refusal, Source, nearest, one_of};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Longest file, bytes.
const MOST: u64 = 1 << 20;

/// Longest name of an entry, bytes. The name is in every line of the log and in every series of the
/// metrics.
const LONGEST_NAME: usize = 64;

/// Largest number of entries of a file.
const MOST_ENTRIES: usize = 256;

/// Keys, of both kinds of entries, that can change without a restart of the end.
const GENTLE: [&str; 4] = ["forward", "datagrams", "socks", "allow"];

/// Configuration of one end of a tunnel.
#[derive(Clone, Debug)]
pub enum What {
    /// The end where streams leave the tunnel.
    Listen(Box<Listen>),
    /// The end where streams enter the tunnel.
    Connect(Box<Connect>),
}

/// Configuration of an end, with a name.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the end in logs and metrics; empty if the end comes from the command line.
    pub name: String,
    /// Kind of the end, with its options.
    pub what: What,
    /// Options and contents of files that require a restart of the end if they change.
    pub identity: Identity,
}

/// Identity of an end: its options, except those that can change while it runs, and the contents of
/// its key files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    options: BTreeMap<String, Vec<String>>,
    contents: BTreeMap<String, Vec<u8>>,
}

/// Content of a configuration file.
#[derive(Clone, Debug)]
pub struct File {
    /// Log and metrics of the process.
    pub watching: Watching,
    /// Ends, in the order of the file.
    pub entries: Vec<Entry>,
}

/// Reason why a file is refused.
#[derive(Debug)]
pub enum Wrong {
    /// The file cannot be read, or one of its ends is not valid.
    Io(io::Error),
    /// The content is wrong.
    Refused(Box<Refusal>),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Wrong {
        Wrong::Io(error)
    }
}

impl Wrong {
    /// Text for a terminal, with the faulty lines of the file.
    pub fn text(&self, color: bool) -> String {
        match self {
            Wrong::Io(error) => format!("meshpace: {error}"),
            Wrong::Refused(refusal) => refusal.render(color),
        }
    }

    /// Text for a log: one line for each fault.
    pub fn lines(&self) -> Vec<String> {
        let refusal = match self {
            Wrong::Io(error) => return vec![error.to_string()],
            Wrong::Refused(refusal) => refusal,
        };
        let line = |problem: &Problem| {
            let at = if let Some(Origin::File(span)) = &problem.origin { span.start } else { 0 };
            let before = refusal.source.text.as_bytes().iter().take(at);
            let number = 1 + before.filter(|byte| **byte == b'\n').count();
            format!("{}:{number}: {}: {}", refusal.source.name, problem.message, problem.expected)
        };
        refusal.problems.iter().map(line).collect()
    }
}

/// Reads a configuration file.
///
/// # Errors
///
/// The file cannot be read, or it contains faults. All faults are returned, each with its line.
pub fn read(file: &Path) -> Result<File, Wrong> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let bytes = read_bounded(file).map_err(explain)?;
    let name = file.display().to_string();
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: not UTF-8"));
    let text = String::from_utf8(bytes).map_err(not_text)?;
    let directory = file.parent().unwrap_or(Path::new("."));
    parse(Source { name, text, sets: Vec::new() }, directory).map_err(|refusal| Wrong::Refused(Box::new(refusal)))
}

fn read_bounded(file: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} KiB", MOST >> 10))),
        false => Ok(bytes),
    }
}

/// Parses a text. Relative file names in it refer to `directory`.
pub(super) fn parse(source: Source, directory: &Path) -> Result<File, Refusal> {
    let problems = Problems::default();
    let file = parse_into(&source, directory, &problems);
    match (file, problems.into_vec()) {
        (Some(file), problems) if problems.is_empty() => Ok(file),
        (_, problems) => Err(Refusal { source, problems }),
    }
}

fn parse_into(source: &Source, directory: &Path, problems: &Problems) -> Option<File> {
    let (document, errors) = toml::de::DeTable::parse_recoverable(&source.text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        problems.at(&Origin::File(span), format!("not TOML: {}", error.message()), "here");
    }
    if !errors.is_empty() {
        return None;
    }
    let root = Table::from_toml(document.get_ref(), &Origin::File);
    let reader = Reader { directory, problems };
    let whole = Origin::File(0..0);
    let watching = reader.options::<Watching>("", &root, &whole, &["listen", "connect"]);
    let mut entries = Vec::new();
    for (kind, pair) in ["listen", "connect"].iter().filter_map(|kind| Some((*kind, root.entry(kind)?))) {
        for (number, (table, origin)) in reader.tables(kind, pair).into_iter().enumerate() {
            let path = format!("{kind}.{number}");
            let name = reader.name(&path, table);
            let read = match kind {
                "listen" => reader
                    .options::<Listen>(&path, table, origin, &["name"])
                    .map(|(listen, identity)| (What::Listen(Box::new(listen)), identity)),
                _ => reader
                    .options::<Connect>(&path, table, origin, &["name"])
                    .map(|(connect, identity)| (What::Connect(Box::new(connect)), identity)),
            };
            let Some((what, identity)) = read else { continue };
            let name = name.unwrap_or_else(|| what.to_string());
            if entries.iter().any(|entry: &Entry| entry.name == name) {
                let named = table.get("name").map_or(origin, |name| &name.origin);
                let message = format!("{path}.name: another entry also has the name {name}");
                problems.at(named, message, "a different name for each entry");
            }
            entries.push(Entry { name, what, identity });
        }
    }
    if entries.is_empty() && problems.count() == 0 {
        problems.at(&whole, "nothing to run", "a table [[listen]] or [[connect]]");
    }
    if entries.len() > MOST_ENTRIES {
        problems.at(&whole, format!("{} entries", entries.len()), format!("{MOST_ENTRIES} at most"));
    }
    watching.map(|(watching, _)| File { watching, entries })
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Listen(listen) => write!(f, "listen-{}", listen.port),
            What::Connect(connect) => f.write_str(&connect.host),
        }
    }
}

/// Reads tables and records the faults.
struct Reader<'a> {
    directory: &'a Path,
    problems: &'a Problems,
}

/// Name of a key with the path of its table, for the report of a fault.
fn at(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Reader<'_> {
    /// Tables of a list of tables.
    fn tables<'t>(&self, kind: &str, pair: &'t Pair) -> Vec<(&'t Table, &'t Origin)> {
        let list = if let Kind::Array(list) = &pair.value.kind { &list[..] } else { std::slice::from_ref(&pair.value) };
        let table = |value: &'t Value| match &value.kind {
            Kind::Table(table) => Some((table, &value.origin)),
            _ => {
                let expected = format!("expected a table [[{kind}]]");
                self.problems.at(&value.origin, format!("{kind}: found {}", value.describe()), expected);
                None
            }
        };
        list.iter().filter_map(table).collect()
    }

    fn name(&self, path: &str, table: &Table) -> Option<String> {
        let value = table.get("name")?;
        let is_good = |name: &str| {
            (1..=LONGEST_NAME).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        };
        match &value.kind {
            Kind::String(name) if is_good(name) => return Some(name.clone()),
            _ => self.problems.at(
                &value.origin,
                format!("{path}.name: found {}", value.describe()),
                format!("1 to {LONGEST_NAME} letters, digits, dots, colons, - or _"),
            ),
        }
        None
    }

    /// Parses the options in a table. Returns them with the identity of the end. The table may also
    /// have the keys in `others`.
    fn options<T: Args + FromArgMatches>(
        &self,
        path: &str,
        table: &Table,
        origin: &Origin,
        others: &[&str],
    ) -> Option<(T, Identity)> {
        let mut command = T::augment_args(Command::new("entry").no_binary_name(true).disable_help_flag(true));
        // After this call arguments can be displayed.
        command.build();
        let before = self.problems.count();
        let (mut words, mut positional) = (Vec::new(), Vec::new());
        let mut identity = Identity::default();
        for Pair { key, origin, value } in &table.entries {
            if others.contains(&key.as_str()) {
                continue;
            }
            let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == key.as_str()) else {
                self.unknown(path, key, origin, &command, others);
                continue;
            };
            let Some(values) = self.values(path, arg, value) else { continue };
            if is_file(arg) && ["key", "peers", "secret"].contains(&key.as_str()) {
                // A missing file is reported by the code that needs it.
                let content = values.first().map(|file| read_bounded(Path::new(file)).unwrap_or_default());
                identity.contents.insert(key.clone(), content.unwrap_or_default());
            }
            if is_flag(arg) {
                words.extend(values.iter().filter(|value| *value == "true").filter_map(|_| option(arg, None)));
            } else if arg.is_positional() {
                positional.extend(values.clone());
            } else {
                words.extend(values.iter().filter_map(|value| option(arg, Some(value))));
            }
            if !GENTLE.contains(&key.as_str()) {
                identity.options.insert(key.clone(), values);
            }
        }
        if self.problems.count() > before {
            return None;
        }
        words.push("--".to_owned());
        words.extend(positional);
        let parsed = command.clone().try_get_matches_from(words).and_then(|matches| T::from_arg_matches(&matches));
        match parsed {
            Ok(options) => Some((options, identity)),
            Err(error) => {
                self.disagrees(path, table, origin, &command, &error);
                None
            }
        }
    }

    fn unknown(&self, path: &str, key: &str, origin: &Origin, command: &Command, others: &[&str]) {
        let known = command.get_arguments().map(|arg| arg.get_id().as_str()).filter(|id| *id != "version");
        let known: Vec<&str> = known.chain(others.iter().copied()).collect();
        let near = nearest(key, known.iter().copied());
        let expected =
            near.map_or_else(|| format!("one of {}", known.join(", ")), |near| format!("did you mean {near}?"));
        self.problems.at(origin, format!("{}: no such key", at(path, key)), expected);
    }

    /// Converts values of the file to values of the command line.
    fn values(&self, path: &str, arg: &Arg, value: &Value) -> Option<Vec<String>> {
        let takes_list = matches!(arg.get_action(), ArgAction::Append);
        let list = match &value.kind {
            Kind::Array(list) if takes_list => &list[..],
            _ => std::slice::from_ref(value),
        };
        let expected = expected(arg);
        let read = |value: &Value| {
            let parser = arg.get_value_parser().type_id();
            let is_whole =
                [TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>()].iter().any(|id| parser == *id);
            let is_text = parser == TypeId::of::<String>() || is_file(arg);
            let fits = match &value.kind {
                Kind::Bool(_) => is_flag(arg),
                Kind::Integer(_) => !is_flag(arg) && !is_text,
                Kind::Float(_) => !is_flag(arg) && !is_text && !is_whole,
                Kind::String(_) => !is_flag(arg) && !is_whole,
                Kind::Other(_) | Kind::Array(_) | Kind::Table(_) => false,
            };
            if !fits {
                let message = format!("{}: found {}", at(path, arg.get_id().as_str()), value.describe());
                self.problems.at(&value.origin, message, format!("expected {expected}"));
                return None;
            }
            let text = value.brief();
            Some(if is_file(arg) { self.directory.join(text).display().to_string() } else { text })
        };
        list.iter().map(read).collect()
    }

    /// Reports an error of the command line's parser about the options of a table, with the names
    /// of keys in place of options.
    fn disagrees(&self, path: &str, table: &Table, origin: &Origin, command: &Command, error: &clap::Error) {
        let strings = |kind: ContextKind| match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let named = strings(ContextKind::InvalidArg);
        let keys: Vec<String> = named.iter().flat_map(|shown| keys_of(command, shown)).collect();
        let first = keys.first().cloned().unwrap_or_default();
        let place = table.get(&first).map_or(origin, |value| &value.origin);
        let list = |keys: &[String]| one_of(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let (message, expected) = match error.kind() {
            ErrorKind::MissingRequiredArgument => {
                (format!("{}: missing", at(path, &first)), format!("{} in this table", list(&keys)))
            }
            ErrorKind::ArgumentConflict => {
                let others = strings(ContextKind::PriorArg);
                let others: Vec<String> = others.iter().flat_map(|shown| keys_of(command, shown)).collect();
                let message = format!("{}: cannot be combined with {}", at(path, &first), list(&others));
                (message, "one of them".to_owned())
            }
            _ => {
                let found = strings(ContextKind::InvalidValue).join(", ");
                let allowed = strings(ContextKind::ValidValue);
                let allowed = (!allowed.is_empty()).then(|| list(&allowed));
                let reason = std::error::Error::source(error).map(ToString::to_string).or(allowed);
                (format!("{}: found \"{found}\"", at(path, &first)), reason.unwrap_or_else(|| error.kind().to_string()))
            }
        };
        self.problems.at(place, message, expected);
    }
}

/// Keys of the options that a message of the command line's parser shows: `--peers <FILE>`, or
/// `<-L <...>|-D <...>>` for one of several.
fn keys_of(command: &Command, shown: &str) -> Vec<String> {
    let is_shown = |arg: &&Arg| shown == arg.to_string();
    let one = command.get_arguments().find(is_shown).map(|arg| arg.get_id().to_string());
    let of_group = || {
        let named = |arg: &&Arg| shown.contains('|') && shown.contains(&arg.to_string());
        command.get_arguments().filter(named).map(|arg| arg.get_id().to_string()).collect()
    };
    one.map_or_else(of_group, |key| vec![key])
}

/// Option in the form of the command line.
fn option(arg: &Arg, value: Option<&str>) -> Option<String> {
    let long = arg.get_long().map(|long| match value {
        Some(value) => format!("--{long}={value}"),
        None => format!("--{long}"),
    });
    long.or_else(|| arg.get_short().map(|short| format!("-{short}{}", value.unwrap_or_default())))
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn is_file(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// Text about the values that a key takes.
fn expected(arg: &Arg) -> String {
    let parser = arg.get_value_parser().type_id();
    let is_whole = [TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>()].iter().any(|id| parser == *id);
    let shown = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let one = match () {
        () if is_flag(arg) => "true or false".to_owned(),
        () if is_whole => "a whole number".to_owned(),
        () if is_file(arg) => "the name of a file, \"FILE\"".to_owned(),
        () => format!("a string, \"{shown}\""),
    };
    if matches!(arg.get_action(), ArgAction::Append) { format!("{one}, or a list of these") } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<File, String> {
        let source = Source { name: "tunnel.toml".into(), text: text.into(), sets: Vec::new() };
        parse(source, Path::new("/etc/meshpace")).map_err(|refusal| refusal.to_string())
    }

    const BOTH: &str = r#"
        log = "json"

        [[listen]]
        address = "::"
        port = 7801
        secret = "secret"
        channel_rate = "11 Mbit/s"

        [[connect]]
        name = "north"
        host = "north.example"
        forward = ["8080:intranet:80", "2222:intranet:22"]
        datagrams = ["5060:pbx:5060,reliable", "7777:robot:7777"]
        socks = "1080"
        key = "/keys/key"
        peers = "north.pub"
        window = 4
    "#;

    #[test]
    fn a_file_says_what_the_command_line_does() {
        let file = read_text(BOTH).unwrap();
        let [Entry { name, what: What::Listen(listen), .. }, Entry { name: north, what: What::Connect(connect), .. }] =
            &file.entries[..]
        else {
            panic!("{file:?}")
        };
        assert_eq!((name.as_str(), north.as_str()), ("listen-7801", "north"));
        assert_eq!((listen.port, listen.address.to_string()), (7801, "::".to_owned()));
        assert_eq!(listen.common.channel_rate, meshpace_core::Rate::from_mbps(11));
        // Relative file names refer to the directory of the configuration file.
        assert_eq!(listen.common.secret.as_deref(), Some(Path::new("/etc/meshpace/secret")));
        assert_eq!(connect.common.key.as_deref(), Some(Path::new("/keys/key")));
        assert_eq!((connect.forward.len(), &connect.socks[..]), (2, &["127.0.0.1:1080".to_owned()][..]));
        let [first, second] = &connect.datagrams[..] else { panic!("{connect:?}") };
        assert_eq!((first.class, second.target.as_str()), (meshpace_live::tunnel::Class::Reliable, "robot:7777"));
        assert_eq!(connect.common.window, Some(meshpace_transport::tpa::window::Rule::Fixed(4)));
        assert_eq!(connect.port, super::super::PORT, "the defaults are those of the command line");
    }

    #[test]
    fn every_option_of_an_end_can_be_written() {
        for command in [Listen::augment_args(Command::new("x")), Connect::augment_args(Command::new("x"))] {
            for arg in command.get_arguments() {
                assert!(arg.is_positional() || option(arg, Some("v")).is_some(), "{arg}");
                assert!(!expected(arg).is_empty());
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_line_key_and_expectation() {
        let wrong = |text: &str, what: &[&str]| {
            let said = read_text(text).expect_err(text);
            assert!(what.iter().all(|what| said.contains(what)), "{text}\n{said}\n{what:?}");
        };
        wrong("", &["nothing to run", "[[listen]]"]);
        wrong("[[listen]\nport = 1", &["not TOML", "tunnel.toml:1"]);
        wrong("[[listen]]\nsecert = \"x\"", &["listen.0.secert: no such key", "did you mean secret?", "tunnel.toml:2"]);
        wrong("[[listen]]\nport = \"x\"", &["listen.0.port", "expected a whole number", "tunnel.toml:2"]);
        wrong("[[listen]]\nport = 70000", &["listen.0.port", "70000", "65535", "tunnel.toml:2"]);
        wrong("[[listen]]\nplain = 1", &["listen.0.plain", "true or false"]);
        wrong("[[listen]]\nchannel_rate = \"2\"", &["listen.0.channel_rate", "Mbit/s", "tunnel.toml:2"]);
        wrong("[[listen]]\nkey = \"k\"", &["listen.0.peers: missing", "tunnel.toml:1"]);
        wrong("[[listen]]\nallow = \"any\"\nsecret = \"x\"\nplain = true", &["cannot be combined with", "secret"]);
        wrong("[[connect]]\nforward = \"1:a:2\"", &["connect.0.host: missing", "tunnel.toml:1"]);
        wrong("[[connect]]\nhost = \"a\"", &["forward, datagrams, socks or transparent", "missing"]);
        wrong(
            "[[connect]]\nhost = \"a\"\nforward = [\"1:a:2\", \"x\"]",
            &["connect.0.forward", "[ADDRESS:]PORT:HOST:PORT"],
        );
        wrong(
            "[[connect]]\nhost = \"a\"\ndatagrams = \"1:a:2,fast\"",
            &["connect.0.datagrams", "reliable, latest or expires=SECONDS", "tunnel.toml:3"],
        );
        wrong("log = \"loud\"\n[[listen]]\nallow = \"any\"", &["log", "text or json", "tunnel.toml:1"]);
        wrong("listen = 3", &["expected a table [[listen]]"]);
        wrong("[[listen]]\nname = \"a b\"\nallow = \"any\"", &["listen.0.name", "letters"]);
        wrong(
            "[[listen]]\nallow = \"any\"\n[[listen]]\nallow = \"any\"",
            &["another entry also has the name listen-7800"],
        );
        // All faults are reported, not only the first.
        wrong("[[listen]]\nport = \"x\"\nlast = 1", &["listen.0.port", "listen.0.last"]);
    }

    #[test]
    fn what_changes_under_way_is_no_part_of_what_an_end_is_made_of() {
        let identity = |text: &str| read_text(text).unwrap().entries[1].identity.clone();
        let before = identity(BOTH);
        assert_eq!(before, identity(&BOTH.replace("1080", "1081").replace("2222", "2223").replace(",reliable", "")));
        assert_ne!(before, identity(&BOTH.replace("window = 4", "window = 5")));
        assert_ne!(before, identity(&BOTH.replace("north.example", "south.example")));
    }
}
