//! Fixed set of choices of the model: one key for each choice that a simulator has to make and that
//! a real mesh does not tell.
//!
//! A choice is not part of what is compared. Choices concern the models of medium access, routing
//! and reception, and the lengths of windows and queues. Other topologies, loads and rates are
//! other questions and not part of the set. OLSR is not part of it either, because it needs tens of
//! seconds before it has routes.

use meshpace_mesh::config::{AodvDetection, LocalRepair, MacProfile, QueueConfig, Reception, RoutingConfig, RtsPolicy};
use meshpace_mesh::radio::power::dbm;
use meshpace_scenario::Scenario;
use meshpace_sim::Config;
use meshpace_transport::Config as Transport;
use std::path::Path;

/// Effect of a choice on one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    /// The choice changes something at the point.
    Changes,
    /// The point has this choice already, or only the opposite choice applies to it.
    IsSo,
    /// The choice has no meaning for the point, for this reason.
    MeansNothing(&'static str),
}
use Fit::{Changes, IsSo, MeansNothing};

/// New value of a key.
enum Setting {
    To(&'static str),
    /// Shift of the carrier sense threshold, dB.
    SenseBy(f64),
}
use Setting::{SenseBy, To};

/// A choice: its key, its value, and its effect on a point.
struct Candidate {
    key: &'static str,
    setting: Setting,
    fit: fn(&Config) -> Fit,
}

const fn candidate(key: &'static str, setting: Setting, fit: fn(&Config) -> Fit) -> Candidate {
    Candidate { key, setting, fit }
}

/// Short window, in segments: about one segment for each hop.
const SHORT_WINDOW: u32 = 8;
/// Long window, in segments: four times the usual 64, so that the receiver's window is no limit.
const LONG_WINDOW: u32 = 256;
/// Lengths of a short and of a long queue, in packets; ns-2 has 50.
const SHORT_QUEUE: usize = 10;
const LONG_QUEUE: usize = 200;

/// All choices, in the order in which they are listed.
const CANDIDATES: [Candidate; 23] = [
    candidate("mac.profile", To("ns2"), |point| profile(point, MacProfile::Ns2)),
    candidate("mac.profile", To("ieee"), |point| profile(point, MacProfile::Ieee)),
    candidate("mac.immediate_access", To("true"), |point| ht(point, |ht| ht.has_immediate_access())),
    candidate("mac.immediate_access", To("false"), |point| ht(point, |ht| !ht.has_immediate_access())),
    candidate("mac.busy_slot_counts", To("true"), |point| ht(point, |ht| ht.busy_slot_counts)),
    candidate("mac.busy_slot_counts", To("false"), |point| ht(point, |ht| !ht.busy_slot_counts)),
    candidate("radio.rts_cts", To("true"), |point| rts(point, RtsPolicy::Always)),
    candidate("radio.rts_cts", To("false"), |point| rts(point, RtsPolicy::Never)),
    candidate("radio.rts_threshold", To("0 B"), |point| threshold(point, |bytes| bytes == 0)),
    candidate("radio.rts_threshold", To("65535 B"), |point| threshold(point, |bytes| bytes >= 65_535)),
    candidate("radio.reception", To("ns2"), |point| so(point.mesh.radio.reception == Reception::Ns2)),
    candidate("radio.reception", To("sinr"), |point| so(point.mesh.radio.reception == Reception::Sinr)),
    // If power falls with the fourth power of the distance, 6 dB turn a sensing range of 550 m into
    // 777 m or 389 m.
    candidate("radio.carrier_sense_threshold", SenseBy(-6.0), |_| Changes),
    candidate("radio.carrier_sense_threshold", SenseBy(6.0), |_| Changes),
    candidate("routing.protocol", To("static"), |point| so(point.mesh.routing == RoutingConfig::Static)),
    candidate("routing.protocol", To("aodv"), |point| so(matches!(point.mesh.routing, RoutingConfig::Aodv(_)))),
    candidate("routing.local_repair", To("rfc3561"), |point| repair(point, LocalRepair::Rfc3561)),
    candidate("routing.local_repair", To("off"), |point| repair(point, LocalRepair::Off)),
    candidate("routing.detection", To("hello"), |point| match &point.mesh.routing {
        RoutingConfig::Aodv(aodv) => so(aodv.detection == AodvDetection::Hello),
        _ => MeansNothing("there is nothing to detect without AODV, or HELLOs already detect it"),
    }),
    candidate("flow.max_window", To("8"), |point| window(point, SHORT_WINDOW)),
    candidate("flow.max_window", To("256"), |point| window(point, LONG_WINDOW)),
    candidate("radio.queue", To("10"), |point| queue(point, SHORT_QUEUE)),
    candidate("radio.queue", To("200"), |point| queue(point, LONG_QUEUE)),
];

fn so(is_so: bool) -> Fit {
    if is_so { IsSo } else { Changes }
}

fn profile(point: &Config, profile: MacProfile) -> Fit {
    match point.mesh.mac.ht {
        Some(_) => MeansNothing("802.11n has its own MAC"),
        None => so(point.mesh.mac.profile == profile),
    }
}

/// Effect of a rule of 802.11n on which stations differ. Without 802.11n the choice does not apply.
fn ht(point: &Config, is_so: fn(&meshpace_mesh::config::HtConfig) -> bool) -> Fit {
    point.mesh.mac.ht.as_ref().map_or(IsSo, |ht| so(is_so(ht)))
}

fn rts(point: &Config, policy: RtsPolicy) -> Fit {
    match point.mesh.mac.rts {
        // The choices of the threshold are used instead.
        RtsPolicy::Threshold(_) => IsSo,
        now => so(now == policy),
    }
}

fn threshold(point: &Config, is_so: fn(u32) -> bool) -> Fit {
    match point.mesh.mac.rts {
        RtsPolicy::Threshold(bytes) => so(is_so(bytes)),
        _ => IsSo,
    }
}

fn repair(point: &Config, repair: LocalRepair) -> Fit {
    match &point.mesh.routing {
        RoutingConfig::Aodv(aodv) => so(aodv.local_repair == repair),
        _ => MeansNothing("only AODV repairs routes"),
    }
}

fn window(point: &Config, segments: u32) -> Fit {
    let now = |transport: &Transport| match transport {
        Transport::Tcp(tcp) => Some(tcp.max_window),
        Transport::Tpa(tpa) => Some(u32::from(tpa.receive_window)),
        Transport::Train(train) => Some(u32::from(train.max_window)),
        Transport::Udp(_) | Transport::Flush(_) => None,
    };
    let mut windows = point.flows.iter().filter_map(|flow| now(&flow.transport)).peekable();
    if windows.peek().is_none() {
        return MeansNothing("no flow has a window");
    }
    // The window field of TPA ends at 255.
    so(windows.all(|now| now.min(255) == segments.min(255)))
}

fn queue(point: &Config, packets: usize) -> Fit {
    match point.mesh.link.queue {
        QueueConfig::DropTail => so(point.mesh.link.limit == packets),
        _ => MeansNothing("the queue is not drop-tail"),
    }
}

/// A choice that is applied to the scenarios of a comparison.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of the choice for people, such as `mac.profile = ieee`.
    pub name: String,
    /// The scenarios with this choice, in their order, or the reason why it cannot be applied.
    pub scenarios: Result<Vec<Scenario>, String>,
}

/// All choices that differ from `scenarios` as they are written. A choice that cannot be made is
/// listed with the reason: one of the scenarios refuses it, it is compared or swept, or it
/// has no meaning there.
pub fn choices(scenarios: &[Scenario]) -> Vec<Choice> {
    CANDIDATES.iter().filter_map(|candidate| candidate.of(scenarios)).collect()
}

impl Candidate {
    /// The choice for these scenarios. `None` if all of them have it already.
    fn of(&self, scenarios: &[Scenario]) -> Option<Choice> {
        let points = || scenarios.iter().flat_map(|scenario| &scenario.points).map(|point| &point.config);
        let mut fits = points().map(self.fit);
        let first = fits.next()?;
        let value = match self.setting {
            To(value) => value.to_owned(),
            // The threshold is rounded to 0.01 dB.
            SenseBy(by) => {
                let sense = dbm(points().next()?.mesh.radio.sense_w()) + by;
                format!("{} dBm", (100.0 * sense).round() / 100.0)
            }
        };
        let choice = |scenarios| Some(Choice { name: format!("{} = {value}", self.key), scenarios });
        match (first, fits.all(|fit| fit == first)) {
            (IsSo, true) => None,
            (MeansNothing(why), true) => choice(Err(why.to_owned())),
            (_, false) => choice(Err("it is compared or swept".to_owned())),
            (Changes, true) => choice(self.applied(scenarios, &value)),
        }
    }

    /// The scenarios with this choice, or the reason why it cannot be applied.
    fn applied(&self, scenarios: &[Scenario], value: &str) -> Result<Vec<Scenario>, String> {
        if own_sets(scenarios).any(|key| overlap(key, self.key)) {
            return Err("it is compared".to_owned());
        }
        let set = format!("{}={value}", self.key);
        let changed = scenarios.iter().map(|scenario| with(scenario, &set)).collect::<Result<Vec<_>, _>>()?;
        for (before, after) in scenarios.iter().zip(&changed) {
            let points =
                |scenario: &Scenario| scenario.points.iter().map(|point| point.values.clone()).collect::<Vec<_>>();
            if points(before) != points(after) {
                return Err("it is swept".to_owned());
            }
            if configs(before).eq(configs(after)) {
                return Err("it changes nothing".to_owned());
            }
        }
        // If the choice makes two different scenarios equal, it is what they were compared for.
        for (number, one) in scenarios.iter().enumerate() {
            for (other, second) in scenarios.iter().enumerate().skip(number + 1) {
                if configs(&changed[number]).eq(configs(&changed[other])) && !configs(one).eq(configs(second)) {
                    return Err("it is compared".to_owned());
                }
            }
        }
        Ok(changed)
    }
}

fn configs(scenario: &Scenario) -> impl Iterator<Item = &Config> {
    scenario.points.iter().map(|point| &point.config)
}

/// A scenario with one more `--set`, or the reason why it is refused.
fn with(scenario: &Scenario, set: &str) -> Result<Scenario, String> {
    let mut source = scenario.source.clone();
    source.sets.push(set.to_owned());
    let load = |name: &str| {
        let file = scenario.files.iter().find(|(file, _)| file == Path::new(name));
        file.map(|(_, bytes)| bytes.clone()).ok_or_else(|| format!("{name}: it was not read before"))
    };
    Scenario::read_with(source, &load, &scenario.name).map_err(|refusal| {
        let first = refusal.problems.into_iter().next();
        first.map_or_else(|| "it is refused".to_owned(), |problem| problem.message)
    })
}

/// Keys of the `--set` arguments that not all scenarios share.
fn own_sets(scenarios: &[Scenario]) -> impl Iterator<Item = &str> {
    let is_common = |set: &String| scenarios.iter().all(|scenario| scenario.source.sets.contains(set));
    let sets = scenarios.iter().flat_map(|scenario| &scenario.source.sets);
    sets.filter(move |set| !is_common(set)).filter_map(|set| Some(set.split_once('=')?.0.trim()))
}

/// True if the two keys are equal or one is a prefix of the other. The numbers of flows are
/// ignored.
fn overlap(one: &str, other: &str) -> bool {
    let parts = |key: &str| -> Vec<String> {
        key.split('.').filter(|part| part.parse::<usize>().is_err()).map(str::to_owned).collect()
    };
    let (one, other) = (parts(one), parts(other));
    one.iter().zip(&other).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::Source;

    fn scenario(text: &str, sets: &[&str]) -> Scenario {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets };
        Scenario::read(source, Path::new("."), "test").unwrap_or_else(|why| panic!("{}", why.render(false)))
    }

    /// Names of the choices that apply, and of the others with the reason.
    fn of(scenarios: &[Scenario]) -> (Vec<String>, Vec<(String, String)>) {
        let (mut applied, mut refused) = (Vec::new(), Vec::new());
        for choice in choices(scenarios) {
            match choice.scenarios {
                Ok(changed) => {
                    assert_eq!(changed.len(), scenarios.len());
                    applied.push(choice.name);
                }
                Err(why) => refused.push((choice.name, why)),
            }
        }
        (applied, refused)
    }

    const CHAIN: &str = "duration = '4 s'\n[[flow]]\n";

    fn variants(text: &str, sets: [&str; 2]) -> [Scenario; 2] {
        sets.map(|set| scenario(text, &[set]))
    }

    #[test]
    fn a_chain_with_static_routes_has_what_differs_from_it() {
        let (applied, refused) = of(&variants(CHAIN, ["flow.transport=newreno", "flow.transport=cubic"]));
        assert_eq!(
            applied,
            [
                "mac.profile = ieee",
                "radio.rts_cts = false",
                "radio.reception = sinr",
                "radio.carrier_sense_threshold = -84.07 dBm",
                "radio.carrier_sense_threshold = -72.07 dBm",
                "routing.protocol = aodv",
                "flow.max_window = 8",
                "flow.max_window = 256",
                "radio.queue = 10",
                "radio.queue = 200",
            ]
        );
        let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"routing.local_repair = off") && names.contains(&"routing.detection = hello"));
    }

    #[test]
    fn the_opposite_of_what_is_written_is_asked_for() {
        let text = "duration = '4 s'\n[mac]\nprofile = 'ieee'\n[radio]\nrts_cts = false\nreception = 'sinr'\n[routing]\nprotocol = 'aodv'\n\
            local_repair = 'off'\n[[flow]]\nmax_window = 8\n";
        let (applied, _) = of(&[scenario(text, &[])]);
        for there in ["mac.profile = ns2", "radio.rts_cts = true", "radio.reception = ns2", "routing.protocol = static"]
        {
            assert!(applied.contains(&there.to_owned()), "{there}: {applied:?}");
        }
        assert!(applied.contains(&"routing.local_repair = rfc3561".to_owned()));
        for absent in ["mac.profile = ieee", "routing.local_repair = off", "flow.max_window = 8"] {
            assert!(!applied.contains(&absent.to_owned()), "{absent}: {applied:?}");
        }
    }

    #[test]
    fn what_is_compared_or_swept_is_no_choice() {
        let why = |scenarios: &[Scenario], name: &str| {
            let (_, refused) = of(scenarios);
            refused.into_iter().find(|(of, _)| of == name).map(|(_, why)| why)
        };
        let compared = Some("it is compared".to_owned());
        let both = Some("it is compared or swept".to_owned());
        assert_eq!(why(&variants(CHAIN, ["mac.profile=ns2", "mac.profile=ieee"]), "mac.profile = ieee"), both);
        // Neither has what the choice has, but they differ in nothing else.
        assert_eq!(
            why(&variants(CHAIN, ["flow.max_window=3", "flow.0.max_window=4"]), "flow.max_window = 8"),
            compared
        );
        let [one, other] = ["[[flow]]\nmax_window = 3\n", "[[flow]]\nmax_window = 4\n"].map(|text| scenario(text, &[]));
        assert_eq!(why(&[one, other], "flow.max_window = 8"), compared);
        let swept = scenario(&format!("{CHAIN}[sweep]\n'flow.max_window' = [3, 4]\n"), &[]);
        assert_eq!(why(&[swept], "flow.max_window = 8"), Some("it is swept".to_owned()));
        let swept = scenario(&format!("{CHAIN}[sweep]\n'mac.profile' = ['ns2', 'ieee']\n"), &[]);
        assert_eq!(why(&[swept], "mac.profile = ns2"), both);
    }

    #[test]
    fn what_a_scenario_refuses_has_the_reason() {
        let text = "[radio]\nrate = '6 Mbit/s'\nrts_threshold = '500 B'\n[mac]\nprofile = 'ieee'\n[topology]\nspacing = '30 m'\n[[flow]]\ntraffic = 'cbr'\n\
            rate = '10 kbit/s'\ntransport = 'udp'\n";
        let (applied, refused) = of(&[scenario(text, &[])]);
        let why =
            |name: &str| refused.iter().find(|(of, _)| of == name).map(|(_, why)| why.as_str()).unwrap_or_default();
        assert!(why("radio.reception = ns2").contains("802.11b"), "{refused:?}");
        assert_eq!(why("flow.max_window = 8"), "no flow has a window");
        assert!(!why("mac.profile = ns2").is_empty(), "{refused:?}");
        assert!(applied.contains(&"radio.rts_threshold = 0 B".to_owned()), "{applied:?}");
        // OFDM senses from -62 dBm on.
        for name in ["radio.carrier_sense_threshold = -68 dBm", "radio.carrier_sense_threshold = -56 dBm"] {
            assert!(applied.contains(&name.to_owned()), "{applied:?}");
        }
        let moving = "[topology]\nkind = 'waypoint'\nnodes = 4\nwidth = '100 m'\nheight = '100 m'\nflows = { count = 1 }\n\
            [routing]\nprotocol = 'aodv'\n[[flow]]\n";
        let (_, refused) = of(&[scenario(moving, &[])]);
        assert!(
            refused.iter().any(|(name, why)| name == "routing.protocol = static" && why.contains("move")),
            "{refused:?}"
        );
    }

    #[test]
    fn a_part_of_a_key_overlaps_with_it() {
        assert!(overlap("flow.0.max_window", "flow.max_window") && overlap("mac", "mac.profile"));
        assert!(!overlap("flow.transport", "flow.max_window"));
    }
}
