//! Files that are written whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `content` as `directory/name`: a reader sees the old file or the new one, never half of it, whenever the program
/// is killed. Replaces what is there.
///
/// # Errors
/// Whatever the file system refuses.
pub fn write_whole(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    write_whole_by(directory, name, |file| file.write_all(content.as_ref()))
}

/// The same with what `write` writes, which need not be in memory at once.
///
/// # Errors
/// That of `write`, and whatever the file system refuses.
pub fn write_whole_by(
    directory: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".meshpace-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Readable by others as usual (the umask still applies), not private as temporary files are.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    let mut buffered = BufWriter::new(file.as_file());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map(drop).map_err(|error| error.error)
}
