//! Maps of real meshes: lists of nodes in CSV, GraphML and JSON, in metres or degrees.
//!
//! The position of a node is `x_m` and `y_m` (metres), or latitude and longitude (degrees, WGS 84;
//! also `lat` and `lon`, `lng` or `long`, in upper or lower case). In CSV, plain `x` and `y` are
//! metres as well. If all nodes of such a file are within one metre, the numbers are probably
//! degrees, and the file is refused. In GraphML and JSON, plain `x` and `y` are positions in a
//! drawing and are not used.
//!
//! GraphML and JSON also contain links. JSON is accepted in the formats of community networks.
//! `nodes` is a list or an object. The position is in the node itself, in its `properties`
//! (NetJSON), `location` (meshviewer), `position` or `nodeinfo.location` (Freifunk).
//!
//! Degrees are converted to metres on a plane that touches the sphere at the middle of the map
//! (equirectangular projection). For maps up to 100 km wide in temperate latitudes, distances are
//! within 0.1 % of the great-circle distance.

use super::{MAX_COORDINATE, at};
use crate::json_lines::Lines;
use meshpace_mesh::config::Position;
use serde_json::{Map as Object, Value};
use std::collections::BTreeMap;

/// Mean radius of the earth, m (IUGG).
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A map.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Map {
    /// Positions by node number, in the order of the file.
    pub positions: Vec<Position>,
    /// Links; `None` if the format or the file has none.
    pub links: Option<Vec<(u64, u64)>>,
    /// Names of the nodes, by number; empty if the file has none.
    pub names: Vec<String>,
}

/// An error in a map: the line and the message.
pub type Wrong = (String, String);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Metres(f64, f64),
    Degrees { latitude: f64, longitude: f64 },
}

const EXPECTED: &str = "expected x_m and y_m (metres) or latitude and longitude (degrees)";

/// Reads the map in the file `name`, whose extension selects the format.
pub fn read(name: &str, bytes: &[u8]) -> Result<Map, Wrong> {
    match name.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
        Some("graphml" | "xml") => graphml(bytes),
        Some("json" | "geojson") => json(bytes),
        _ => csv(bytes),
    }
}

/// Parses a position from named texts. The error says what is missing or wrong.
fn place<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Place, String> {
    let first = |names: &[&str]| names.iter().find_map(|name| get(name).map(|text| text.trim().to_owned()));
    let number = |what: &str, text: String, limit: f64| match text.parse::<f64>() {
        Ok(number) if number.abs() <= limit => Ok(number),
        _ => Err(format!("expected {what}, found \"{text}\"")),
    };
    let metres = (first(&["x_m"]), first(&["y_m"]));
    let degrees = (first(&["latitude", "lat"]), first(&["longitude", "lon", "lng", "long"]));
    match (metres, degrees) {
        ((Some(x), Some(y)), _) => {
            let metres = |text| number("a number of metres", text, MAX_COORDINATE);
            Ok(Place::Metres(metres(x)?, metres(y)?))
        }
        (_, (Some(latitude), Some(longitude))) => Ok(Place::Degrees {
            latitude: number("a latitude of -85 to 85 degrees", latitude, 85.0)?,
            longitude: number("a longitude of -180 to 180 degrees", longitude, 180.0)?,
        }),
        _ => Err(format!("unknown coordinates: {EXPECTED}")),
    }
}

/// Converts all positions to one plane.
fn project(places: &[(String, Place)]) -> Result<Vec<Position>, Wrong> {
    let degrees = |place: &Place| match *place {
        Place::Degrees { latitude, longitude } => Some((latitude, longitude)),
        Place::Metres(..) => None,
    };
    let Some((_, first)) = places.first() else {
        return Err(("1".to_owned(), "the map has no nodes".to_owned()));
    };
    let Some((_, origin)) = degrees(first) else {
        let metres = |(whose, place): &(String, Place)| match *place {
            Place::Metres(x, y) => Ok(at(x, y)),
            Place::Degrees { .. } => {
                Err((whose.clone(), "this node has degrees, but the nodes before it have metres".to_owned()))
            }
        };
        return places.iter().map(metres).collect();
    };
    let mut points = Vec::new();
    for (whose, place) in places {
        let Some((latitude, longitude)) = degrees(place) else {
            return Err((whose.clone(), "this node has metres, but the nodes before it have degrees".to_owned()));
        };
        // The difference of longitudes on the shorter way around the earth, even across the date
        // line.
        points.push((latitude, (longitude - origin + 540.0).rem_euclid(360.0) - 180.0));
    }
    let middle = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (low + high) / 2.0
    };
    let latitude = middle(&mut points.iter().map(|point| point.0));
    let longitude = middle(&mut points.iter().map(|point| point.1));
    // The cosine of the standard library differs between machines.
    let shrink = libm::cos(latitude.to_radians());
    let metres = |degrees: f64| degrees.to_radians() * EARTH_RADIUS_M;
    Ok(points.iter().map(|point| at(metres(point.1 - longitude) * shrink, metres(point.0 - latitude))).collect())
}

fn csv(bytes: &[u8]) -> Result<Map, Wrong> {
    let line_of = |at: Option<&csv::Position>| at.map_or(1, csv::Position::line).to_string();
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| ("1".to_owned(), error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|title| title.eq_ignore_ascii_case(name));
    let has = |names: &[&str]| names.iter().any(|name| column(name).is_some());
    let has_degrees = has(&["latitude", "lat"]) && has(&["longitude", "lon", "lng", "long"]);
    let is_plain = !(has(&["x_m"]) && has(&["y_m"]) || has_degrees);
    if is_plain && !(has(&["x"]) && has(&["y"])) {
        return Err(("1".to_owned(), format!("{EXPECTED} among the columns of the header")));
    }
    let called = |name: &str| match name {
        "x_m" if is_plain => column("x"),
        "y_m" if is_plain => column("y"),
        _ => column(name),
    };
    let title = ["name", "node", "id", "hostname"].iter().find_map(|title| column(title));
    let (mut places, mut names) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| (line_of(error.position()), error.to_string()))?;
        let line = line_of(record.position());
        let place = place(|name| called(name).and_then(|column| record.get(column)));
        places.push((line.clone(), place.map_err(|why| (line, why))?));
        names.extend(title.map(|column| record.get(column).unwrap_or_default().to_owned()));
    }
    let positions = project(&places)?;
    if is_plain && positions.len() > 1 && are_degrees(&positions) {
        let why = "x and y are metres, but all nodes are within one metre; for degrees, use the columns latitude and longitude";
        return Err(("1".to_owned(), why.to_owned()));
    }
    Ok(Map { positions, links: None, names })
}

/// True if the numbers of a map cannot be metres and may be degrees, since a mesh is larger than a
/// metre.
fn are_degrees(positions: &[Position]) -> bool {
    let first = positions[0];
    positions.iter().all(|place| place.x.abs() <= 180.0 && place.y.abs() <= 180.0 && place.distance(first) < 1.0)
}

fn graphml(bytes: &[u8]) -> Result<Map, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|error| ("1".to_owned(), error.to_string()))?;
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| (error.pos().row.to_string(), error.to_string()))?;
    let elements = |name: &'static str| document.descendants().filter(move |node| node.tag_name().name() == name);
    let line = |node: &roxmltree::Node<'_, '_>| document.text_pos_at(node.range().start).row.to_string();
    let mut names = BTreeMap::new();
    for key in elements("key") {
        if let (Some(id), Some(name)) = (key.attribute("id"), key.attribute("attr.name")) {
            names.insert(id, name);
        }
    }
    let (mut places, mut numbers, mut names_of) = (Vec::new(), BTreeMap::new(), Vec::new());
    for node in elements("node") {
        let data: Vec<(&str, &str)> = node
            .children()
            .filter(|child| child.tag_name().name() == "data")
            .filter_map(|child| Some((*names.get(child.attribute("key")?)?, child.text()?)))
            .collect();
        let get = |name: &str| data.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, text)| *text);
        let id = node.attribute("id").unwrap_or_default();
        let place = place(get).map_err(|why| (line(&node), format!("node \"{id}\": {why}")))?;
        numbers.insert(id.to_owned(), places.len() as u64);
        names_of.push(id.to_owned());
        places.push((line(&node), place));
    }
    let mut links = Vec::new();
    for edge in elements("edge") {
        let end = |key| {
            let id = edge.attribute(key).unwrap_or_default();
            numbers.get(id).copied().ok_or_else(|| (line(&edge), format!("a link with \"{id}\", which is not a node")))
        };
        links.push((end("source")?, end("target")?));
    }
    Ok(Map { positions: project(&places)?, links: Some(links), names: names_of })
}

fn json(bytes: &[u8]) -> Result<Map, Wrong> {
    let document: Value =
        serde_json::from_slice(bytes).map_err(|error| (error.line().to_string(), error.to_string()))?;
    let nodes: Vec<(Option<String>, &Value)> = match document.get("nodes") {
        Some(Value::Array(nodes)) => nodes.iter().map(|node| (None, node)).collect(),
        Some(Value::Object(nodes)) => nodes.iter().map(|(id, node)| (Some(id.clone()), node)).collect(),
        _ => return Err(("1".to_owned(), "expected an object with a list \"nodes\"".to_owned())),
    };
    let text = String::from_utf8_lossy(bytes);
    let lines = Lines::new(&text);
    let (mut places, mut numbers, mut names) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (number, (key, node)) in nodes.into_iter().enumerate() {
        let line = match &key {
            Some(key) => lines.of_key(&["nodes"], key),
            None => lines.of(&["nodes"], number),
        };
        let info = node.get("nodeinfo");
        let id = [Some(node), info]
            .into_iter()
            .flatten()
            .find_map(|holder| ["id", "node_id"].iter().find_map(|name| holder.get(name)).map(plain));
        let id = id.or(key).unwrap_or_else(|| number.to_string());
        let holders: Vec<&Object<String, Value>> = [
            Some(node),
            node.get("properties"),
            node.get("location"),
            node.get("position"),
            info.and_then(|info| info.get("location")),
        ]
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect();
        let texts: Vec<(&str, String)> = holders
            .iter()
            .flat_map(|holder| holder.iter())
            .filter(|(_, value)| value.is_number() || value.is_string())
            .map(|(name, value)| (name.as_str(), plain(value)))
            .collect();
        let get = |name: &str| texts.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, text)| &**text);
        let place = place(get).map_err(|why| (line.clone(), format!("node \"{id}\": {why}")))?;
        let host = [Some(node), info].into_iter().flatten().find_map(|holder| holder.get("hostname"));
        names.push(host.map_or_else(|| id.clone(), plain));
        numbers.insert(id, number as u64);
        places.push((line, place));
    }
    let listed = ["links", "edges"].iter().find_map(|name| Some((*name, document.get(name)?.as_array()?)));
    let mut links = Vec::new();
    let entries = listed.into_iter().flat_map(|(name, links)| links.iter().map(move |link| (name, link)));
    for (number, (name, link)) in entries.enumerate() {
        let end = |key| {
            let id = link.get(key).map(plain).unwrap_or_default();
            let why = || (lines.of(&[name], number), format!("link {number}: {key} \"{id}\" is not a node"));
            numbers.get(&id).copied().ok_or_else(why)
        };
        links.push((end("source")?, end("target")?));
    }
    Ok(Map { positions: project(&places)?, links: listed.map(|_| links), names })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(name: &str, text: &str) -> String {
        read(name, text.as_bytes()).unwrap_err().0
    }

    #[test]
    fn csv_has_a_header_and_names_its_bad_line() {
        let good = "node,x_m,y_m\n0,0,0\n1,200,-1.5\n";
        assert_eq!(read("m.csv", good.as_bytes()).unwrap().positions, [at(0.0, 0.0), at(200.0, -1.5)]);
        assert_eq!(line_of("m.csv", "east,north\n0,0\n"), "1");
        assert_eq!(line_of("m.csv", "x_m,y_m\n0,0\n5,NaN\n"), "3");
        assert_eq!(line_of("m.csv", "x_m,y_m\n0,0\n5,\n"), "3");
        assert_eq!(line_of("m.csv", "x_m,y_m\n0,0\n5\n"), "3");
        assert_eq!(line_of("m.csv", "lat,lon\n91,0\n"), "2");
        assert_eq!(line_of("m.csv", "x_m,y_m\n"), "1");
    }

    #[test]
    fn a_plain_x_and_y_are_metres_and_never_degrees() {
        let plain = "name,X,y\na,0,0\nb,-150.5,20\n";
        assert_eq!(read("m.csv", plain.as_bytes()).unwrap().positions, [at(0.0, 0.0), at(-150.5, 20.0)]);
        let (line, why) = read("m.csv", b"x,y\n13.4050,52.5200\n13.4065,52.5221\n").unwrap_err();
        assert!(line == "1" && why.contains("latitude"), "{line}: {why}");
        // Two names for the same: the one with the unit counts.
        assert_eq!(read("m.csv", b"x,x_m,y_m\n7,0,0\n7,90,0\n").unwrap().positions[1], at(90.0, 0.0));
    }

    /// The great-circle distance (haversine formula).
    fn great_circle(a: (f64, f64), b: (f64, f64)) -> f64 {
        let half = |x: f64, y: f64| ((y - x).to_radians() / 2.0).sin().powi(2);
        let h = half(a.0, b.0) + a.0.to_radians().cos() * b.0.to_radians().cos() * half(a.1, b.1);
        2.0 * EARTH_RADIUS_M * h.sqrt().asin()
    }

    #[test]
    fn degrees_become_metres() {
        let corners = [(52.40, 13.20), (52.60, 13.20), (52.40, 13.70), (52.61, 13.72), (52.5, 13.4)];
        let text: String = corners.iter().map(|(lat, lon)| format!("{lat},{lon}\n")).collect();
        let positions = read("m.csv", format!("Lat,Long\n{text}").as_bytes()).unwrap().positions;
        for (a, &p) in corners.iter().zip(&positions) {
            for (b, &q) in corners.iter().zip(&positions).filter(|(b, _)| *b != a) {
                let (flat, round) = (p.distance(q), great_circle(*a, *b));
                assert!((flat / round - 1.0).abs() < 0.003, "{a:?} {b:?}: {flat} m, {round} m");
            }
        }
        // North is up, east is right.
        assert!(positions[1].y > positions[0].y && positions[2].x > positions[0].x);
        let across = read("m.csv", b"latitude,longitude\n0,179.999\n0,-179.999\n").unwrap().positions;
        assert!((across[1].x - across[0].x - 222.39).abs() < 0.01, "{across:?}");
    }

    const GRAPHML: &str = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d1" for="node" attr.name="Latitude" attr.type="double"/>
<key id="d2" for="node" attr.name="Longitude" attr.type="double"/>
<graph edgedefault="undirected">
<node id="a"><data key="d1">48.0</data><data key="d2">11.0</data></node>
<node id="b"><data key="d1">48.001</data><data key="d2">11.0</data></node>
<edge source="a" target="b"/>
</graph></graphml>"#;

    #[test]
    fn graphml_has_nodes_and_links() {
        let map = read("m.graphml", GRAPHML.as_bytes()).unwrap();
        // A thousandth of a degree of latitude is 111.195 m.
        assert!((map.positions[1].y - map.positions[0].y - 111.195).abs() < 0.001);
        assert_eq!(map.links, Some(vec![(0, 1)]));
        let without = GRAPHML.replace(
            r#"<data key="d2">11.0</data></node>
<edge"#,
            "</node>\n<edge",
        );
        let (line, why) = read("m.graphml", without.as_bytes()).unwrap_err();
        assert!(line == "7" && why.contains("node \"b\": unknown coordinates"), "{line}: {why}");
        let (line, why) = read("m.graphml", GRAPHML.replace("target=\"b\"", "target=\"c\"").as_bytes()).unwrap_err();
        assert!(line == "8" && why.contains("\"c\""), "{line}: {why}");
        assert_eq!(line_of("m.graphml", "<graphml>\n<node></edge>\n</graphml>"), "2");
    }

    #[test]
    fn json_comes_in_the_shapes_of_community_networks() {
        let shapes = [
            r#"{"nodes":[{"id":"a","x_m":0,"y_m":0},{"id":"b","x_m":"150","y_m":20}],"links":[{"source":"a","target":"b"}]}"#,
            r#"{"type":"NetworkGraph","nodes":[{"id":"a","properties":{"x_m":0,"y_m":0}},{"id":"b","properties":{"x_m":150,"y_m":20}}],
               "links":[{"source":"a","target":"b","cost":1.0}]}"#,
            r#"{"nodes":{"a":{"position":{"x_m":0,"y_m":0}},"b":{"position":{"x_m":150,"y_m":20}}},"edges":[{"source":"a","target":"b"}]}"#,
            r#"{"nodes":[{"nodeinfo":{"node_id":"a","location":{"x_m":0,"y_m":0}}},{"nodeinfo":{"node_id":"b","location":{"x_m":150,"y_m":20}}}],
               "links":[{"source":"a","target":"b"}]}"#,
        ];
        for shape in shapes {
            let map = read("m.json", shape.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {shape}"));
            assert_eq!(map.positions, [at(0.0, 0.0), at(150.0, 20.0)], "{shape}");
            assert_eq!(map.links, Some(vec![(0, 1)]), "{shape}");
        }
        assert_eq!(line_of("m.json", "{\n\"nodes\": [\n}"), "3");
        assert_eq!(line_of("m.json", "[]"), "1");
    }

    #[test]
    fn an_error_in_json_names_its_line_besides_the_node() {
        let error = |text: &str| read("m.json", text.as_bytes()).unwrap_err();
        let (line, why) = error("{\"nodes\":[\n{\"node_id\":\"roof\",\n\"location\":{\"latitude\":48}}]}");
        assert!(line == "2" && why.starts_with("node \"roof\": unknown coordinates"), "{line}: {why}");
        let (line, why) = error("{\"nodes\":[{\"id\":1,\"x_m\":0,\"y_m\":0},\n\n{\"id\":2,\"lat\":48,\"lon\":11}]}");
        assert!(line == "3" && why.starts_with("this node has degrees"), "{line}: {why}");
        // Where nodes are the values of an object, the reader may have them in another order.
        let (line, why) = error("{\"nodes\":{\n\"b\":{\"x_m\":0,\"y_m\":0},\n\"a\":{\"x_m\":1}}}");
        assert!(line == "3" && why.starts_with("node \"a\""), "{line}: {why}");
        let nodes = "\"nodes\":[{\"id\":1,\"x_m\":0,\"y_m\":0}]";
        let (line, why) =
            error(&format!("{{{nodes},\n\"edges\":[{{\"source\":1,\"target\":1}},\n{{\"source\":1,\"target\":5}}]}}"));
        assert!(line == "3" && why == "link 1: target \"5\" is not a node", "{line}: {why}");
    }
}
