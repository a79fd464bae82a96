//! Compiles the eBPF programs with clang if the feature `kernel` is on; does nothing otherwise.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 6] =
    ["meshpace_ap", "meshpace_solo", "arithmetic", "lost_answers", "lost_answers_solo", "some_lost_answers_solo"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=bpf");
    if env::var_os("CARGO_FEATURE_KERNEL").is_none() {
        return;
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // libbpf-sys publishes the directory of the headers of the libbpf that it has built.
    let headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys tells where its headers are");
    for program in PROGRAMS {
        let source = Path::new("bpf").join(format!("{program}.bpf.c"));
        let object = out.join(format!("{program}.bpf.o"));
        let status = Command::new(&clang)
            .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"])
            .arg("-I")
            .arg(&headers)
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("clang could not compile {}: {status}", source.display()),
            Err(error) => panic!("cannot run {}: {error}; apt-get install clang, or set CLANG", clang.display()),
        }
    }
}
