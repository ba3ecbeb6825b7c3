//! Section of the page: the cost of holes in files by their size, and of packs that are punched again and again.

use maud::{Markup, html};

use super::axis::Axis;
use super::bars::{BarTable, Scale};
use super::chart::{Chart, Line};
use super::ink::{Ink, legend};
use super::{figure, of_run};
use crate::Result;
use crate::punch::{Churn, ChurnPart, FILE_BYTES, HoledFile, PACK_BYTES, PunchRun};
use crate::report::{LatencySummary, Stored};

/// One section for each run that has punched holes, or tried to.
///
/// # Errors
/// Whatever the drawing library reports.
pub fn sections(runs: &[Stored]) -> Result<Markup> {
    let mut sections = Vec::new();
    for run in runs {
        if let Some(holes) = &run.holes {
            let name = format!("Holes in files on {}", holes.file_system);
            sections.push(section(&of_run(runs, run, &name), holes)?);
        }
    }
    Ok(html! { @for section in &sections { (section) } })
}

fn section(name: &str, run: &PunchRun) -> Result<Markup> {
    Ok(html! {
        h2 { (name) }
        @if run.punches {
            p {
                "Files of " (FILE_BYTES >> 20) " MiB, each with holes of one size, apart from one another and punched in no "
                "order; then a sync, then the removal."
            }
            div.pictures { @for picture in by_size(&run.files)? { (picture) } }
            (files(&run.files))
            @if let Some(churn) = &run.churn { (churned(churn)?) }
        } @else {
            p { "Holes cannot be punched here." }
        }
    })
}

/// Pictures of what depends on the size of the holes.
fn by_size(all: &[HoledFile]) -> Result<Vec<Markup>> {
    let holed: Vec<&HoledFile> = all.iter().filter(|file| file.holes > 0).collect();
    let all: Vec<&HoledFile> = all.iter().collect();
    let draw = |title, unit, files: &[&HoledFile], lines: &[Quantity<HoledFile>]| {
        let sizes: Vec<String> = files.iter().map(|file| size(file.hole_bytes)).collect();
        let places = (0..files.len()).map(|place| place as f64).collect();
        picture(title, Axis::named("size of a hole", &sizes), unit, Axis::log, files, places, lines)
    };
    Ok(vec![
        draw(
            "Cost of a punch",
            "time of the call, us",
            &holed,
            &[
                ("median", |file| file.punch_us.p50),
                ("99th percentile", |file| file.punch_us.p99),
                ("longest", |file| file.punch_us.max),
            ],
        )?,
        draw("Cost of what is punched", "time, us/MiB", &holed, &[("mean", us_per_mebibyte)])?,
        draw("Extents", "stretches of data left", &all, &[("stretches", |file| file.data_ranges as f64)])?,
        draw(
            "Sync and removal behind the holes",
            "time, us",
            &all,
            &[("sync", |file| file.sync_us), ("unlink", |file| file.unlink_us)],
        )?,
    ])
}

fn files(files: &[HoledFile]) -> Markup {
    let row = |file: &HoledFile| {
        let of_punch = |figure: f64| (file.holes > 0).then_some(figure);
        let figures = vec![
            Some(file.holes as f64),
            of_punch(file.punch_us.p50),
            of_punch(file.punch_us.p99),
            of_punch(file.punch_us.max),
            of_punch(us_per_mebibyte(file)),
            Some(file.sync_us),
            Some(file.data_ranges as f64),
            Some(file.unlink_us),
        ];
        (size(file.hole_bytes), figures)
    };
    let columns = [
        ("holes", ""),
        ("punch, median", "us"),
        ("punch, p99", "us"),
        ("punch, longest", "us"),
        ("punch, mean", "us/MiB"),
        ("sync", "us"),
        ("stretches of data left", ""),
        ("unlink", "us"),
    ];
    table("By size", "size of a hole", &columns, files.iter().map(row).collect())
}

/// The churn in its parts.
fn churned(churn: &Churn) -> Result<Markup> {
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let parts: Vec<&ChurnPart> = churn.parts.iter().collect();
    let written: Vec<f64> = parts.iter().map(|part| part.written_bytes as f64 / 1e9).collect();
    let draw = |title, unit, scale: Ruler, lines: &[Quantity<ChurnPart>]| {
        let x = Axis::linear("written since the beginning, GB", written.clone());
        picture(title, x, unit, scale, &parts, written.clone(), lines)
    };
    let pictures = [
        draw(
            "Speed of writing new packs, in ten parts",
            "written and synced, MB/s",
            Axis::linear,
            &[("new packs", |part| part.write_mb_per_s)],
        )?,
        draw(
            "Extents of packs, in ten parts",
            "extents, mean of a pack",
            Axis::linear,
            &[
                ("new packs", |part| part.new_extents),
                ("all packs at the end of the part", |part| part.extents),
            ],
        )?,
        draw(
            "Cost of a punch, in ten parts",
            "time of the call, us",
            Axis::log,
            &[
                ("median", |part| part.punch_us.p50),
                ("99th percentile", |part| part.punch_us.p99),
                ("longest", |part| part.punch_us.max),
            ],
        )?,
        draw(
            "Removal of punched packs, in ten parts",
            "time, us",
            Axis::log,
            &[("median", |part| part.unlink_us.p50), ("longest", |part| part.unlink_us.max)],
        )?,
    ];
    Ok(html! {
        h3 { "Churn" }
        p {
            (gigabytes(churn.written_bytes)) " written in packs of " (PACK_BYTES >> 20) " MiB, "
            (gigabytes(churn.live_bytes)) " of them live at a time, " (gigabytes(churn.punched_bytes)) " punched. "
            "Extents are 0 where filefrag cannot tell."
        }
        div.pictures { @for picture in pictures { (picture) } }
        (parts_of(&parts))
    })
}

fn parts_of(parts: &[&ChurnPart]) -> Markup {
    let row = |part: &&ChurnPart| {
        let ChurnPart { punch_us, unlink_us, .. } = part;
        let of_any = |latency: &LatencySummary, figure: f64| (latency.count > 0).then_some(figure);
        let figures = vec![
            Some(part.write_mb_per_s),
            Some(part.new_extents),
            Some(part.extents),
            Some(part.packs as f64),
            Some(punch_us.count as f64),
            of_any(punch_us, punch_us.p50),
            of_any(punch_us, punch_us.p99),
            of_any(punch_us, punch_us.max),
            Some(unlink_us.count as f64),
            of_any(unlink_us, unlink_us.p50),
            of_any(unlink_us, unlink_us.max),
        ];
        (format!("{:.1}", part.written_bytes as f64 / 1e9), figures)
    };
    let columns = [
        ("writing", "MB/s"),
        ("extents, new pack", "mean"),
        ("extents, all packs", "mean"),
        ("packs", "at the end"),
        ("holes", ""),
        ("punch, median", "us"),
        ("punch, p99", "us"),
        ("punch, longest", "us"),
        ("removals", ""),
        ("unlink, median", "us"),
        ("unlink, longest", "us"),
    ];
    table("Churn, in ten parts", "GB written", &columns, parts.iter().map(row).collect())
}

/// Makes an axis that is called so and has room for those values.
type Ruler = fn(&str, Vec<f64>) -> Axis;

/// The name of a line, and its value for each point.
type Quantity<T> = (&'static str, fn(&T) -> f64);

/// A line for each quantity that is anywhere above 0, of things at `places` of the axis `x`.
fn picture<T>(
    title: &str,
    x: Axis,
    unit: &str,
    scale: Ruler,
    things: &[&T],
    places: Vec<f64>,
    quantities: &[Quantity<T>],
) -> Result<Markup> {
    let drawn = || quantities.iter().enumerate();
    let lines = drawn().map(|(ink, (_, of))| Line {
        ink: Ink(ink),
        points: places.iter().zip(things).map(|(&place, thing)| (place, of(thing))).collect(),
    });
    let lines: Vec<Line> = lines.collect();
    let y = scale(unit, lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect());
    let key = drawn().map(|(ink, (name, _))| (Ink(ink), *name));
    Ok(figure(title, &legend(key), Chart { x, y, lines, lanes: Vec::new() }.svg()?))
}

fn table(
    caption: &str,
    key: &str,
    columns: &[(&'static str, &'static str)],
    rows: Vec<(String, Vec<Option<f64>>)>,
) -> Markup {
    let columns = columns.iter().map(|(name, unit)| ((*name).to_owned(), *unit)).collect();
    BarTable { caption, key, columns, rows, scale: Scale::Column, without_bars: None }.markup()
}

fn us_per_mebibyte(file: &HoledFile) -> f64 {
    file.punch_us.mean / (file.hole_bytes as f64 / f64::from(1 << 20))
}

fn size(hole_bytes: u64) -> String {
    match hole_bytes {
        0 => "none".to_owned(),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}
