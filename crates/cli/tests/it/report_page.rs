//! The report as a reader sees it in a browser. The claims that hold, and the reasons why others do
//! not, are in the first 800 pixels with the numbers of verdicts.json. Nothing is wider than the
//! page.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::has;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Script that is appended to the page. It finds the verdicts and causes that are completely within
/// the first 800 pixels, and measures widths. It sends the results to the surrounding page, which
/// is needed because the window of a headless browser is never narrower than 500 pixels.
const PROBE: &str = r#"<script>
const seen = (selector, key) => Object.fromEntries([...document.querySelectorAll(selector)]
  .filter((element) => element.getBoundingClientRect().bottom + scrollY <= 800 && element.getBoundingClientRect().height > 0)
  .map((element) => [element.dataset[key], Number(element.textContent.match(/\d+(?!.*\d)/)[0])]));
parent.postMessage(JSON.stringify({
  verdicts: seen("header [data-verdict]", "verdict"), causes: seen("button[data-cause]", "cause"),
  papers: [...document.querySelectorAll(".totals [data-paper]")].map((paper) => paper.dataset.paper),
  wide: document.documentElement.scrollWidth, window: innerWidth,
  found: (() => { const input = document.querySelector(".find input"); input.value = "same as a table"; input.dispatchEvent(new Event("input", { bubbles: true }));
    return [...document.querySelectorAll("section.experiment")].filter((section) => !section.hidden).map((section) => section.id); })(),
  why: (() => { document.querySelector(".find input").value = ""; document.querySelector("button[data-cause=unsupported]")?.click();
    return [...document.querySelectorAll("section.experiment")].filter((section) => !section.hidden).map((section) => section.id); })(),
}), "*");
</script></body>"#;

/// The surrounding page.
const AROUND: &str = r#"<pre id="measured"></pre><script>
onmessage = (event) => { document.getElementById("measured").textContent = event.data; };
</script><iframe src="probe.html" height="800" width="WIDTH"></iframe>"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the results of `probe.html` in a directory, shown in a frame of this width.
fn measured(directory: &Path, width: u32) -> Value {
    let profile = tempfile::tempdir().unwrap();
    let page = directory.join("around.html");
    fs::write(&page, AROUND.replace("WIDTH", &width.to_string())).unwrap();
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--window-size=1400,900", "--virtual-time-budget=20000"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let told = dom.split("<pre id=\"measured\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let told = told.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&told.replace("&amp;", "&")).unwrap()
}

/// Returns the entries of verdicts.json.
fn entries(file: &Path) -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Counts each word at a key of the entries.
fn counted(entries: &[Value], key: &str) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for word in entries.iter().filter_map(|entry| entry[key].as_str()) {
        *counted.entry(word.replace('_', " ")).or_default() += 1;
    }
    counted
}

/// Returns the words that are completely within the first 800 pixels, with their numbers.
fn seen(measured: &Value, key: &str) -> BTreeMap<String, u64> {
    let pairs = measured[key].as_object().unwrap().iter();
    pairs.map(|(name, count)| (name.clone(), count.as_u64().unwrap())).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn what_holds_and_why_the_rest_does_not_is_seen_at_once() {
    if !has("chromium", "chromium") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let register = root().join("examples/register");
    let status = Command::new(cargo_bin("meshpace"))
        .args(["reproduce", "--quiet", "--register"])
        .arg(register)
        .arg("--out")
        .arg(scratch.path())
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let entries = entries(&scratch.path().join("verdicts.json"));
    let (verdicts, causes) = (counted(&entries, "verdict"), counted(&entries, "cause"));
    assert!(verdicts.len() > 1 && causes.contains_key("unsupported"), "{verdicts:?} {causes:?}");
    let page = fs::read_to_string(scratch.path().join("index.html")).unwrap();
    fs::write(scratch.path().join("probe.html"), page.replace("</body>", PROBE)).unwrap();
    for width in [1280, 390] {
        let measured = measured(scratch.path(), width);
        assert_eq!(measured["window"], width);
        assert_eq!(seen(&measured, "verdicts"), verdicts, "at {width} pixels");
        assert_eq!(seen(&measured, "causes"), causes, "at {width} pixels");
        assert_eq!(measured["papers"], serde_json::json!(["MINE"]));
        assert!(measured["wide"].as_u64() <= measured["window"].as_u64(), "at {width} pixels: {measured}");
        assert_eq!(measured["found"], serde_json::json!(["MINE-T1"]), "the search");
        assert_eq!(measured["why"], serde_json::json!(["MINE-F1"]), "the filter by cause");
    }
}

#[test]
fn the_committed_report_says_at_once_what_its_verdicts_json_counts() {
    if !has("chromium", "chromium") {
        return;
    }
    let committed = root().join("docs/report");
    let entries = entries(&committed.join("verdicts.json"));
    let page = fs::read_to_string(committed.join("index.html")).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("probe.html"), page.replace("</body>", PROBE)).unwrap();
    for width in [1280, 390] {
        let measured = measured(scratch.path(), width);
        assert_eq!(measured["window"], width);
        assert_eq!(seen(&measured, "verdicts"), counted(&entries, "verdict"), "at {width} pixels");
        assert_eq!(seen(&measured, "causes"), counted(&entries, "cause"), "at {width} pixels");
        assert!(measured["wide"].as_u64() <= measured["window"].as_u64(), "at {width} pixels: {measured}");
    }
}

#[test]
fn the_committed_reports_are_of_this_revision_of_the_model() {
    for (place, experiments, findings) in
        [("report", "AP05 AP10 TPA LLAP DCC", " --findings docs/findings.md"), ("study", "QT HT", "")]
    {
        let entries = entries(&root().join("docs").join(place).join("verdicts.json"));
        assert!(!entries.is_empty());
        // Files older than revision 10 do not contain the revision.
        let models = entries.iter().map(|entry| entry["model"].as_u64().unwrap_or(0));
        let others: Vec<u64> = models.filter(|model| *model != u64::from(meshpace_sim::MODEL_REVISION)).collect();
        assert!(
            others.is_empty(),
            "docs/{place} has {} of {} entries of another revision of the model ({}), the program is of revision {}: run `meshpace reproduce \
             {experiments} --quality paper --out DIR`, then `meshpace report DIR --page docs/{place}/index.html{findings}`",
            others.len(),
            entries.len(),
            others[0],
            meshpace_sim::MODEL_REVISION
        );
    }
}
