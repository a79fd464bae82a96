//! Tests of `[[program]]`, the programs of an emulation.

use meshpace_core::NodeId;
use meshpace_scenario::{Program, Scenario, Source};
use std::path::Path;

fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, Path::new("."), "mesh").map_err(|refusal| refusal.to_string())
}

#[test]
fn programs_are_read_in_order_and_need_no_flow() {
    let text = "[[program]]\nnode = 7\ncommand = ' iperf3 -s '\n[[program]]\nnode = 0\ncommand = 'iperf3 -c n7'\n";
    let scenario = read(text).unwrap();
    let program = |node, command: &str| Program { node: NodeId(node), command: command.to_owned() };
    assert_eq!(scenario.points[0].programs, [program(7, "iperf3 -s"), program(0, "iperf3 -c n7")]);
    assert!(scenario.points[0].config.flows.is_empty());
    let with_flow = read(&format!("{text}[[flow]]\n")).unwrap();
    assert_eq!((with_flow.points[0].programs.len(), with_flow.points[0].config.flows.len()), (2, 1));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, key, words) in [
        ("[[program]]\nnode = 8 #!\ncommand = 'ls'\n", "program.0.node", "a node"),
        ("[[program]] #!\ncommand = 'ls'\n", "program.0.node", "is missing"),
        ("[[program]] #!\nnode = 1\n", "program.0.command", "is missing"),
        ("[[program]]\nnode = 1\ncommand = ' ' #!\n", "program.0.command", "nothing to run"),
        ("[[program]]\nnode = 1\ncommand = 'ls'\nat = 1 #!\n", "program.0.at", "unknown key"),
        ("program = 'ls' #!\n", "program", "[[program]]"),
    ] {
        let refusal = read(text).expect_err(text);
        crate::refused::assert_names_the_place(&refusal, text, key, &[words]);
    }
}
