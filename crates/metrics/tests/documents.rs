//! The dashboard, the alerts and the page for operators name metrics and labels that exist, and agree with each other.

use std::collections::BTreeSet;

use serde_json::Value;
use terrace_metrics::{Kind, Metric, catalogue};

const DASHBOARD: &str = include_str!("../dashboard.json");
const ALERTS: &str = include_str!("../alerts.yml");
const PAGE: &str = include_str!("../../../docs/operating.md");
/// Where the reasons to stall have their words.
const REASONS: &str = include_str!("../../../src/engine/shared/pressure.rs");

/// Labels that Prometheus adds, and the one of [`terrace_metrics::Picture::store`].
const OUTER_LABELS: &[&str] = &["job", "instance", "store", "le"];

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

/// All panels but the headings of rows.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap();
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

fn queries(dashboard: &Value) -> Vec<&str> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The metric whose series have the name `name`.
fn metric_of(name: &str) -> Option<&'static Metric> {
    let parts = ["_bucket", "_sum", "_count"];
    let is_it = |metric: &&Metric| match metric.kind {
        Kind::Histogram => parts.iter().any(|part| name.strip_suffix(part) == Some(metric.name)),
        _ => metric.name == name,
    };
    catalogue().find(is_it)
}

/// What is wrong with the names and labels in `query`.
fn faults(query: &str) -> Vec<String> {
    let names: BTreeSet<_> = words(query).filter(|word| word.starts_with("terrace_")).collect();
    let unknown = names.iter().filter(|name| metric_of(name).is_none());
    let mut faults: Vec<_> = unknown.map(|name| format!("{query}: there is no metric {name}")).collect();
    let labels: BTreeSet<_> =
        names.iter().filter_map(|name| metric_of(name)).flat_map(Metric::labels).collect();
    let grouped = query.split(" by (").skip(1).filter_map(|rest| rest.split(')').next()).flat_map(words);
    let matched = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let matched = matched.flat_map(|inside| inside.split(',').filter_map(|one| words(one).next()));
    for label in grouped.chain(matched) {
        if !labels.contains(label) && !OUTER_LABELS.contains(&label) {
            faults.push(format!("{query}: none of its metrics has a label {label}"));
        }
    }
    if names.is_empty() {
        faults.push(format!("{query}: asks for no metric"));
    }
    faults
}

/// The expressions of the alert rules: what follows `expr:` on its line, or below it, indented deeper.
fn alert_queries() -> Vec<String> {
    let lines: Vec<&str> = ALERTS.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim().strip_prefix("expr:") else { continue };
        let below = lines[at + 1..].iter().take_while(|below| indent(below) > indent(line));
        let below: Vec<_> = below.map(|below| below.trim()).collect();
        found.push(format!("{} {}", rest.trim().trim_start_matches(['|', '>', '-']), below.join(" ")));
    }
    found
}

fn alert_names() -> Vec<&'static str> {
    ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect()
}

#[test]
fn queries_of_the_dashboard_name_metrics_and_labels_that_exist() {
    let dashboard = dashboard();
    let queries = queries(&dashboard);
    assert!(queries.len() > 20, "{}", queries.len());
    let faults: Vec<_> = queries.into_iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_query_for_what_is_not_there_is_noticed() {
    assert!(!faults("rate(terrace_mood_total[1m])").is_empty());
    assert!(!faults("sum by (colour) (terrace_level_bytes)").is_empty());
    assert!(!faults("terrace_level_bytes{reason=\"x\"}").is_empty());
    assert!(!faults("terrace_operation_seconds").is_empty());
    assert!(!faults("vector(1)").is_empty());
    assert_eq!(
        faults("sum by (le, operation) (rate(terrace_operation_seconds_bucket{store=~\"$store\"}[1m]))"),
        [""; 0]
    );
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard = dashboard();
    assert_eq!(dashboard["schemaVersion"], 42, "the last version of this model");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(
        variables.iter().any(|variable| variable["type"] == "datasource" && variable["name"] == "datasource")
    );
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has the id of another");
        let part = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        for x in part("x")..part("x") + part("w") {
            for y in part("y")..part("y") + part("h") {
                assert!(x < 24 && taken.insert((x, y)), "{title} lies over another or outside");
            }
        }
    }
    for panel in panels(&dashboard) {
        let title = &panel["title"];
        assert!(!panel["description"].as_str().unwrap_or("").is_empty(), "{title} has no description");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        let refs: BTreeSet<_> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!(refs.len(), targets.len(), "{title}");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
    }
}

#[test]
fn alerts_name_metrics_that_exist_and_the_page_explains_each() {
    let (names, queries) = (alert_names(), alert_queries());
    assert!(names.len() > 5 && names.len() == queries.len(), "{names:?} {queries:?}");
    let faults: Vec<_> = queries.iter().flat_map(|query| faults(query)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for name in &names {
        assert!(PAGE.contains(&format!("### {name}\n")), "docs/operating.md does not explain {name}");
    }
    for heading in PAGE.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(names.contains(&heading), "docs/operating.md explains {heading}, which is no alert");
    }
}

#[test]
fn the_page_names_metrics_that_exist() {
    let named: Vec<_> =
        words(PAGE).filter(|word| word.starts_with("terrace_") && *word != "terrace_metrics").collect();
    assert!(named.len() > 10, "{named:?}");
    let unknown: Vec<_> = named
        .iter()
        .filter(|name| metric_of(name).is_none() && !catalogue().any(|metric| metric.name == **name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_page_says_what_to_do_about_each_reason_to_stall() {
    let words =
        REASONS.split("impl fmt::Display for StallReason").nth(1).unwrap().split("\n}").next().unwrap();
    let reasons: Vec<_> =
        words.lines().filter_map(|line| line.split_once("=> \"")?.1.split('"').next()).collect();
    assert!(reasons.len() > 3, "{reasons:?}");
    for reason in reasons {
        assert!(PAGE.contains(&format!("| {reason} | ")), "docs/operating.md does not have {reason:?}");
    }
}
