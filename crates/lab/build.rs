//! The scenarios are part of the program: a file added to them has to build it anew.

fn main() {
    println!("cargo:rerun-if-changed=../../scenarios");
}
