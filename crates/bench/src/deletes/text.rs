//! Figures as text: a table of one engine, and one with a column for each of several.

use super::{DeletesRun, Goal, Row};
use crate::report::table;

/// A row for each figure, with its goal and whether it is met.
#[must_use]
pub fn text(run: &DeletesRun) -> String {
    let head = ["case", "measured", "figure", "unit", "goal", "verdict"];
    let rows = run.deletes.iter().map(|row| {
        let verdict = match row.goal {
            None => "-",
            Some(goal) if goal.is_met(row.figure) => "met",
            Some(_) => "missed",
        };
        let (goal, unit) = (words(row.goal), or_dash(&row.unit));
        vec![row.case.clone(), row.measured.clone(), figure(row.figure), unit, goal, verdict.to_owned()]
    });
    let DeletesRun { engine, scale, seed, .. } = run;
    format!("{engine}, counts divided by {scale}, seed {seed}\n{}", table(&head, rows.collect()))
}

/// A row for each figure that any of `runs` has, a column for each of them.
#[must_use]
pub fn beside(runs: &[DeletesRun]) -> String {
    let mut rows: Vec<&Row> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.deletes) {
        if !rows.iter().any(|other| other.is_same(row)) {
            let last = rows.iter().rposition(|other| other.case == row.case);
            rows.insert(last.map_or(rows.len(), |last| last + 1), row);
        }
    }
    let mut head = vec!["case", "measured", "unit", "goal"];
    head.extend(runs.iter().map(|run| run.engine.as_str()));
    let lines = rows.iter().map(|row| {
        let mut line = vec![row.case.clone(), row.measured.clone(), or_dash(&row.unit), words(row.goal)];
        line.extend(runs.iter().map(|run| {
            let found = run.deletes.iter().find(|other| other.is_same(row));
            found.map_or_else(|| "-".to_owned(), |found| figure(found.figure))
        }));
        line
    });
    table(&head, lines.collect())
}

fn words(goal: Option<Goal>) -> String {
    goal.map_or_else(|| "-".to_owned(), |goal| goal.to_string())
}

fn or_dash(unit: &str) -> String {
    if unit.is_empty() { "-".to_owned() } else { unit.to_owned() }
}

/// A figure with three digits at least.
fn figure(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        middle if middle >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}
