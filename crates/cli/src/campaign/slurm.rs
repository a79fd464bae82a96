//! Array scripts of a campaign for Slurm. A cluster limits the number of tasks of an array to some
//! number N, so each script has at most N pieces: `campaign.slurm` has the first N,
//! `campaign-1.slurm` the next N, and so on. Task T of script S runs piece S * N + T. This rule
//! still holds after pieces were added.

use clap::Args;
use meshpace_lab::record::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Options of the tasks.
#[derive(Args, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tasks {
    /// Put at most this number of tasks into one array. It must be less than MaxArraySize, which
    /// `scontrol show config` prints. More pieces are written as several arrays.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1000)]
    array: u32,
    /// Run at most this number of tasks at the same time, divided among the arrays.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_once: Option<u32>,
    /// Limit the time of a task, in the format of `sbatch --time`, such as 1:30:00.
    #[arg(long, value_name = "TIME", value_parser = word)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Limit the memory of a task, in the format of `sbatch --mem`, such as 500M.
    #[arg(long, value_name = "SIZE", value_parser = word)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mem: Option<String>,
}

/// Options of a campaign that was exported by a version without these options: one array without
/// limits.
impl Default for Tasks {
    fn default() -> Tasks {
        Tasks { array: u32::MAX, at_once: None, time: None, mem: None }
    }
}

/// Checks a value for `sbatch`, because it is written into a script without quotes.
fn word(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.chars().all(|sign| sign.is_ascii_alphanumeric() || ":-.".contains(sign));
    if is_plain { Ok(text.to_owned()) } else { Err("expected digits, letters, and : - .".to_owned()) }
}

/// Script with the tasks of its array.
struct Script {
    number: usize,
    tasks: Range<usize>,
}

impl Tasks {
    fn per_array(&self) -> usize {
        self.array as usize
    }

    /// Returns the scripts for these pieces.
    fn scripts(&self, pieces: Range<usize>) -> Vec<Script> {
        let size = self.per_array();
        let script = |number: usize| {
            let first = number * size;
            Script {
                number,
                tasks: pieces.start.max(first) - first..pieces.end.min(first.saturating_add(size)) - first,
            }
        };
        (pieces.start / size..pieces.end.div_ceil(size)).map(script).collect()
    }

    /// Checks that the limit of simultaneous tasks allows at least one task for each array.
    ///
    /// # Errors
    /// If `--at-once` is less than the number of arrays that this number of pieces needs.
    pub fn check(&self, pieces: usize) -> Result<(), String> {
        let arrays = self.scripts(0..pieces).len();
        match self.at_once {
            Some(at_once) if (at_once as usize) < arrays => Err(format!(
                "--at-once {at_once} is less than the number of arrays: {pieces} pieces need {arrays} arrays; a larger --piece makes fewer pieces"
            )),
            _ => Ok(()),
        }
    }

    /// Writes the scripts that run these pieces of the campaign `name`, and returns the commands
    /// that submit them.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn write(&self, directory: &Path, name: &str, pieces: Range<usize>) -> io::Result<String> {
        let scripts = self.scripts(pieces);
        let limit = self.limit(scripts.len());
        let mut commands = String::new();
        for script in scripts {
            let file = file(script.number);
            write_whole(directory, &file, self.text(name, &script, &limit))?;
            commands += &format!("sbatch --chdir {place} {place}/{file}\n", place = directory.display());
        }
        Ok(commands)
    }

    /// Suffix of `--array`: the share of each of `arrays` arrays in the limit of simultaneous
    /// tasks.
    fn limit(&self, arrays: usize) -> String {
        let share = |at_once: u32| format!("%{}", (at_once as usize / arrays.max(1)).max(1));
        self.at_once.map(share).unwrap_or_default()
    }

    fn text(&self, name: &str, script: &Script, limit: &str) -> String {
        let name: String =
            name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).take(40).collect();
        let (first, last) = (script.tasks.start, script.tasks.end.saturating_sub(1));
        let before = script.number * self.per_array();
        let (log, piece) = match before {
            0 => ("%a".to_owned(), "\"$SLURM_ARRAY_TASK_ID\"".to_owned()),
            _ => (format!("campaign-{}-%a", script.number), format!("$(({before} + SLURM_ARRAY_TASK_ID))")),
        };
        let option = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("#SBATCH --{name}={value}\n")).unwrap_or_default()
        };
        format!(
            "#!/bin/sh\n\
             # sbatch --chdir THIS_DIRECTORY {file}; a killed task continues when it is submitted again.\n\
             #SBATCH --job-name=meshpace-{name}\n\
             #SBATCH --array={first}-{last}{limit}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task=1\n\
             {time}{mem}\
             #SBATCH --output=pieces/{log}.log\n\
             exec \"${{MESHPACE:-meshpace}}\" campaign piece . {piece}\n",
            file = file(script.number),
            time = option("time", &self.time),
            mem = option("mem", &self.mem),
        )
    }

    /// Returns the commands that run these pieces of the campaign in `directory` again. The numbers of
    /// the pieces must be in ascending order. `options` are additional options of `sbatch`.
    pub fn again(&self, directory: &Path, pieces: &[usize], options: &str) -> String {
        let mut by_script: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for piece in pieces {
            by_script.entry(piece / self.per_array()).or_default().push(piece % self.per_array());
        }
        let limit = self.limit(by_script.len());
        let place = directory.display();
        let command = |(number, tasks): (&usize, &Vec<usize>)| {
            format!("sbatch --chdir {place}{options} --array={}{limit} {place}/{}", ranges(tasks), file(*number))
        };
        by_script.iter().map(command).collect::<Vec<_>>().join("; ")
    }
}

/// File name of a script.
fn file(number: usize) -> String {
    match number {
        0 => "campaign.slurm".to_owned(),
        _ => format!("campaign-{number}.slurm"),
    }
}

/// Formats ascending numbers for `sbatch --array`, for example "0-3,7".
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let told = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    });
    told.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(array: u32, at_once: Option<u32>) -> Tasks {
        Tasks { array, at_once, time: Some("1:00:00".to_owned()), mem: None }
    }

    #[test]
    fn every_piece_is_one_task_of_one_array() {
        for (pieces, array, arrays) in
            [(0..6096, 1000, 7), (0..1000, 1000, 1), (0..1001, 1000, 2), (999..1001, 1000, 2), (5..7, 9, 1)]
        {
            let scripts = tasks(array, None).scripts(pieces.clone());
            let made = scripts
                .iter()
                .flat_map(|script| script.tasks.clone().map(move |task| script.number * array as usize + task));
            assert_eq!((scripts.len(), made.collect::<Vec<_>>()), (arrays, pieces.collect()));
            assert!(scripts.iter().all(|script| script.tasks.end <= array as usize));
        }
    }

    #[test]
    fn scripts_have_the_options_of_their_tasks() {
        let scratch = tempfile::tempdir().unwrap();
        let commands = tasks(3, Some(5)).write(scratch.path(), "a b", 0..7).unwrap();
        assert_eq!(commands.lines().count(), 3);
        let read = |file: &str| std::fs::read_to_string(scratch.path().join(file)).unwrap();
        let last = read("campaign-2.slurm");
        for line in [
            "#SBATCH --array=0-0%1",
            "#SBATCH --time=1:00:00",
            "#SBATCH --output=pieces/campaign-2-%a.log",
            "#SBATCH --job-name=meshpace-a-b",
        ] {
            assert!(last.lines().any(|other| other == line), "{line}: {last}");
        }
        assert!(
            last.ends_with(" campaign piece . $((6 + SLURM_ARRAY_TASK_ID))\n") && !last.contains("--mem"),
            "{last}"
        );
        assert!(read("campaign.slurm").contains("#SBATCH --array=0-2%1\n"));
        assert!(tasks(3, Some(2)).check(7).unwrap_err().contains("3 arrays") && tasks(3, Some(3)).check(7).is_ok());
        assert!(word("1-02:03:04").is_ok() && word("500M").is_ok() && word("1\n#SBATCH").is_err() && word("").is_err());
    }

    #[test]
    fn pieces_that_are_missing_are_told_by_their_arrays() {
        let again = |tasks: Tasks, pieces: &[usize], options| tasks.again(Path::new("c"), pieces, options);
        let told = "sbatch --chdir c --exclude=n7 --array=4 c/campaign.slurm";
        assert_eq!(again(tasks(10, None), &[4], " --exclude=n7"), told);
        let told = "sbatch --chdir c --array=0-2,5%4 c/campaign.slurm";
        assert_eq!(again(tasks(10, Some(4)), &[0, 1, 2, 5], ""), told);
        let told = "sbatch --chdir c --array=9 c/campaign.slurm; sbatch --chdir c --array=0-1,5 c/campaign-1.slurm";
        assert_eq!(again(tasks(10, None), &[9, 10, 11, 15], ""), told);
        let told = "sbatch --chdir c --array=1001,6095 c/campaign.slurm";
        assert_eq!(again(Tasks::default(), &[1001, 6095], ""), told);
    }
}
