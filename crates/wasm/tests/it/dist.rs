//! web/dist, which is committed and part of the program, is built from what is beside it, and tells nothing of the machine that built it.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Advice about a page that is behind its sources.
const BUILD: &str = "build it anew: cd web && npm ci && npm run build";
/// Besides all of web/src and crates/wasm/src; web/finish.mjs has the same list.
const SINGLE: [&str; 10] = [
    "crates/wasm/Cargo.toml",
    "web/bindgen/Cargo.lock",
    "web/bindgen/Cargo.toml",
    "web/bindgen/src/main.rs",
    "web/build-wasm.mjs",
    "web/finish.mjs",
    "web/index.html",
    "web/package-lock.json",
    "web/tsconfig.json",
    "web/vite.config.ts",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_is_built_from_its_sources() {
    let mut paths: Vec<String> = SINGLE.map(str::to_owned).to_vec();
    for folder in ["web/src", "crates/wasm/src"] {
        let names = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        paths.extend(names.map(|name| format!("{folder}/{}", name.to_str().unwrap())));
    }
    paths.sort();
    let mut hash = Sha256::new();
    for path in &paths {
        let content = std::fs::read(root().join(path)).unwrap();
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(content);
        hash.update([0]);
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let text = std::fs::read_to_string(root().join("web/dist/sources.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["sha256"], hex, "web/dist is of other sources; {BUILD}");
}

#[test]
fn the_module_has_no_paths_of_the_machine_that_built_it() {
    let module = std::fs::read(root().join("web/dist/meshpace.wasm")).unwrap();
    let has = |text: &str| module.windows(text.len()).any(|window| window == text.as_bytes());
    // Where a panic came from is there, from the root of the project or of the registry on.
    assert!(has("crates/sim/src/") && has("cargo/registry/"), "messages of panics name their sources");
    // With the folder behind it: the root itself may be called `/src`, which is a part of every path of a source.
    let here = root().canonicalize().unwrap().join("crates").display().to_string();
    for place in ["/home/", "/root/", "/Users/", "C:\\Users", "/.cargo/", "/.rustup/", &here] {
        assert!(
            !has(place),
            "meshpace.wasm has a path with {place}: it is built with --remap-path-prefix by web/build-wasm.mjs; {BUILD}"
        );
    }
}
