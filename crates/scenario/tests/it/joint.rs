//! Campaigns of several scenarios in one file.

use meshpace_scenario::effective::Outlines;
use meshpace_scenario::{PART, Plot, Refusal, Scenario, Source};
use std::collections::BTreeMap;

const CAMPAIGN: &str = "title = 'Three'\n[[part]]\nfile = 'chain.toml'\n[[part]]\nname = 'long'\nfile = 'chain.toml'\n\
    set = ['duration=4 s']\nsweep.'topology.hops' = [8, 9]\n[[part]]\nfile = 'maps/town.toml'\n";
const CHAIN: &str = "duration = '2 s'\n[[flow]]\n[sweep]\nseeds = 3\n'topology.hops' = [1, 2]\n";
const TOWN: &str = "[topology]\nkind = 'nodes'\nfile = 'town.csv'\n[[flow]]\nfrom = 0\nto = 1\n";

fn load(name: &str) -> Result<Vec<u8>, String> {
    match name {
        "chain.toml" => Ok(CHAIN.into()),
        "maps/town.toml" => Ok(TOWN.into()),
        "maps/town.csv" => Ok("x_m,y_m\n0,0\n150,0\n".into()),
        "campaign.toml" => Ok(CAMPAIGN.into()),
        _ => Err(format!("{name}: not there")),
    }
}

fn read(text: &str, sets: &[&str]) -> Result<Scenario, Refusal> {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let source = Source { name: "campaign.toml".to_owned(), text: text.to_owned(), sets };
    Scenario::read_with(source, &load, "campaign")
}

fn points(scenario: &Scenario) -> Vec<String> {
    let point = |values: &[(String, serde_json::Value)]| {
        values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    scenario.points.iter().map(|point_of| point(&point_of.values)).collect()
}

#[test]
fn the_points_of_all_parts_follow_each_other() {
    let scenario = read(CAMPAIGN, &[]).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seeds, scenario.parts.len()), ("Three", 3, 3));
    let expected = [
        "part=\"chain\" topology.hops=1",
        "part=\"chain\" topology.hops=2",
        "part=\"long\" topology.hops=8",
        "part=\"long\" topology.hops=9",
        "part=\"town\"",
    ];
    assert_eq!(points(&scenario), expected);
    let seconds: Vec<f64> = scenario.points.iter().map(|point| point.config.duration.as_secs_f64()).collect();
    assert_eq!(seconds, [2.0, 2.0, 4.0, 4.0, 200.0]);
    let nodes: Vec<usize> = scenario.points.iter().map(|point| point.config.positions.len()).collect();
    assert_eq!(nodes, [2, 3, 9, 10, 2]);
    let files: Vec<String> = scenario.files.iter().map(|(name, _)| name.display().to_string()).collect();
    assert_eq!(files, ["chain.toml", "maps/town.csv", "maps/town.toml"]);
}

#[test]
fn the_campaign_says_what_its_plots_are_like() {
    let plot = "[plot]\nx = 'topology.hops'\nlines = ['part']\nlabels = { chain = 'short' }\n";
    let text = CAMPAIGN.replacen("[[part]]", &format!("{plot}[[part]]"), 1);
    let scenario = read(&text, &["plot.width=page"]).unwrap();
    let plot = &scenario.plot;
    assert_eq!((plot.x.as_deref(), plot.lines.as_deref()), (Some("topology.hops"), Some(&["part".to_owned()][..])));
    assert_eq!((plot.label("chain"), plot.width), ("short".to_owned(), Some(7.16)));
    assert_eq!(&Plot::from_source(&scenario.source), plot, "what a directory keeps says the same");
    // Neither points nor runs know of it.
    assert_eq!(points(&scenario), points(&read(CAMPAIGN, &[]).unwrap()));
    assert!(scenario.parts.iter().all(|part| part.sets.iter().all(|set| !set.contains("plot"))));
    let refused = read(&text.replace("['part']", "['parts']"), &[]).map(|_| ()).unwrap_err().render(false);
    assert!(refused.contains("plot.lines") && refused.contains("did you mean \"part\""), "{refused}");
}

#[test]
fn arguments_change_every_part_and_what_they_change_is_part_of_the_digest() {
    let scenario = read(CAMPAIGN, &["duration=7 s"]).unwrap();
    assert!(scenario.points.iter().all(|point| point.config.duration.as_secs_f64() == 7.0));
    assert_ne!(scenario.digest, read(CAMPAIGN, &[]).unwrap().digest);
    let swept = read(CAMPAIGN, &["sweep.\"flow.segment\"=[500, 900]"]).unwrap();
    assert_eq!((swept.points.len(), points(&swept)[9].as_str()), (10, "part=\"town\" flow.segment=900"));
    assert_eq!(read(&format!("seeds = 8\n{CAMPAIGN}"), &[]).unwrap().seeds, 8);
}

#[test]
fn a_point_is_the_run_that_its_scenario_has_alone() {
    let scenario = read(CAMPAIGN, &[]).unwrap();
    let files: BTreeMap<String, String> =
        scenario.files.iter().map(|(name, bytes)| (name.display().to_string(), format!("{bytes:?}"))).collect();
    let joint = Outlines::read(&scenario.source, &scenario.parts, &files).unwrap();
    assert_eq!(joint.points(), 5);
    let alone = |text: &str, files: &[(&str, &str)]| {
        let source = Source { name: String::new(), text: text.to_owned(), sets: Vec::new() };
        let files = files.iter().map(|(own, name)| ((*own).to_owned(), self::files(&scenario, name))).collect();
        Outlines::read(&source, &[], &files).unwrap()
    };
    let chain = alone(CHAIN, &[]);
    let town = alone(TOWN, &[("town.csv", "maps/town.csv")]);
    let in_maps = |name: &str| load(&format!("maps/{name}"));
    for (number, other, own, load_own) in
        [(0, &chain, 0, &load as meshpace_scenario::Load<'_>), (1, &chain, 1, &load), (4, &town, 0, &in_maps)]
    {
        let ((values, settings), (own_values, own_settings)) =
            (joint.point(number).unwrap(), other.point(own).unwrap());
        assert_eq!((values[0].0.as_str(), &values[1..]), (PART, &own_values[..]));
        assert_eq!(settings, own_settings);
        let built = joint.built(number, &load);
        assert!(built.is_some() && built == other.built(own, load_own), "{number}");
    }
    assert!(joint.point(5).is_none() && joint.built(5, &load).is_none());
}

fn files(scenario: &Scenario, name: &str) -> String {
    let found = scenario.files.iter().find(|(own, _)| own.as_os_str() == name);
    format!("{:?}", found.unwrap().1)
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, told) in [
        ("part = 3\n", "part: expected a list of tables"),
        ("part = [3]\n", "part: expected a list of tables"),
        ("[[part]]\n", "file is missing"),
        ("[[part]]\nfile = 3\n", "file: expected a string"),
        ("[[part]]\nfile = 'nothing.toml'\n", "nothing.toml: not there"),
        ("[[part]]\nfile = 'campaign.toml'\n", "itself a campaign of several scenarios"),
        ("[[part]]\nfile = 'chain.toml'\n[[part]]\nfile = 'chain.toml'\n", "two parts have the name \"chain\""),
        ("[[part]]\nfile = 'chain.toml'\nhops = 3\n", "hops: unknown key in a part of a campaign"),
        ("duration = '2 s'\n[[part]]\nfile = 'chain.toml'\n", "duration: unknown key in a campaign"),
        ("seeds = 0\n[[part]]\nfile = 'chain.toml'\n", "seeds: expected a whole number"),
        ("[[part]]\nfile = 'chain.toml'\nset = 'duration=4 s'\n", "set: expected a list"),
        ("[[part]]\nfile = 'chain.toml'\nsweep.topology.hops = [2]\n", "sweep.topology: expected a list of values"),
    ] {
        let refused = read(text, &[]).unwrap_err();
        assert!(refused.render(false).contains(told), "{text}: {}", refused.render(false));
        assert_eq!(refused.source.name, "campaign.toml", "{text}");
    }
    // A mistake in a part is reported with the file of that part.
    let refused = read("[[part]]\nfile = 'chain.toml'\nset = ['duratoin=4 s']\n", &[]).unwrap_err();
    assert_eq!(refused.source.name, "chain.toml");
    assert!(refused.render(false).contains("duratoin"), "{}", refused.render(false));
}
