//! `--dask ADDRESS`: runs on a Dask cluster. `python3 -m meshpace.dask`, from the Python package of
//! meshpace, connects to the cluster. It receives jobs and chunks as lines of JSON on its standard
//! input, and writes the results to its standard output.

use crate::REFUSED;
use crate::output::{Failure, note};
use meshpace_lab::record::line::Key;
use meshpace_lab::workers::{Carrier, Job, Made};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Advice for installing the missing package.
const MISSING: &str = "--dask needs the Python package of meshpace with Dask: pip install 'FILE.whl[dask]' with the wheel of a release, or './crates/python[dask]' in meshpace's sources; \
                       MESHPACE_PYTHON names the interpreter that has it, python3 otherwise";

/// Connection to the program that talks to the scheduler.
pub struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    workers: usize,
}

impl Bridge {
    /// Starts the program.
    ///
    /// # Errors
    /// If the package is missing, if the scheduler does not answer, or if a worker has another
    /// version. The error includes the exit status.
    pub fn start(address: &str) -> Result<Bridge, Failure> {
        let python = std::env::var_os("MESHPACE_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&python);
        command.args(["-m", "meshpace.dask", address]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let refused = |why: &dyn std::fmt::Display| (REFUSED, format!("{why}\n{MISSING}"));
        let mut child = command.spawn().map_err(|error| refused(&format!("{}: {error}", python.display())))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(refused(&"no pipe to it"));
        };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut bridge = Bridge { child, input: Some(input), lines, workers: 1 };
        // The program either answers, or ends; if it ends, the channel is closed.
        let answer = loop {
            match bridge.lines.recv() {
                Ok(answer) if answer["note"].is_string() => tell(&answer),
                other => break other,
            }
        };
        match answer {
            Ok(answer) => match (answer["workers"].as_u64(), answer["refused"].as_str()) {
                (Some(workers), _) => bridge.workers = workers as usize,
                (None, Some(why)) => return Err((REFUSED, why.to_owned())),
                (None, None) => return Err(refused(&"it does not report the number of workers")),
            },
            Err(_) => return Err(refused(&format!("{} -m meshpace.dask does not start", python.display()))),
        }
        Ok(bridge)
    }
}

/// Prints a note of the program, for example that a worker gives other results.
fn tell(answer: &Value) {
    answer["note"].as_str().into_iter().for_each(note);
}

impl Carrier for Bridge {
    fn workers(&self) -> usize {
        self.workers
    }

    fn send(&mut self, job: &Job, chunks: &[Vec<Key>]) -> io::Result<()> {
        let chunks = chunks.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let order = json!({ "job": serde_json::to_string(job)?, "chunks": chunks });
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{order}").and_then(|()| input.flush())
    }

    fn receive(&mut self) -> io::Result<Option<Vec<Made>>> {
        match self.lines.recv_timeout(Duration::from_millis(100)) {
            Ok(answer) if answer["note"].is_string() => {
                tell(&answer);
                Ok(None)
            }
            Ok(answer) => match (answer["made"].as_str(), answer["lost"].as_str()) {
                (Some(made), _) => Ok(Some(serde_json::from_str(made)?)),
                (None, Some(why)) => Err(io::Error::other(why)),
                (None, None) => Err(io::Error::other(format!("meshpace.dask: {answer}"))),
            },
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let why =
                    "meshpace.dask has ended; the finished runs are kept, and the same command continues from there";
                Err(io::Error::other(why))
            }
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // When its input is closed, the program ends by itself, unless it waits for a chunk. It is
        // killed, so that it ends in that case, too. Chunks that have not begun are cancelled then.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
