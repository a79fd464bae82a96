//! `meshpace decrypt`: turns a capture of encrypted TPA into a capture of plain TPA, with the help
//! of the logged keys.

use crate::output::complain;
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_capture::rewrite::{Done, Keys, MAGIC, as_io, rewrite};
use meshpace_lab::record::is_kept;
use meshpace_live::tpa::secrets::Secrets;
use pcap_file::pcapng::PcapNgWriter;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace decrypt`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// File that `--keylog` of `send`, `recv` or `tunnel` wrote at either end.
    #[arg(long, value_name = "FILE")]
    keylog: PathBuf,
    /// Capture to read: pcap or pcapng, as tcpdump, tshark or Wireshark write it.
    capture: PathBuf,
    /// Capture to write, as pcapng. An existing file is replaced.
    plain: PathBuf,
}

/// Keys from a key log.
struct Logged(Secrets);

impl Keys for Logged {
    fn know(&self, datagram: &[u8]) -> bool {
        self.0.know(datagram)
    }

    fn open(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.0.open(datagram)
    }
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let refuse = |error: io::Error| {
        complain(&error.to_string());
        ExitCode::from(REFUSED)
    };
    let mut secrets = match Secrets::read(&arguments.keylog) {
        Ok(secrets) => Logged(secrets),
        Err(error) => return refuse(error),
    };
    let capture = match File::open(&arguments.capture) {
        Ok(file) => file,
        Err(error) => return refuse(about(&arguments.capture)(error)),
    };
    match decrypt(&mut secrets, capture, arguments) {
        Ok(Done { packets, opened, broken }) => {
            complain(&format!("{packets} packets, {opened} datagrams decrypted, {broken} incomplete or damaged"));
            if opened > 0 {
                return ExitCode::SUCCESS;
            }
            let (log, capture) = (arguments.keylog.display(), arguments.capture.display());
            complain(&format!(
                "none of the {} keys in {log} decrypts anything in {capture}; the key log must be of the same connections",
                secrets.0.len()
            ));
            ExitCode::from(FAILED)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => refuse(error),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

fn about(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Writes the decrypted capture into a temporary file first. When that is complete, it is renamed,
/// or copied if the destination is a device or a pipe.
fn decrypt(secrets: &mut Logged, mut capture: File, arguments: &Arguments) -> io::Result<Done> {
    let (from, to) = (about(&arguments.capture), about(&arguments.plain));
    let mut magic = [0; MAGIC];
    let is_whole = capture.read_exact(&mut magic);
    is_whole.map_err(|_| {
        from(io::Error::new(io::ErrorKind::InvalidData, "expected a capture in the format pcap or pcapng"))
    })?;
    capture.rewind().map_err(&from)?;
    let beside = arguments.plain.parent().filter(|parent| !parent.as_os_str().is_empty());
    let is_kept = is_kept(&arguments.plain);
    let directory = if is_kept { std::env::temp_dir() } else { beside.unwrap_or(Path::new(".")).to_owned() };
    let file = tempfile::NamedTempFile::new_in(directory).map_err(&to)?;
    let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(as_io).map_err(&to)?;
    let done = rewrite(magic, BufReader::new(capture), secrets, &mut writer).map_err(from)?;
    let mut file = writer.into_inner().into_inner().map_err(|error| to(error.into_error()))?;
    if is_kept {
        file.rewind().map_err(&to)?;
        let mut there = File::create(&arguments.plain).map_err(&to)?;
        io::copy(&mut file, &mut there).map_err(to)?;
        return Ok(done);
    }
    file.persist(&arguments.plain).map_err(|error| to(error.error))?;
    Ok(done)
}
