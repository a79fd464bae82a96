//! Test report for continuous integration in JUnit's XML format, with one test case for each
//! program and one for the verdict.

use meshpace_emulator::emulation::{Emulation, ProgramReport};
use meshpace_emulator::verdict::Verdict;
use meshpace_scenario::Scenario;

struct Case {
    name: String,
    seconds: f64,
    failure: Option<String>,
}

/// Creates the report.
pub fn report(scenario: &Scenario, emulation: &Emulation) -> String {
    let mut cases: Vec<Case> = emulation.programs.iter().map(program).collect();
    let is_valid = emulation.verdict != Verdict::NotValid;
    cases.push(Case {
        name: "real time".to_owned(),
        seconds: emulation.elapsed.as_secs_f64(),
        failure: (!is_valid).then(|| format!("{}: what was measured is the machine", emulation.verdict)),
    });
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" \
         time=\"{:.3}\">\n",
        escaped(&scenario.name),
        cases.len(),
        emulation.elapsed.as_secs_f64()
    );
    for Case { name, seconds, failure } in &cases {
        let start = format!("  <testcase classname=\"meshpace\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
        match failure {
            None => text.push_str(&format!("{start}/>\n")),
            Some(why) => {
                text.push_str(&format!("{start}>\n    <failure message=\"{}\"/>\n  </testcase>\n", escaped(why)));
            }
        }
    }
    text.push_str("</testsuite>\n");
    text
}

fn program(program: &ProgramReport) -> Case {
    // A program that the emulation had to end, such as a server, counts as successful.
    let failure = match program.status {
        Some(0) => None,
        Some(_) if program.was_ended => None,
        Some(status) => Some(format!("ended with status {status}")),
        None => Some("was not started".to_owned()),
    };
    Case { name: format!("{}: {}", program.spec.node, program.spec.command), seconds: program.lived_s, failure }
}

/// Escapes a text for the value of an attribute (XML 1.0, sections 2.2 and 2.4). XML does not allow
/// control characters, so they are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            control if control.is_control() => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_is_given_does_not_break_the_file() {
        assert_eq!(escaped("a < b && \"c\"\n\u{1}>"), "a &lt; b &amp;&amp; &quot;c&quot; ?&gt;");
    }
}
