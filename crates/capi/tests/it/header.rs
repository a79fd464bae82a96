//! The header in `include/` is the one the code makes.

use std::path::Path;

/// What the header begins with.
const HEADER: &str = "\
/* TPA over UDP, with the manners of the socket functions. Generated: do not edit.
 *
 * After fork, sockets stay with the parent. In the child every function returns -1 with EBADF for a socket of the parent, tpa_close
 * included, also if only its options were set. It returns at once, sends nothing and leaves the parent's connection alone. The child
 * makes sockets of its own with tpa_socket, and opens its own connections. It has no copies of the parent's UDP ports and of the
 * descriptors of tpa_pollfd. A child of vfork or clone may call none of these functions. */";

/// Generates the header.
fn generate() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        include_guard: Some("MESHPACE_H".into()),
        cpp_compat: true,
        no_includes: true,
        sys_includes: ["stddef.h", "sys/socket.h", "sys/types.h"].map(String::from).to_vec(),
        header: Some(HEADER.into()),
        usize_is_size_t: true,
        ..cbindgen::Config::default()
    };
    config.export.rename.insert("sockaddr".into(), "struct sockaddr".into());
    let bindings = cbindgen::Builder::new()
        .with_src(root.join("src/lib.rs"))
        .with_src(root.join("src/options.rs"))
        .with_config(config)
        .generate()
        .expect("the source parses");
    let mut header = Vec::new();
    bindings.write(&mut header);
    // What Rust calls safety is what C calls calling a function.
    String::from_utf8(header).expect("text").replace(" * # Safety\n *\n", "")
}

#[test]
fn generated_header() {
    let made = generate();
    meshpace_testing::generated::hold("crates/capi/include/meshpace.h", &made);
    // Table 15's names, all of them, and what the paper leaves out, named after the functions of sockets.
    let names: Vec<&str> =
        made.lines().filter(|line| line.contains("tpa_") && line.contains('(') && !line.starts_with(' ')).collect();
    let expected = [
        "socket",
        "bind",
        "connect",
        "listen",
        "accept",
        "close",
        "send",
        "recv",
        "shutdown",
        "setsockopt",
        "getsockopt",
        "pollfd",
        "flush",
        "getsockname",
        "getpeername",
        "error",
        "version",
    ];
    for name in expected {
        assert!(names.iter().any(|line| line.contains(&format!("tpa_{name}("))), "{name} in {names:?}");
    }
    assert_eq!(names.len(), expected.len(), "{names:?}");
}

#[test]
fn the_list_of_symbols_for_debian_has_every_function_of_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let header = read("include/meshpace.h");
    // Declarations begin at the margin.
    let declared = header.lines().filter(|line| !line.starts_with([' ', '/']));
    let mut functions: Vec<&str> = declared
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("tpa_"))
        .collect();
    functions.sort_unstable();
    let symbols = read("../../packaging/debian/libmeshpace0.symbols");
    let mut lines = symbols.lines();
    assert_eq!(lines.next(), Some("libmeshpace.so.0 libmeshpace0 #MINVER#"));
    assert_eq!(lines.next(), Some("* Build-Depends-Package: libmeshpace-dev"));
    // ` NAME@Base VERSION`, where the version is the first one that has the function.
    let listed: Vec<&str> = lines.map(|line| line.trim().split_once("@Base ").expect(line).0).collect();
    assert_eq!(listed, functions);
}
