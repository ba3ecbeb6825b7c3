//! Verdicts: all that a pacer says about one sample of the load.
//!
//! A pacer is a function of the sample, so what it would have said can be told afterwards, from a recording.

use super::{Admission, Budget, Pacer, WriterVerdict};
use crate::policy::load::{JobClass, LoadState, Pace, UserLoad};
use crate::policy::plan::{OutputAge, Plan, PlanKind, Reason};
use crate::types::{KeyRange, KeyspaceId};

/// What a pacer says about a sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// What it makes of what users did.
    pub pace: Pace,
    /// What writers may do.
    pub writer: WriterVerdict,
    /// Whether a job of each class may start, and how fast one may go on.
    pub jobs: [(JobClass, Admission, Budget); JobClass::COUNT],
}

const CLASSES: [JobClass; JobClass::COUNT] = [
    JobClass::Level0,
    JobClass::IntraLevel0,
    JobClass::Deep,
    JobClass::IntraLevel,
    JobClass::Upkeep,
    JobClass::Manual,
];

impl Pacer {
    /// What it says when users have done `load.users` since a moment at which they had done `before` and it had made `pace` of
    /// that.
    #[must_use]
    pub fn verdict(&self, load: &LoadState, before: &UserLoad, pace: &Pace) -> Verdict {
        let then = LoadState { users: *before, pace: *pace, ..*load };
        let pace = self.pace(&then, &load.users);
        let now = LoadState { pace, ..*load };
        let jobs = CLASSES.map(|class| {
            let budget = self.budget(&now, &now.users, class);
            (class, self.admit(&now, &example(class, &now)), budget)
        });
        Verdict { pace, writer: self.writer(&now), jobs }
    }
}

/// A job of `class`; of deep ones, out of the fullest level.
fn example(class: JobClass, load: &LoadState) -> Plan {
    let fill = |level: &u8| {
        let level = load.levels[usize::from(*level)];
        level.bytes as f64 / level.bytes_max.max(1) as f64
    };
    let fullest = (1..load.levels.len() as u8 - 1).max_by(|one, other| fill(one).total_cmp(&fill(other)));
    let (source, target, reason) = match class {
        JobClass::Level0 => (0, 1, Reason::Level0Runs),
        JobClass::IntraLevel0 => (0, 0, Reason::Readers),
        JobClass::Deep => {
            let source = fullest.unwrap_or(1);
            (source, source + 1, Reason::LevelBytes)
        }
        JobClass::IntraLevel => (1, 1, Reason::Searched),
        JobClass::Upkeep => (1, 1, Reason::Expiry),
        JobClass::Manual => (0, 1, Reason::Manual),
    };
    Plan {
        keyspace: KeyspaceId(0),
        kind: PlanKind::Compact,
        source,
        target,
        inputs: Vec::new(),
        moves: Vec::new(),
        fences: Vec::new(),
        stacks: false,
        age: OutputAge::Newest,
        range: KeyRange::everything(),
        claims: Vec::new(),
        bytes: 0,
        cursor: None,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_example_is_of_its_class() {
        let mut load = LoadState::default();
        (load.levels[2].bytes, load.levels[2].bytes_max) = (3, 2);
        for class in CLASSES {
            let plan = example(class, &load);
            assert_eq!(JobClass::of(&plan), class);
            assert!(class != JobClass::Deep || plan.source == 2);
        }
    }
}
