use super::super::store::*;
use crate::record::archive::Archive;
use crate::record::line;

pub fn manifest() -> Manifest {
    Manifest {
        scenario: "s".into(),
        scenario_sha256: "d".into(),
        scenario_text: String::new(),
        set: Vec::new(),
        version: "1".into(),
        format: line::FORMAT,
        model: meshpace_sim::MODEL_REVISION,
        first_seed: 1,
        seeds: 3,
        points: 1,
        records: 0,
        failed_runs: 0,
        jobs: 1,
        host: "h".into(),
        wall_time_s: 0.0,
        rules: Vec::new(),
        experiment: None,
        quality: None,
        complete: false,
        sources: vec![Given::of_text("[sweep]\n'a' = [0.1]\n")],
        replaces: false,
    }
}

fn of_text(text: &str) -> Manifest {
    Manifest { sources: vec![Given::of_text(text)], ..manifest() }
}

const POINT: &str = "{\"a\":0.1}";

fn line(seed: u64) -> String {
    let model = meshpace_sim::MODEL_REVISION;
    line::seal(&format!("{{\"scenario\":\"s\",\"seed\":{seed},\"point\":{POINT},\"model\":{model},\"x\":{seed}}}"))
}

fn key(seed: u64) -> Key {
    (POINT.into(), seed)
}

fn points() -> Vec<String> {
    vec![POINT.to_owned()]
}

fn open(directory: &Path) -> io::Result<Store> {
    Store::open(directory, &manifest(), false)
}

fn with(directory: &Path, seeds: &[u64]) -> Store {
    let mut store = open(directory).unwrap();
    for &seed in seeds {
        store.add(key(seed), &line(seed)).unwrap();
    }
    store.sync().unwrap();
    store
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn records_end_up_in_the_order_of_the_campaign() {
    let scratch = tempfile::tempdir().unwrap();
    let store = with(scratch.path(), &[3, 1, 2]);
    assert!(read(scratch.path(), UNFINISHED).ends_with(&[3, 1, 2].map(line).concat()));
    assert_eq!(store.line(&key(1)).unwrap().as_deref(), Some(line(1).trim_end()));
    assert_eq!(store.line(&key(4)).unwrap(), None);
    store.finish(&points(), &manifest()).unwrap();
    assert_eq!(read(scratch.path(), RECORDS), [1, 2, 3].map(line).concat());
    assert!(!scratch.path().join(UNFINISHED).exists());
    let archive = Archive::read(scratch.path()).unwrap().unwrap();
    assert_eq!((archive.manifest.records, archive.manifest.seeds, archive.records.len()), (3, 3, 3));
    assert!(open(scratch.path()).unwrap().is_finished());
}

#[test]
fn half_a_line_is_cut_off_and_a_damaged_one_is_named_and_the_rest_is_kept() {
    let scratch = tempfile::tempdir().unwrap();
    drop(with(scratch.path(), &[1]));
    let whole = read(scratch.path(), UNFINISHED);
    let damaged = line(2).replace("\"x\":2", "\"x\":3");
    for (rest, told) in [("", 0), ("{\"seed\":2", 0), (line(2).trim_end(), 0), ("no record\n", 1), (&damaged, 1)] {
        std::fs::write(scratch.path().join(UNFINISHED), format!("{whole}{rest}")).unwrap();
        let store = open(scratch.path()).unwrap();
        assert_eq!((store.len(), store.has(&key(1)), store.has(&key(2))), (1, true, false), "{rest}");
        assert_eq!(store.damaged().len(), told, "{rest}");
        assert!(store.damaged().iter().all(|what| what.contains("unfinished.jsonl:3: the record ")));
        drop(store);
        assert_eq!(read(scratch.path(), UNFINISHED), whole, "{rest}");
    }
    // What stands behind a damaged line is whole.
    std::fs::write(scratch.path().join(UNFINISHED), format!("{whole}{damaged}{}", line(3))).unwrap();
    assert!(open(scratch.path()).unwrap().has(&key(3)));
}

#[test]
fn nothing_is_added_behind_what_is_no_record() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = with(scratch.path(), &[1]);
    let mut file = OpenOptions::new().append(true).open(scratch.path().join(UNFINISHED)).unwrap();
    file.write_all(&line(2).as_bytes()[..9]).unwrap();
    let refused = store.add(key(3), &line(3)).unwrap_err().to_string();
    let whole = read(scratch.path(), UNFINISHED).len();
    let told = format!("it ends at byte {whole}, but the records end at {}", whole - 9);
    assert!(refused.contains("unfinished.jsonl") && refused.contains(&told), "{refused}");
    assert!(store.has(&key(1)) && !store.has(&key(3)));
    drop(store);
    let mut again = open(scratch.path()).unwrap();
    again.add(key(3), &line(3)).unwrap();
    assert_eq!(again.line(&key(3)).unwrap().as_deref(), Some(line(3).trim_end()));
    assert_eq!(again.len(), 2);
}

#[test]
fn what_is_there_is_taken_over_or_refused_and_stays_until_it_is_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    with(scratch.path(), &[1]).finish(&points(), &manifest()).unwrap();
    // More seeds of the same campaign: what is there stays.
    let more = with(scratch.path(), &[2]);
    let both: Vec<String> = more.in_order(&points()).map(Result::unwrap).collect();
    assert_eq!(both, [1, 2].map(|seed| line(seed).trim_end().to_owned()), "one from each file");
    more.finish(&points(), &manifest()).unwrap();
    assert_eq!(read(scratch.path(), RECORDS), [1, 2].map(line).concat());
    let other = of_text("b = '2 s'\n[sweep]\n'a' = [0.1]\n");
    let refused = Store::open(scratch.path(), &other, false).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    let told = refused.to_string();
    assert!(
        ["(b: not written → 2 s)", "--out", "--sweep 'b=DEFAULT,2 s'", "--force"]
            .iter()
            .all(|part| told.contains(part)),
        "{told}"
    );
    for (strange, told) in [
        (Manifest { model: 0, ..manifest() }, "no revision of the model"),
        (Manifest { model: u32::MAX, ..manifest() }, "revision 4294967295 of the model"),
        (Manifest { format: 0, ..manifest() }, "the format without checksums"),
    ] {
        std::fs::write(scratch.path().join(MANIFEST), serde_json::to_string(&strange).unwrap()).unwrap();
        let refused = open(scratch.path()).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
    let mut replaced = Store::open(scratch.path(), &other, true).unwrap();
    assert!(replaced.is_empty());
    replaced.add(key(7), &line(7)).unwrap();
    drop(replaced);
    assert_eq!(read(scratch.path(), RECORDS), [1, 2].map(line).concat(), "until the new ones are complete");
    let resumed = Store::open(scratch.path(), &other, false).unwrap();
    assert_eq!((resumed.len(), resumed.has(&key(7))), (1, true));
    resumed.finish(&points(), &other).unwrap();
    assert_eq!(read(scratch.path(), RECORDS), line(7));
}

#[test]
fn what_is_damaged_doubled_or_missing_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    with(scratch.path(), &[1, 2, 3]).finish(&points(), &manifest()).unwrap();
    let whole = read(scratch.path(), RECORDS);
    for (text, told) in [
        (whole.replace("\"x\":2", "\"x\":7"), "records.jsonl:2: the record is damaged"),
        (whole.clone() + &line(2), "records.jsonl:4: the record occurs twice"),
        (line(1) + &line(3), "2 records, but the manifest counts 3"),
        (whole.trim_end().to_owned(), "records.jsonl:3: the record is cut off"),
    ] {
        std::fs::write(scratch.path().join(RECORDS), text).unwrap();
        let error = Archive::read(scratch.path()).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
        assert!(!open(scratch.path()).unwrap().is_finished(), "{told}");
    }
}

#[test]
fn two_cannot_work_in_one_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let first = open(scratch.path()).unwrap();
    assert_eq!(open(scratch.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(first);
    assert!(open(scratch.path()).is_ok());
}

#[test]
fn other_points_and_seeds_stand_in_the_same_directory() {
    let scratch = tempfile::tempdir().unwrap();
    with(scratch.path(), &[2, 1]).finish(&points(), &manifest()).unwrap();
    let first = read(scratch.path(), RECORDS);
    // A scenario that names other points removes none.
    let other = of_text("b = 2\n[sweep]\n'a' = [7]\n");
    let mut store = Store::open(scratch.path(), &other, false).unwrap();
    let added = line::renamed(line(1).trim_end(), "s", "{\"a\":7}").unwrap();
    store.add(("{\"a\":7}".to_owned(), 1), &format!("{added}\n")).unwrap();
    store.finish(&["{\"a\":7}".to_owned()], &other).unwrap();
    assert_eq!(read(scratch.path(), RECORDS), format!("{added}\n{first}"), "the points of the last file are first");
    let made = Manifest::read(scratch.path()).unwrap().unwrap();
    assert_eq!((made.records, made.points, made.sources.len()), (3, 1, 2));
    // Each point has its own settings, and keeps them.
    assert!(Store::open(scratch.path(), &manifest(), false).unwrap().has(&key(1)));
    let both = of_text("b = 2\n[sweep]\n'a' = [7, 0.1]\n");
    let refused = Store::open(scratch.path(), &both, false).unwrap_err().to_string();
    assert!(refused.contains("b: not written → 2") && refused.contains("{\"a\":0.1}"), "{refused}");
    assert_eq!(Manifest::read(scratch.path()).unwrap().unwrap(), made, "nothing has changed");
}

#[test]
fn a_record_is_called_as_the_last_scenario_calls_it() {
    let scratch = tempfile::tempdir().unwrap();
    with(scratch.path(), &[1, 2]).finish(&points(), &manifest()).unwrap();
    // The value is part of the point no more, the title is another, and nothing is to be made.
    let mut plain = of_text("a = 0.10\n");
    plain.sources[0].scenario = "t".into();
    let store = Store::open(scratch.path(), &plain, false).unwrap();
    let today = line::renamed(line(2).trim_end(), "t", "{}").unwrap();
    assert_eq!(store.line(&("{}".to_owned(), 2)).unwrap(), Some(today.clone()));
    assert!(!store.is_finished() && today.contains("\"scenario\":\"t\"") && today.contains("\"x\":2"), "{today}");
    store.finish(&["{}".to_owned()], &plain).unwrap();
    assert!(read(scratch.path(), RECORDS).ends_with(&format!("{today}\n")));
    let back = open(scratch.path()).unwrap();
    assert_eq!(back.line(&key(2)).unwrap().as_deref(), Some(line(2).trim_end()), "and back again, to the byte");
}

#[test]
fn a_default_that_is_written_is_the_same_point() {
    let scenario = |rest: &str| format!("[[flow]]\n{rest}[sweep]\n'topology.hops' = [1, 2]\n");
    let named = |point: &str| {
        let line = line::renamed(line(1).trim_end(), "s", point).unwrap();
        ((point.to_owned(), 1), format!("{line}\n"))
    };
    let scratch = tempfile::tempdir().unwrap();
    let plain = of_text(&scenario(""));
    let mut store = Store::open(scratch.path(), &plain, false).unwrap();
    let keys = ["{\"topology.hops\":1}", "{\"topology.hops\":2}"].map(str::to_owned);
    keys.iter().map(|key| named(key)).for_each(|(key, line)| store.add(key, &line).unwrap());
    store.finish(&keys, &plain).unwrap();
    for same in ["start = '1000 ms'\n", "[routing]\nprotocol = 'static'\n[mac]\n", "transport = 'tcp-ap'\n"] {
        let store = Store::open(scratch.path(), &of_text(&scenario(same)), false).unwrap();
        assert!(keys.iter().all(|key| store.has(&(key.clone(), 1))), "{same}");
    }
    let refused = Store::open(scratch.path(), &of_text(&scenario("start = '2 s'\n")), false).unwrap_err().to_string();
    assert!(refused.contains("flow.0.start: not written → 2 s"), "{refused}");
    // The default becomes one of several values, so that it is part of the name of the point.
    let swept = of_text(&(scenario("") + "'flow.start' = ['2 s', '1 s']\n"));
    let store = Store::open(scratch.path(), &swept, false).unwrap();
    assert!(store.has(&("{\"topology.hops\":2,\"flow.start\":\"1 s\"}".to_owned(), 1)));
    assert_eq!((store.len(), store.has(&("{\"topology.hops\":2,\"flow.start\":\"2 s\"}".to_owned(), 1))), (2, false));
}

#[test]
fn a_record_that_lacks_what_is_observed_is_made_again() {
    let scratch = tempfile::tempdir().unwrap();
    with(scratch.path(), &[1]).finish(&points(), &manifest()).unwrap();
    let series = of_text("series = '1 s'\n[sweep]\n'a' = [0.1]\n");
    let mut store = Store::open(scratch.path(), &series, false).unwrap();
    assert!(!store.has(&key(1)) && store.lacks(&key(1)));
    let other = line(1).replace("\"x\":1", "\"series\":{},\"x\":1");
    let other = line::seal(&(other.split(",\"check\"").next().unwrap().to_owned() + "}"));
    store.add(key(1), &other).unwrap();
    assert!(store.has(&key(1)));
    store.finish(&points(), &series).unwrap();
    assert_eq!(read(scratch.path(), RECORDS), other);
    // What is there is not thrown away by a scenario that asks for less.
    let refused = open(scratch.path()).unwrap_err().to_string();
    assert!(refused.contains("series: 1 s → not written"), "{refused}");
    let mut store = Store::open(scratch.path(), &series, false).unwrap();
    store.require_nodes();
    assert!(store.lacks(&key(1)));
}

#[test]
fn reading_is_allowed_whatever_state_the_directory_is_in() {
    let scratch = tempfile::tempdir().unwrap();
    let seeds = |archive: &Archive| archive.records.iter().map(|record| record.seed).collect::<Vec<_>>();
    let mut store = open(scratch.path()).unwrap();
    assert!(Archive::read(scratch.path()).unwrap().is_none(), "nothing is there yet");
    store.add(key(3), &line(3)).unwrap();
    store.add(key(1), &line(1)).unwrap();
    let file = scratch.path().join(UNFINISHED);
    std::fs::write(&file, read(scratch.path(), UNFINISHED) + "no record\n" + &line(2)[..9]).unwrap();
    // Also while somebody is at work in it.
    let archive = Archive::read(scratch.path()).unwrap().unwrap();
    assert_eq!(
        (seeds(&archive), archive.is_finished, archive.notes.len()),
        (vec![1, 3], false, 2),
        "{:?}",
        archive.notes
    );
    assert!(
        archive.notes[0].contains("incomplete: 2 runs") && archive.notes[1].contains(".jsonl:4"),
        "{:?}",
        archive.notes
    );
    drop(store);
    let store = open(scratch.path()).unwrap();
    store.finish(&points(), &manifest()).unwrap();
    // More seeds are under way beside the finished ones.
    drop(with(scratch.path(), &[2]));
    assert_eq!(seeds(&Archive::read(scratch.path()).unwrap().unwrap()), [1, 2, 3]);
    // They are replaced: those that are about to go do not count.
    let mut replaced = Store::open(scratch.path(), &manifest(), true).unwrap();
    replaced.add(key(2), &line(2)).unwrap();
    assert_eq!(seeds(&Archive::read(scratch.path()).unwrap().unwrap()), [2]);
}

#[test]
fn a_directory_is_locked_until_it_is_released_and_goes_on_only_as_it_was_left() {
    let scratch = tempfile::tempdir().unwrap();
    let mut store = open(scratch.path()).unwrap();
    store.add(key(3), &line(3)).unwrap();
    assert_eq!(open(scratch.path()).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    store.release();
    let other = open(scratch.path()).unwrap();
    assert_eq!(store.resume().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody else has it");
    drop(other);
    // The other one has written the head of the unfinished file again.
    assert!(store.resume().unwrap_err().to_string().contains("open the campaign again"));
    let mut store = open(scratch.path()).unwrap();
    store.release();
    assert_eq!(store.line(&key(3)).unwrap().as_deref(), Some(line(3).trim_end()), "records can be read meanwhile");
    store.resume().unwrap();
    store.add(key(1), &line(1)).unwrap();
    assert_eq!((store.len(), open(scratch.path()).is_err()), (2, true));
}

#[test]
fn records_of_another_revision_are_read_with_a_note() {
    let model = meshpace_sim::MODEL_REVISION;
    for (older, format, told) in
        [(model - 1, line::FORMAT, format!("revision {}", model - 1)), (0, 0, "no revision".to_owned())]
    {
        let scratch = tempfile::tempdir().unwrap();
        let manifest = Manifest { model: older, format, records: 1, complete: true, ..manifest() };
        std::fs::write(scratch.path().join(MANIFEST), serde_json::to_string(&manifest).unwrap()).unwrap();
        let object = line(1).replace(&format!("\"model\":{model}"), &format!("\"model\":{older}"));
        let object = object.split(",\"check\"").next().unwrap().to_owned() + "}";
        // The first format had no checksums.
        let text = if format == 0 { object + "\n" } else { line::seal(&object) };
        std::fs::write(scratch.path().join(RECORDS), text).unwrap();
        let archive = Archive::read(scratch.path()).unwrap().unwrap();
        assert!(archive.records.len() == 1 && archive.notes.len() == 1, "{:?}", archive.notes);
        assert!(archive.notes[0].contains(&told) && archive.notes[0].contains("not extended"), "{:?}", archive.notes);
        assert!(open(scratch.path()).is_err(), "and are not extended");
    }
    let scratch = tempfile::tempdir().unwrap();
    let newer = Manifest { format: line::FORMAT + 1, ..manifest() };
    std::fs::write(scratch.path().join(MANIFEST), serde_json::to_string(&newer).unwrap()).unwrap();
    assert!(Archive::read(scratch.path()).unwrap_err().contains("use a newer version of meshpace"));
}
