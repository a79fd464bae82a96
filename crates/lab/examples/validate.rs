//! x
use meshpace_lab::validate::*;
fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut seeds = None;
    if let Some(p) = args.iter().position(|a| a == "--seeds") { seeds = args[p+1].parse().ok(); args.drain(p..p+2); }
    let o = Options { seeds, jobs: 1, progress: &|_| () };
    for c in COMPARISONS { if args.iter().any(|a| a == c.name) { for t in (c.run)(&o) { println!("{}", text(&t)); } } }
}
