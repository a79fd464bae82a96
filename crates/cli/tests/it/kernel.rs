//! `meshpace kernel`: the message of a build without eBPF, and the commands from load to unload of
//! a build with eBPF.

use assert_cmd::cargo::cargo_bin_cmd;

#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_it_says_how_to_get_it() {
    for arguments in [&["kernel"][..], &["kernel", "load", "--hops", "4"], &["kernel", "status", "--json"]] {
        let done = cargo_bin_cmd!("meshpace").args(arguments).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains("cargo build --release --bin meshpace --features kernel"), "{said}");
        assert!(done.stdout.is_empty());
    }
}

#[cfg(feature = "kernel")]
mod loaded {
    use super::*;
    use meshpace_kernel::machine;
    use meshpace_testing::{Class, has, skipped};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Output, Stdio};
    use std::time::{Duration, Instant};

    fn kernel(arguments: &[&str]) -> Output {
        cargo_bin_cmd!("meshpace").arg("kernel").args(arguments).output().unwrap()
    }

    fn refused(arguments: &[&str], expected: &str) {
        let done = kernel(arguments);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        refused(&["load", "--hops", "0"], "0");
        refused(&["load", "--path", "10.0.0.0/8"], "expected DESTINATION=HOPS");
        refused(&["load", "--path", "10.0.0.0/40=4"], "no destination");
        refused(&["load", "--path", "10.0.0.0/8=0"], "expected 1 to 255 hops");
        refused(&["load", "--path", "10.0.0.0/8=300"], "expected 1 to 255 hops");
        refused(&["load", "--path", "10.0.0.0/8=4,rate=fast"], "expected a number and a unit");
        refused(&["load", "--path", "10.0.0.0/8=4,colour=red"], "expected rate=RATE or sensing=HOPS");
        refused(&["load", "--name", "a_name_that_is_too_long"], "cannot name a congestion control");
        refused(&["load", "--control", "cubic"], "quiet-train-solo");
        refused(&["load", "--dispersion-factor", "-1"], "0 to 10");
        refused(&["load", "--dispersion-factor", "NaN"], "0 to 10");
        refused(&["load", "--watch-device", "lo"], "--watch");
        refused(&["load", "--watch", "--metric-per-hop", "0"], "1..=65535");
        refused(&["load", "--watch", "--watch-device", "nosuchdevice"], "no such device");
    }

    /// Unloads the congestion control at the end of the test, whether or not the test succeeds.
    struct Unload(String);

    impl Drop for Unload {
        fn drop(&mut self) {
            let _ = kernel(&["unload", "--name", &self.0]);
        }
    }

    fn status(name: &str) -> Value {
        let done = kernel(&["status", name, "--json"]);
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice(&done.stdout).unwrap()
    }

    fn is_missing() -> bool {
        let lacks =
            machine::examine().into_iter().find(|check| check.subject != "eBPF file system" && check.found.is_err());
        if let Some(check) = &lacks {
            skipped(Class::Rights, format_args!("{}: {}", check.subject, check.found.as_ref().unwrap_err()));
        }
        lacks.is_some()
    }

    #[test]
    fn whoever_watches_can_be_ended_and_it_stays_loaded() {
        if is_missing() {
            return;
        }
        let name = format!("mpv{}", std::process::id());
        let _unload = Unload(name.clone());
        let watch = || {
            let mut watching = Command::new(assert_cmd::cargo::cargo_bin("meshpace"))
                .args(["kernel", "load", "--watch", "--json", "--name", &name])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // The command prints what is loaded, begins to watch, and then reports that it watches.
            let said = BufReader::new(watching.stderr.take().unwrap()).lines();
            let mut said = said.map(|line| line.unwrap()).skip_while(|line| !line.contains("watching")).peekable();
            assert!(said.peek().is_some());
            (watching, said)
        };
        let (mut watching, _) = watch();
        kill(Pid::from_raw(watching.id() as i32), Signal::SIGTERM).unwrap();
        assert!(watching.wait().unwrap().success());
        assert_eq!(status(&name)["registered"], true);
        assert!(kernel(&["unload", "--name", &name]).status.success());
        // Unloading the congestion control ends the process that watches.
        let (mut watching, mut said) = watch();
        assert!(kernel(&["unload", "--name", &name]).status.success());
        assert!(watching.wait().unwrap().success());
        assert!(said.any(|line| line.contains("no longer loaded")));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "waiting for another process")]
    fn a_user_without_rights_sends_over_it() {
        if is_missing() || !has("iperf3", "iperf3") {
            return;
        }
        let name = format!("mpc{}", std::process::id());
        let _unload = Unload(name.clone());
        let path = "127.0.0.0/8=3,rate=54 Mbit/s";
        let load = ["load", "--name", &name, "--hops", "5", "--path", path, "--allow-users", "--json"];
        let done = kernel(&load);
        assert!(done.status.success(), "{done:?}");
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((&told["registered"], &told["users"], &told["form"]), (&true.into(), &true.into(), &"ap05".into()));
        assert_eq!((&told["paths"][0]["hops"], &told["paths"][0]["always"]), (&5.into(), &false.into()));
        assert_eq!((&told["paths"][1]["destination"], &told["paths"][1]["hops"]), (&"127.0.0.0/8".into(), &3.into()));
        refused(&load, "registered already");

        let port = meshpace_testing::ports::spare_port().to_string();
        let mut server = Command::new("iperf3").args(["-s", "-1", "-p", &port]).stdout(Stdio::null()).spawn().unwrap();
        let client = || {
            let done = Command::new("iperf3")
                .args(["-c", "127.0.0.1", "-p", &port, "-C", &name, "-n", "300K", "-J"])
                // The user is nobody, so iperf3 has only the rights of every user.
                .uid(65534)
                .gid(65534)
                .output()
                .unwrap();
            serde_json::from_slice::<Value>(&done.stdout).unwrap()
        };
        // The server needs a moment before it listens. With -J, iperf3 ends with status 0 even
        // after an error, and reports the error in its JSON.
        let refused_connection = |told: &Value| told["error"].as_str().is_some_and(|error| error.contains("refused"));
        let mut told = client();
        let started = Instant::now();
        while refused_connection(&told) && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
            told = client();
        }
        let _ = server.kill();
        server.wait().unwrap();
        assert_eq!(told["error"], Value::Null, "a user may choose it");
        assert_eq!(told["end"]["sender_tcp_congestion"], name.as_str());
        assert_eq!(status(&name)["name"], name.as_str());

        let done = kernel(&["unload", "--name", &name]);
        assert!(done.status.success(), "{done:?}");
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
        assert!(!available.contains(&name));
        refused(&["unload", "--name", &name], "is not loaded");
        refused(&["status", &name], "is not loaded");
    }

    /// Runs one emulation of a cross of two chains of four hops at 11 Mbit/s, with a transfer over
    /// each chain by the congestion control `name`. Returns how many transfers had five seconds
    /// without a byte.
    fn stalls_of_a_cross(name: &str, seed: usize) -> usize {
        let directory = tempfile::tempdir().unwrap();
        let file = |server: usize| directory.path().join(format!("{server}.json"));
        let mut scenario =
            "title = \"stalls\"\nduration = \"60 s\"\n[topology]\nkind = \"cross\"\n[radio]\nrate = \"11 Mbit/s\"\n"
                .to_owned();
        let mut run = |node: usize, command: String| {
            scenario.push_str(&format!("[[program]]\nnode = {node}\ncommand = {}\n", Value::from(command)));
        };
        for server in [4, 8] {
            run(server, format!("exec iperf3 -s -1 -J > {}", file(server).display()));
        }
        run(5, format!("exec iperf3 -c n8 -C {name} -t 25"));
        // The end of the last program ends the emulation, so this program waits until the other
        // transfer is over.
        run(0, format!("iperf3 -c n4 -C {name} -t 25; sleep 2"));
        let path = directory.path().join("cross.toml");
        std::fs::write(&path, scenario).unwrap();
        let done = cargo_bin_cmd!("meshpace").arg("emulate").arg(&path).args(["--seed", &seed.to_string()]).output();
        let said = String::from_utf8_lossy(&done.unwrap().stderr).into_owned();
        let stalled = |server: &usize| {
            let told: Value = serde_json::from_slice(&std::fs::read(file(*server)).unwrap()).expect(&said);
            let intervals = told["intervals"].as_array().expect(&said);
            assert!(intervals.len() >= 20, "{said}");
            let silent: Vec<bool> = intervals.iter().map(|one| one["sum"]["bytes"] == 0).collect();
            silent.windows(5).any(|window| window.iter().all(|silent| *silent))
        };
        [4, 8].iter().filter(|server| stalled(server)).count()
    }

    #[test]
    fn no_transfer_over_an_emulated_cross_stops() {
        let what = "204 transfers of 25 s over emulated crosses, ten minutes";
        if !meshpace_testing::is_slow_run(what) || is_missing() || !has("iperf3", "iperf3") {
            return;
        }
        let name = format!("mpx{}", std::process::id());
        let _unload = Unload(name.clone());
        let load = ["load", "--name", &name, "--hops", "4", "--channel-rate", "11 Mbit/s", "--everywhere"];
        let done = kernel(&load);
        assert!(done.status.success(), "{done:?}");
        // Six emulations at a time keep two processors busy, because transfers stalled on busy
        // machines only.
        let mut stalled = 0;
        for round in 0..17 {
            let emulations: Vec<_> = (0..6)
                .map(|place| {
                    let name = name.clone();
                    std::thread::spawn(move || stalls_of_a_cross(&name, 1 + 6 * round + place))
                })
                .collect();
            stalled += emulations.into_iter().map(|one| one.join().unwrap()).sum::<usize>();
        }
        assert_eq!(stalled, 0, "of 204");
    }
}
