//! The scenarios are embedded in the program, so a change in their folder rebuilds this crate.

fn main() {
    println!("cargo:rerun-if-changed=../../scenarios");
}
