//! Reads the files, pipes or kit directory that the user names, and finds nodes by number, name or
//! address.

use meshpace_lab::advise::Mesh;
use meshpace_lab::field::dumps::{self, Dump};
use meshpace_lab::field::kit::{self, Run};
use meshpace_lab::field::state::State;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Name that stands for standard input in the list of files.
const STANDARD_INPUT: &str = "-";

/// Description of the mesh, and measurements of it.
#[derive(Default)]
pub struct Known {
    /// The mesh as routing programs describe it; `None` if it is a map with positions.
    pub dump: Option<Dump>,
    /// Map with the positions of nodes: its name in the scenario, the name of its copy in the
    /// directory of `--keep`, and its content.
    pub map: Option<(String, &'static str, Vec<u8>)>,
    /// Measurements of the measuring kit.
    pub runs: Vec<Run>,
    /// Sentences about measurements that are missing or failed.
    pub notes: Vec<String>,
    /// State of the mesh, as the kit found it.
    pub state: State,
}

impl Known {
    /// Name of a node in messages.
    pub fn name(&self, node: usize) -> String {
        let named = self.dump.as_ref().and_then(|dump| dump.nodes.get(node).cloned());
        named.unwrap_or_else(|| node.to_string())
    }

    /// Mesh of the scenario, if it is a map with positions.
    pub fn places(&self) -> Option<Mesh> {
        self.map.as_ref().map(|(name, ..)| Mesh::Places(name.clone()))
    }
}

/// Columns of a map that contain the position of a node.
const PLACES: [&str; 8] = ["x", "x_m", "lat", "latitude", "lon", "lng", "long", "longitude"];

/// Reads all files, or the directory of the measuring kit.
///
/// # Errors
/// A sentence that names the file as the user did, and the line.
pub fn read(files: &[PathBuf]) -> Result<Known, String> {
    if let Some(directory) = files.iter().find(|file| file.is_dir()) {
        if files.len() > 1 {
            return Err(format!(
                "{}: a directory of the measuring kit cannot be combined with other inputs",
                directory.display()
            ));
        }
        let kit = kit::read(directory)?;
        let dump = Some(kit.dump);
        return Ok(Known { dump, runs: kit.runs, notes: kit.notes, state: kit.state, ..Known::default() });
    }
    match files {
        [file] => single(file),
        _ => several(files),
    }
}

/// Reads a single file, which is a map or a dump.
fn single(file: &Path) -> Result<Known, String> {
    let bytes = bytes_of(file)?;
    let extension = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    let titles: Vec<String> =
        head.lines().next().unwrap_or_default().split(',').map(|title| title.trim().to_ascii_lowercase()).collect();
    let has = |name: &str| titles.iter().any(|title| title == name);
    let is_table = has("from") && has("to");
    let is_graphml = extension == "graphml" || head.contains("<graphml");
    let is_csv = !is_table && titles.len() > 1 && titles.iter().any(|title| PLACES.contains(&title.as_str()));
    if is_graphml || is_csv {
        return Ok(of_map(file, if is_csv { "map.csv" } else { "map.graphml" }, bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let has_places = ["\"latitude\"", "\"lat\"", "\"x_m\""].iter().any(|key| text.contains(key));
    match dumps::read(&bytes) {
        // The links have no metric, but the nodes have positions. The model of the radio then
        // decides which nodes hear each other.
        Ok(dump) if dump.metric == dumps::Metric::Hops && has_places && !is_table => {
            Ok(of_map(file, "map.json", bytes))
        }
        Ok(dump) => Ok(of_dump(dump.in_file(&file.display().to_string()))),
        Err(_) if head.contains("\"nodes\"") && has_places => Ok(of_map(file, "map.json", bytes)),
        Err((place, why)) => Err(format!("{}:{place}: {why}", file.display())),
    }
}

fn of_dump(dump: Dump) -> Known {
    Known { dump: Some(dump), ..Known::default() }
}

/// Makes the description of a map. In the scenario it has the name that the user gave, with the
/// extension of its kind appended if the name has another extension.
fn of_map(file: &Path, kind: &'static str, bytes: Vec<u8>) -> Known {
    let end = |name: &str| name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let given = file.display().to_string();
    let is_known = end(&given) == end(kind) || [end(&given), end(kind)] == ["xml", "graphml"];
    let name = if is_known { given } else { format!("{given}.{}", end(kind)) };
    Known { map: Some((name, kind, bytes)), ..Known::default() }
}

/// Reads the dumps of several nodes. Each node has the name of its file.
fn several(files: &[PathBuf]) -> Result<Known, String> {
    let mut parts = Vec::new();
    for (file, title) in files.iter().zip(titles(files)) {
        let dump =
            dumps::read(&bytes_of(file)?).map_err(|(place, why)| format!("{}:{place}: {why}", file.display()))?;
        if dump.is_anonymous() {
            let command = match dump.program {
                "iw" => "put the output of `iw dev` before it",
                "batctl" => {
                    "give the output of `batctl o`, whose first line has them, or put that of `ip -o link` before it"
                }
                _ => "put the output of `ip -o addr` before it",
            };
            return Err(format!(
                "{}:1: this dump does not show the addresses of the router that made it, so links of other routers to it cannot be recognised; {command}",
                file.display()
            ));
        }
        parts.push((title, dump.in_file(&file.display().to_string())));
    }
    Ok(of_dump(dumps::merge(&parts)))
}

/// True for standard input and for pipes of a shell, whose file names do not name a node.
fn is_nameless(file: &Path) -> bool {
    let is_pipe = || std::fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir());
    file == Path::new(STANDARD_INPUT) || file.starts_with("/dev/fd") || file.starts_with("/proc") || is_pipe()
}

/// Names of nodes, derived from the names of their files. It is the stem, or as much of the path as
/// is needed if two files have the same stem. Pipes have an empty name.
fn titles(files: &[PathBuf]) -> Vec<String> {
    let title = |file: &PathBuf, parts: usize| {
        if is_nameless(file) {
            return String::new();
        }
        let words: Vec<String> =
            file.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        words[words.len().saturating_sub(parts)..].join("/")
    };
    let distinct: BTreeSet<&PathBuf> = files.iter().filter(|file| !is_nameless(file)).collect();
    let is_clear = |parts: &usize| {
        let of_all: BTreeSet<String> = distinct.iter().map(|file| title(file, *parts)).collect();
        of_all.len() == distinct.len()
    };
    let parts = (1..=16).find(is_clear);
    // Files that differ only in their extensions keep their whole names.
    let whole = |file: &PathBuf| if is_nameless(file) { String::new() } else { file.display().to_string() };
    files.iter().map(|file| parts.map_or_else(|| whole(file), |parts| title(file, parts))).collect()
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, String> {
    if file == Path::new(STANDARD_INPUT) {
        let most = meshpace_scenario::LARGEST_FILE;
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("{STANDARD_INPUT}: {error}"))?;
        return match bytes.len() as u64 > most {
            true => Err(format!("{STANDARD_INPUT}: longer than {} MiB", most >> 20)),
            false => Ok(bytes),
        };
    }
    meshpace_scenario::read_file(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Parses the ends of a flow in `--flow`.
///
/// # Errors
/// A sentence, if the text is not a pair of nodes, if a node does not exist, or if both nodes are
/// the same.
pub fn ends(flow: &str, dump: Option<&Dump>) -> Result<(usize, usize), String> {
    let expected = || format!("--flow {flow}: expected FROM,TO, two nodes");
    let (from, to) = flow.split_once(',').ok_or_else(expected)?;
    let node = |word: &str| {
        let word = word.trim();
        let named = dump.and_then(|dump| dump.find(word));
        let unknown = || match dump {
            Some(dump) => format!("--flow {flow}: there is no node \"{word}\"; the nodes are {}", listed(&dump.nodes)),
            None => expected(),
        };
        let number = || word.parse::<usize>().ok();
        let found = named.or_else(number).ok_or_else(unknown)?;
        match dump.map(|dump| dump.nodes.len()) {
            Some(nodes) if found >= nodes => {
                Err(format!("--flow {flow}: the mesh has the nodes 0 to {}", nodes.saturating_sub(1)))
            }
            _ => Ok(found),
        }
    };
    let (from, to) = (node(from)?, node(to)?);
    match from == to {
        true => Err(format!("--flow {flow}: both ends are the same node")),
        false => Ok((from, to)),
    }
}

/// Lists the first names of a long list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_one_stem_are_told_apart_by_their_directories() {
        let of = |files: &[&str]| titles(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/roof.txt", "b/mill.txt"]), ["roof", "mill"]);
        assert_eq!(of(&["roof/batctl.txt", "mill/batctl.txt"]), ["roof/batctl", "mill/batctl"]);
        assert_eq!(of(&["roof.txt", "roof.json"]), ["roof.txt", "roof.json"]);
        assert_eq!(of(&["-", "/dev/fd/63", "roof.txt"]), ["", "", "roof"]);
        assert_eq!(of(&["x/y/d", "z/y/d", "w"]), ["x/y/d", "z/y/d", "w"]);
    }
}
