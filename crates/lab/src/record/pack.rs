//! Archive of a directory of records: one compressed tar file. Its bytes depend only on the content
//! and the name of the directory.

use super::archive::Archive;
use super::directory::{MANIFEST, Manifest, RECORDS, quoted};
use super::kept::{self, FILES};
use super::write::write_whole_by;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Name of the page for a person who unpacks the archive.
const README: &str = "README.txt";
/// Modification time of all files in the archive, 2000-01-01. The archive does not reveal when it
/// was made.
const TIME: u64 = 946_684_800;

/// Content of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Number of records.
    pub records: usize,
    /// Number of files that the scenarios name.
    pub files: usize,
    /// Name of the directory that unpacking creates.
    pub name: String,
}

/// Writes the records of a finished directory, its manifest and the files that its scenarios name
/// into `out`. An `anonymous` archive leaves out the name of the machine, the number of jobs and
/// the time that the runs took.
///
/// # Errors
/// If the directory is unfinished or damaged, if a file is missing, and any error of the file
/// system.
pub fn pack(directory: &Path, out: &Path, anonymous: bool) -> Result<Packed, String> {
    let shown = |why: String| format!("{}: {why}", directory.display());
    let archive = Archive::read(directory)?.ok_or_else(|| shown("it has no record yet".into()))?;
    if !archive.is_finished {
        let (scenario, place) = (&archive.manifest.scenario, quoted(&directory.display().to_string()));
        let resume = format!("`meshpace run FILE --out {place}`");
        return Err(shown(format!(
            "it is unfinished: {resume} with the file and the options of {scenario:?}, or the `campaign merge` that made it, completes it"
        )));
    }
    let files = files(directory, &archive.manifest).map_err(shown)?;
    let name =
        directory.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let name = name.unwrap_or_else(|| "records".to_owned());
    let packed = Packed { records: archive.records.len(), files: files.len(), name };
    let text = std::fs::read_to_string(directory.join(MANIFEST)).map_err(|error| shown(error.to_string()))?;
    let text = if anonymous { nameless(&text).map_err(shown)? } else { text };
    let readme = readme(&packed, &archive.manifest);
    let write = |file: &mut dyn Write| {
        let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
        let place = |inside: &str| format!("{}/{inside}", packed.name);
        add(&mut tar, &place(README), readme.len() as u64, readme.as_bytes())?;
        add(&mut tar, &place(MANIFEST), text.len() as u64, text.as_bytes())?;
        let records = File::open(directory.join(RECORDS))?;
        add(&mut tar, &place(RECORDS), records.metadata()?.len(), records)?;
        for digest in &files {
            let content = File::open(directory.join(FILES).join(digest))?;
            add(&mut tar, &place(&format!("{FILES}/{digest}")), content.metadata()?.len(), content)?;
        }
        tar.into_inner()?.finish()?.flush()
    };
    let (parent, file) = (out.parent().filter(|parent| !parent.as_os_str().is_empty()), out.file_name());
    let file = file.ok_or_else(|| format!("{}: not the name of a file", out.display()))?.to_string_lossy();
    let written = write_whole_by(parent.unwrap_or(Path::new(".")), &file, |out| write(out));
    written.map_err(|error| format!("{}: {error}", out.display()))?;
    Ok(packed)
}

/// Returns the digests of the files that the scenarios name, after checking that all are there and
/// undamaged.
fn files(directory: &Path, manifest: &Manifest) -> Result<BTreeSet<String>, String> {
    let mut digests = BTreeSet::new();
    for given in manifest.given(None) {
        if given.unlisted.is_some() {
            return Err(
                "an earlier version of meshpace made it, which did not keep the files of scenarios; the command that made it adds them"
                    .into(),
            );
        }
        for (name, digest) in given.files {
            kept::read(directory, &digest).map_err(|why| {
                format!(
                    "the file {name} of its scenario is not kept ({why}); the command that made the records adds it"
                )
            })?;
            digests.insert(digest);
        }
    }
    Ok(digests)
}

/// Returns the text of a manifest without the data about the machine: its name, the number of jobs
/// and the duration of the campaign.
fn nameless(text: &str) -> Result<String, String> {
    let mut manifest: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for (field, nothing) in [("host", "".into()), ("jobs", 0.into()), ("wall_time_s", 0.0.into())] {
        if let Some(value) = manifest.get_mut(field) {
            *value = nothing;
        }
    }
    serde_json::to_string_pretty(&manifest).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Text of the page for a person who unpacks the archive.
fn readme(packed: &Packed, manifest: &Manifest) -> String {
    let Packed { records, name, .. } = packed;
    format!(
        "{records} runs of \"{scenario}\", made with meshpace {version} ({model}).\n\n\
         {RECORDS} has a line of JSON for each run, {MANIFEST} has the scenarios, and {FILES} has the files that they name, by SHA-256.\n\n\
         meshpace campaign check {name}       checks all checksums and repeats some of the runs\n\
         meshpace rerun {name} --seed N       repeats one run; --point KEY=VALUE selects the point\n\
         meshpace report {name}               draws the results\n\
         meshpace compare {name} --by KEY     compares them\n",
        scenario = manifest.scenario,
        version = manifest.version,
        model = manifest.model_told(),
    )
}

fn add<W: Write>(tar: &mut Builder<W>, path: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, path, content)
}
