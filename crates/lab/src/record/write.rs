//! Files that are written whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Writes `content` as `directory/name`: a reader sees the old file or the new one, never half of it, whenever the program
/// is killed. Replaces what is there.
///
/// # Errors
/// Whatever the file system refuses.
pub fn write_whole(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".meshpace-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Readable by others as usual (the umask still applies), not private as temporary files are.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(content.as_ref())?;
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map(drop).map_err(|error| error.error)
}
