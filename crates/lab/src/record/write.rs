//! Atomic writing of files: a file is written as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `content` as `directory/name`. A reader sees the old file or the new one, but never a
/// part of it, even if the program is killed. An existing file is replaced. [`is_kept`] says which
/// existing things are written into instead.
///
/// # Errors
/// Any error of the file system.
pub fn write_whole(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    write_whole_by(directory, name, |file| file.write_all(content.as_ref()))
}

/// Like [`write_whole`], with the content that `write` produces. That content need not be in memory
/// at once.
///
/// # Errors
/// Any error of `write`, and of the file system.
pub fn write_whole_by(
    directory: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let path = directory.join(name);
    if is_kept(&path) {
        let file = File::create(&path)?;
        let mut buffered = BufWriter::new(&file);
        write(&mut buffered)?;
        return buffered.flush();
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".meshpace-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The file gets the usual permissions, limited by the umask. Temporary files would be
        // private otherwise.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    let mut buffered = BufWriter::new(file.as_file());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// True if `path` is a device, a pipe or a link, such as `/dev/stdout`. It is written into, because
/// a file in its place would remove it.
pub fn is_kept(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Creates a directory and its parents, if they do not exist.
///
/// # Errors
/// Any error of the file system, with the path, and with advice if something else is there.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| {
        let way = match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "; a directory is needed here, but a file has this name; give another name"
            }
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{way}", directory.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_directory_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("page");
        for text in ["a longer text", "short"] {
            write_whole(scratch.path(), "page", text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert!(!is_kept(&file) && !is_kept(scratch.path()) && !is_kept(&scratch.path().join("nothing")));
        let why = make_directory(&file).unwrap_err().to_string();
        assert!(why.contains("page: ") && why.contains("give another name"), "{why}");
        let why = make_directory(&file.join("below")).unwrap_err().to_string();
        assert!(why.contains("give another name"), "{why}");
        make_directory(&scratch.path().join("a/b")).unwrap();
        make_directory(&scratch.path().join("a/b")).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let (link, far) = (scratch.path().join("link"), scratch.path().join("far"));
        fs::write(&far, "what was there, and is longer").unwrap();
        std::os::unix::fs::symlink(&far, &link).unwrap();
        write_whole(scratch.path(), "link", "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&far).unwrap(), "new");
        // A device, by a link, so that what is wrong here takes none from this machine.
        std::os::unix::fs::symlink("/dev/full", scratch.path().join("full")).unwrap();
        let full = write_whole(scratch.path(), "full", "new").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
        // Nothing is left beside them.
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 3);
    }
}
