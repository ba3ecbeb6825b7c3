//! What figures of Terrace with separated values should be.

use serde::{Deserialize, Serialize};

use super::result::{Cell, Group, Phase, ValuesRun, groups};
use super::size::Size;
use super::subject::Role;
use crate::deletes::Goal;

/// Updates of so many bytes and more are where separation must pay.
const LARGE_BYTES: u64 = 4 << 10;

/// From this size on, space has goals.
const SPACE_BYTES: u64 = 1 << 10;

/// Bytes written over those of users, of large updates.
const WRITTEN: Goal = Goal::AtMost(2.2);

/// Rates of large updates over those of values that are not separated, and of each peer.
const OVER_WHOLE: Goal = Goal::AtLeast(2.0);
const OVER_PEER: Goal = Goal::AtLeast(1.5);

/// Rate of uniform updates of a kibibyte over that of this peer.
const KILOBYTE_PEER: &str = "solistore";
const OVER_KILOBYTE_PEER: Goal = Goal::AtLeast(1.3);

/// Space over live bytes: the most during uniform updates, and at rest after them.
const PEAK: Goal = Goal::AtMost(1.3);
const RESTED: Goal = Goal::AtMost(1.15);

/// Space over live bytes of mail at rest.
const MAIL: Goal = Goal::AtMost(1.05);

/// Rates of scans of 100 over those of values that are not separated, by size of values.
const SCANS: &[(u64, Goal)] = &[(1 << 10, Goal::AtLeast(0.8)), (16 << 10, Goal::AtLeast(1.0))];

/// Rate of lookups over that of values that are not separated.
const GETS: Goal = Goal::AtLeast(0.95);

/// A figure that has a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How large values were.
    pub size: Size,
    /// The engine.
    pub engine: String,
    /// What was measured.
    pub measured: String,
    /// How much it was.
    pub figure: f64,
    /// What it should be.
    pub goal: Goal,
}

/// The figures of `run` that have goals: medians over its rounds, and of what is beside another engine medians of the ratios.
#[must_use]
pub fn verdicts(run: &ValuesRun) -> Vec<Verdict> {
    let groups = groups(run);
    let mut verdicts = Vec::new();
    for group in groups.iter().filter(|group| group.role == Role::Separated) {
        let beside: Vec<&Group<'_>> =
            groups.iter().filter(|other| other.size == group.size && other.role != Role::Separated).collect();
        let mut told = |measured: String, figure: Option<f64>, goal: Goal| {
            let (size, engine) = (group.size, group.engine.to_owned());
            verdicts.extend(figure.map(|figure| Verdict { size, engine, measured, figure, goal }));
        };
        let bytes = match group.size {
            Size::Fixed(bytes) => Some(bytes),
            Size::Mix | Size::Mail => None,
        };
        if bytes.is_some_and(|bytes| bytes >= LARGE_BYTES) {
            large_updates(group, &beside, &mut told);
        }
        for other in beside.iter().filter(|other| bytes == Some(1 << 10) && other.engine == KILOBYTE_PEER) {
            let ratio = group.ratio(other, &drained("uniform"));
            told(format!("uniform updates over those of {}", other.engine), ratio, OVER_KILOBYTE_PEER);
        }
        space(group, bytes, &mut told);
        for other in beside.iter().filter(|other| other.role == Role::Whole) {
            let goal = SCANS.iter().find(|(size, _)| bytes == Some(*size));
            if let Some((_, goal)) = goal {
                let ratio = group.ratio(other, &drained("scan-100"));
                told(format!("scans of 100 over those of {}", other.engine), ratio, *goal);
            }
            let ratio = group.ratio(other, &drained("get"));
            told(format!("lookups over those of {}", other.engine), ratio, GETS);
        }
    }
    verdicts
}

/// Takes a figure that has a goal.
type Tell<'a> = &'a mut dyn FnMut(String, Option<f64>, Goal);

fn large_updates(group: &Group<'_>, beside: &[&Group<'_>], told: Tell<'_>) {
    for name in ["uniform", "zipfian"] {
        let written = group.median(&|cell| cell.phase(name)?.written());
        told(format!("{name} updates, written over users' bytes"), written, WRITTEN);
        for other in beside {
            let goal = if other.role == Role::Whole { OVER_WHOLE } else { OVER_PEER };
            let ratio = group.ratio(other, &drained(name));
            told(format!("{name} updates over those of {}", other.engine), ratio, goal);
        }
    }
}

fn space(group: &Group<'_>, bytes: Option<u64>, told: Tell<'_>) {
    let of = |name: &'static str, figure: fn(&Phase) -> Option<f64>| {
        group.median(&|cell: &Cell| cell.phase(name).and_then(figure))
    };
    if group.size == Size::Mail {
        let rested = of("delete", |phase| phase.space_rested);
        told("a fifth deleted and rested, space over live".to_owned(), rested, MAIL);
    } else if bytes.is_none_or(|bytes| bytes >= SPACE_BYTES) {
        let peak = of("uniform", |phase| phase.space_peak);
        told("uniform updates, most space over live".to_owned(), peak, PEAK);
        let rested = of("uniform", |phase| phase.space_rested);
        told("uniform updates, rested, space over live".to_owned(), rested, RESTED);
    }
}

/// The drained rate of a phase.
fn drained(name: &'static str) -> impl Fn(&Cell) -> Option<f64> {
    move |cell| Some(cell.phase(name)?.drained_ops_per_s)
}
