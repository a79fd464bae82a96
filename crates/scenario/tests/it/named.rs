//! Tests of names of flows, and of distances between neighbours that suit the radio.

use meshpace_mesh::radio::{Channel, connectivity};
use meshpace_scenario::{Refusal, Scenario, Source};
use std::path::Path;

fn read(text: &str) -> Result<Scenario, Refusal> {
    let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, Path::new("."), "mesh")
}

fn names(text: &str) -> Vec<Option<String>> {
    read(text).unwrap_or_else(|refusal| panic!("{refusal}")).points.into_vec().remove(0).names
}

#[test]
fn a_flow_has_the_name_that_it_is_given_and_several_of_one_table_have_numbers() {
    let some = |name: &str| Some(name.to_owned());
    let three = "[[flow]]\nname = 'über lang, 6 hops'\n[[flow]]\n[[flow]]\nname = 'web'\ncount = 2\n";
    assert_eq!(names(three), [some("über lang, 6 hops"), None, some("web 1"), some("web 2")]);
    let grid = "[topology]\nkind = 'grid'\nflows = 'symmetric'\n[[flow]]\nname = 'bulk'\n";
    assert_eq!(names(grid), ["bulk 1", "bulk 2", "bulk 3", "bulk 4"].map(some));
}

#[test]
fn a_name_that_two_flows_have_or_nobody_can_print_is_refused() {
    for (text, words) in [
        ("[[flow]]\nname = 'a'\n[[flow]]\nname = 'a' #!\n", "two flows have the name \"a\""),
        ("[[flow]]\nname = 'web 2' #!\n[[flow]]\nname = 'web'\ncount = 2\n", "two flows have the name \"web 2\""),
        ("[[flow]]\nname = '' #!\n", "1 to 40 printable"),
        ("[[flow]]\nname = ' a' #!\n", "1 to 40 printable"),
        ("[[flow]]\nname = \"a\\nb\" #!\n", "1 to 40 printable"),
        ("[[flow]]\nname = \"a\\u202Eb\" #!\n", "1 to 40 printable"),
        ("[[flow]]\nname = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' #!\n", "1 to 40 printable"),
        ("[[flow]]\nname = 7 #!\n", "a string in quotes"),
    ] {
        let message = read(text).expect_err(text).to_string();
        let line = text.lines().position(|line| line.contains("#!")).unwrap() + 1;
        assert!(message.contains(words) && message.contains(&format!("mesh.toml:{line}:")), "{text}: {message}");
    }
    let letters = "a".repeat(40);
    assert_eq!(names(&format!("[[flow]]\nname = '{letters}'\n")), [Some(letters)]);
}

#[test]
fn without_a_spacing_neighbours_hear_each_other_and_nobody_else() {
    for radio in [
        "",
        "[radio]\nrate = '11 Mbit/s'\n",
        "[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\n",
        "[radio]\nrate = 'MCS 15'\n[mac]\nprofile = 'ht'\n",
        "[radio]\nrate = 'MCS 0'\nband = '2.4 GHz'\n[mac]\nprofile = 'ht'\n",
        "[radio]\nrate = '54 Mbit/s'\n[mac]\nprofile = 'ieee'\n",
        "[radio]\nrate = '6 Mbit/s'\npath_loss_exponent = 3.5\n[mac]\nprofile = 'ieee'\n",
    ] {
        let scenario = read(&format!("{radio}[[flow]]\n")).unwrap_or_else(|refusal| panic!("{radio}{refusal}"));
        let config = &scenario.points[0].config;
        let links = connectivity::links(&config.positions, &Channel::new(&config.mesh.radio), None);
        let pairs: Vec<(u16, u16)> = links.into_iter().map(|(a, b)| (a as u16, b as u16)).collect();
        assert_eq!(pairs, (0..7).map(|node| (node, node + 1)).collect::<Vec<_>>(), "{radio}");
        if !radio.contains("profile") {
            assert_eq!(config.positions[1].x, 200.0, "as in the papers");
        }
    }
    let written =
        read("[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\n[topology]\nspacing = '9 m'\n[[flow]]\n").unwrap();
    assert_eq!(written.points[0].config.positions[1].x, 9.0);
}
