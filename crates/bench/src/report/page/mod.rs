//! A page of pictures of stored runs: one HTML file that needs nothing else.
//!
//! Each kind of content has its section: [`comparison`] draws ratios and figures of engines, [`experiments`] a
//! paper's series and relations, [`holes`] the cost of punching, [`layouts`] the map of layouts, [`calm`] whether clients notice the background, [`deletes`] what deletes cost, [`values`] what large values cost, [`phases`] the
//! course of a load. Lines differ by
//! colour, dashes and marks ([`ink`]), bars by their place, so that a page printed in grey says the same.

mod axis;
mod bars;
mod calm;
mod chart;
mod comparison;
mod deletes;
mod experiments;
mod holes;
mod ink;
mod layouts;
mod phases;
mod values;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::Stored;
use crate::Result;

const STYLE: &str = include_str!("page.css");

/// A page that draws `runs` together: one self-contained file of HTML.
///
/// Phases of the same name share their pictures. Where there is more than one run, the names of series begin with that of
/// their run.
///
/// # Errors
/// Whatever the drawing library reports.
///
/// ```
/// use terrace_bench::report::{Stored, html};
///
/// let json = serde_json::json!({
///     "seed": 1,
///     "ratios": [{"workload": "load", "metric": "ops/s", "peer": "fjall", "advantage": 1.2, "low": 1.1, "high": 1.3}],
/// });
/// let page = html(&[Stored::new("nightly", json)?])?;
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
/// # Ok::<(), terrace_bench::Error>(())
/// ```
pub fn html(runs: &[Stored]) -> Result<String> {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("Terrace: {}", names.join(", "));
    let sections = [
        comparison::sections(runs)?,
        experiments::sections(runs)?,
        holes::sections(runs)?,
        calm::sections(runs)?,
        layouts::sections(runs),
        deletes::sections(runs)?,
        values::sections(runs)?,
        phases::sections(runs)?,
    ];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(ink::rules())) }
            }
            body {
                h1 { (title) }
                @for section in &sections { (section) }
                (foot(runs))
            }
        }
    };
    Ok(page.into_string())
}

/// What must be known of a run to repeat it.
fn foot(runs: &[Stored]) -> Markup {
    let unknown = || "not told".to_owned();
    html! {
        footer {
            h2 { "Where this comes from" }
            @for run in runs {
                h3 { (run.name) }
                dl {
                    dt { "command" } dd { code { (run.command.clone().unwrap_or_else(unknown)) } }
                    dt { "version" } dd { (run.version.clone().unwrap_or_else(unknown)) }
                    @if let Some(engines) = plain(&run.engines) {
                        dt { "engines" } dd { (engines) }
                    }
                    dt { "commit" } dd { (run.commit.clone().unwrap_or_else(unknown)) }
                    dt { "seed" } dd { (run.seed.map_or_else(unknown, |seed| seed.to_string())) }
                    dt { "machine" } dd { (plain(&run.machine).unwrap_or_else(unknown)) }
                    @if let Some(calibration) = plain(&run.calibration) {
                        dt { "calibration" } dd { details { summary { "around each turn" } (calibration) } }
                    }
                }
            }
        }
    }
}

/// JSON as words; none where there is nothing.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(plain).collect::<Vec<_>>().join("; ")),
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| Some((name, value, plain(value)?)));
            let words =
                fields.map(|(name, value, words)| match (name.strip_suffix("_bytes"), value.as_f64()) {
                    (Some(name), Some(bytes)) => format!("{name} {:.1} GB", bytes / 1e9),
                    _ if value.is_object() => format!("{} ({words})", name.replace('_', " ")),
                    _ => format!("{} {words}", name.replace('_', " ")),
                });
            Some(words.collect::<Vec<_>>().join(", "))
        }
        Value::Number(number) if number.is_f64() => number.as_f64().map(axis::figure),
        other => Some(other.to_string()),
    }
}

/// A picture with its title and the key to its lines.
fn figure(title: &str, legend: &Markup, svg: String) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            (legend)
            (PreEscaped(svg))
        }
    }
}

/// A picture with its title, as wide as it is drawn where the page has room.
fn wide_figure(title: &str, svg: &Markup) -> Markup {
    html! {
        figure.wide {
            figcaption { (title) }
            (svg)
        }
    }
}

/// `name` after that of its run, where there are several.
fn of_run(runs: &[Stored], run: &Stored, name: &str) -> String {
    if runs.len() > 1 { format!("{}: {name}", run.name) } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
