//! Victims of least overlap: taken wherever their compaction costs least (BoLT, section 3.4).
//!
//! The cost of a victim is the bytes of the target that it overlaps, for each byte of its own. Of equal ones the
//! first behind the cursor is taken.
//!
//! By cost alone, a table over a dense part of the target might never get its turn. So one part in [`AGE_ROUNDS`] of
//! each group, one table at least, comes from behind the cursor, whatever it overlaps, and the cursor moves behind
//! it. The cursor goes round the level while at most [`AGE_ROUNDS`] times the level's bytes are compacted. So no
//! table waits for more than that many rounds of the cursor picker, and no table's age is stored. A group of one
//! table is the cursor's.

use super::Source;
use super::choice::Choice;
use super::cursor::{behind_cursor, cursor_behind};
use crate::catalog::TableMeta;
use crate::types::Key;

/// Every table gets its turn within this many rounds.
const AGE_ROUNDS: u64 = 8;

/// What to take next from a level below level 0, and its new cursor.
pub(super) fn choose(source: Source<'_>) -> Option<(Choice<'_>, Key)> {
    // The oldest run: nothing else must go with it.
    let run = source.state.runs.last()?;
    let mut in_order = behind_cursor(run, source.state.cursor.as_ref()).filter(|table| source.is_free(table));
    let first = in_order.next()?;
    let (mut victims, mut bytes, mut last) = (vec![first], first.bytes(), first);
    let bytes_max = source.group_bytes();
    let mut others = Vec::new();
    for table in in_order {
        let due = others.is_empty() && bytes < bytes_max / AGE_ROUNDS;
        if due && bytes + table.bytes() <= bytes_max {
            victims.push(table);
            (bytes, last) = (bytes + table.bytes(), table);
        } else {
            others.push((source.target.overlap_bytes(&table.range), table));
        }
    }
    // Stable: of equal ones the first behind the cursor comes first.
    others.sort_by(|(overlap, table), (other_overlap, other)| {
        let cost = |overlap: &u64, bytes: u64| u128::from(*overlap) * u128::from(bytes);
        cost(overlap, other.bytes()).cmp(&cost(other_overlap, table.bytes()))
    });
    for (_, table) in others {
        if bytes + table.bytes() <= bytes_max {
            bytes += table.bytes();
            victims.push(table);
        }
    }
    victims.sort_by(|one, other| one.range.start.cmp(&other.range.start));
    let choice = Choice::of(source, victims).filter(|choice| !choice.is_busy())?;
    Some((choice, cursor_behind(&last.range)))
}

impl Source<'_> {
    /// Whether no running job is in the way of compacting `table` by itself.
    fn is_free(self, table: &TableMeta) -> bool {
        if self.view.busy.is_empty() {
            return true;
        }
        let target_inputs = self.target.overlapping(&table.range);
        let reach =
            target_inputs.fold(table.range.clone(), |reach, target_input| reach.hull(&target_input.range));
        !self.is_busy(&reach)
    }
}
