//! Links to the page of `meshpace view`. The part after the `#` contains what the page plays, in
//! the format of `web/src/link.ts`. It is a JSON object with the scenario, deflated without a
//! header (RFC 1951), in base64url without padding (RFC 4648, section 5).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meshpace_lab::register::data::{Curve, Panel};
use meshpace_lab::register::{Effort, Experiment, Register};
use meshpace_scenario::{Files, Point, Scenario, Source};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Version of the format.
const VERSION: &str = "v1.";
/// Compression level, 0 to 10.
const LEVEL: u8 = 9;

/// Link that plays `experiment` on `page`: the first point of the first curve with runs. If another
/// curve differs only in its transport, that transport is played beside it. `None` for an
/// experiment without runs.
pub fn link(page: &str, register: &Register, experiment: &Experiment) -> Option<String> {
    let scenario = register.runs(experiment, Effort::Paper).ok()??.scenario;
    // All points are read, with the keys as written in the file. Some points are not run in the
    // experiment, and its runs are too long to watch.
    let source = Source { sets: Vec::new(), ..scenario.source };
    let all = Scenario::read_with(source.clone(), &among(&scenario.files), &scenario.name).ok()?;
    let published = &experiment.published;
    let values: Vec<Map<String, Value>> =
        all.points.iter().map(|point: &Point| point.values.iter().cloned().collect()).collect();
    let is_of = |curve: &Curve, point: usize| {
        published.panels.first().is_none_or(|panel: &Panel| panel.has(&values[point])) && curve.has(&values[point])
    };
    let first = |curve: &Curve| (0..values.len()).find(|point| is_of(curve, *point));
    let curves: Vec<(&Curve, usize)> =
        published.curves.iter().filter_map(|curve| Some((curve, first(curve)?))).collect();
    let point = curves.first().map_or(0, |(_, point)| *point);
    let others = |point: usize| values[point].iter().filter(|(key, _)| *key != "flow.transport").collect::<Vec<_>>();
    let beside = curves.iter().find_map(|(_, other)| {
        let name = values[*other].get("flow.transport").and_then(Value::as_str)?;
        (*other != point && others(*other) == others(point)).then_some(name)
    });
    Some(address(page, &source, &scenario.files, point, beside))
}

/// Loader that returns files which were read before.
fn among(files: &Files) -> impl Fn(&str) -> Result<Vec<u8>, String> {
    move |name| {
        let file = files.iter().find(|(path, _)| path == Path::new(name));
        file.map(|(_, content)| content.clone()).ok_or_else(|| format!("{name}: not read before"))
    }
}

/// Address of a view of `source` at point `point` of its sweep. `files` are the files that the
/// source names. `compare` is the transport that is played beside it.
fn address(page: &str, source: &Source, files: &Files, point: usize, compare: Option<&str>) -> String {
    let (name, text, sets) = (&source.name, &source.text, &source.sets);
    let text_of = |(path, content): &(PathBuf, Vec<u8>)| {
        (path.to_string_lossy().into_owned(), Value::from(String::from_utf8_lossy(content)))
    };
    let files: Map<String, Value> = files.iter().map(text_of).collect();
    let view = json!({
        "source": { "name": name, "text": text, "files": files, "sets": sets, "point": point, "seed": 1 },
        "compare": compare,
        "at": 0,
    });
    let packed = miniz_oxide::deflate::compress_to_vec(view.to_string().as_bytes(), LEVEL);
    format!("{page}#{VERSION}{}", URL_SAFE_NO_PAD.encode(packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_unpacks_to_a_scenario_with_that_point() {
        let register = Register::embedded();
        let mut compared = 0;
        for experiment in &register.experiments {
            let Some(link) = link("view/", &register, experiment) else {
                assert!(register.owner(experiment).unwrap().is_none(), "{}: no link", experiment.published.id);
                continue;
            };
            let packed = URL_SAFE_NO_PAD.decode(link.strip_prefix("view/#v1.").unwrap()).unwrap();
            let text = miniz_oxide::inflate::decompress_to_vec(&packed).unwrap();
            let view: Value = serde_json::from_slice(&text).unwrap();
            let source = &view["source"];
            let owner = register.owner(experiment).unwrap().unwrap();
            assert_eq!(source["text"], owner.scenario.as_ref().unwrap().text, "{}", experiment.published.id);
            let text = source["text"].as_str().unwrap().to_owned();
            let source_read = Source { name: "link".to_owned(), text, sets: Vec::new() };
            let files = source["files"].as_object().unwrap().iter();
            let files = files.map(|(name, text)| (name.into(), text.as_str().unwrap().as_bytes().to_vec())).collect();
            let scenario = Scenario::read_with(source_read, &among(&files), "link").unwrap();
            let point = source["point"].as_u64().unwrap() as usize;
            assert!(point < scenario.points.len(), "{}", experiment.published.id);
            compared += usize::from(view["compare"].is_string());
        }
        assert!(compared > 10, "{compared}");
    }
}
