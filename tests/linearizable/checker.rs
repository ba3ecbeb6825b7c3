//! The checker: whether a history is linearizable. Each call must have a moment between its beginning and its end, so
//! that each call sees the effects of the calls before it.
//!
//! The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the memory of Lowe
//! ("Testing for linearizability", 2017). It goes on with any call that began before all other remaining calls have
//! ended, and never twice from the same calls in the same state. A read that agrees with the state is taken at once
//! and for good: it cannot prevent another call.
//!
//! A power cut leaves the state of one moment of such an order, behind everything that was durable. So it is a *cut*:
//! a read of everything that comes after the durable calls, and before which no other call must come.

use std::collections::HashSet;

use super::history::{Call, State};

/// Why there is no order: as far as the longest attempt came.
#[derive(Debug)]
#[expect(dead_code, reason = "printed when a test fails")]
pub struct Violation {
    /// The end of the attempt.
    last: Vec<Call>,
    state: State,
    /// Calls of which one should come next.
    stuck: Vec<Call>,
    /// What the power cut has left, if that is no moment of the attempt.
    cut: Option<State>,
}

/// Fails if `calls` cannot have happened one after another from `initial` on, leaving `cut` if the power is cut.
pub fn check(initial: &State, calls: &[Call], cut: Option<&State>) -> Result<(), Violation> {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.invoked);
    let words = calls.len().div_ceil(64);
    let mut search = Search {
        done: vec![0; words],
        order: Vec::new(),
        state: initial.clone(),
        seen: HashSet::new(),
        longest: (Vec::new(), initial.clone()),
        calls,
        cut,
        cut_done: cut.is_none(),
    };
    if search.run() { Ok(()) } else { Err(search.violation()) }
}

struct Search<'a> {
    /// In order of their beginnings.
    calls: Vec<Call>,
    cut: Option<&'a State>,
    cut_done: bool,
    /// A bit for each call that is in `order`.
    done: Vec<u64>,
    order: Vec<usize>,
    state: State,
    seen: HashSet<(Vec<u64>, State, bool)>,
    longest: (Vec<usize>, State),
}

impl Search<'_> {
    /// Whether the calls that are left can follow those in `order`. If not, all is as before.
    fn run(&mut self) -> bool {
        let (length, cut_done) = (self.order.len(), self.cut_done);
        self.take_reads();
        if self.order.len() >= self.longest.0.len() {
            self.longest = (self.order.clone(), self.state.clone());
        }
        let next = self.next();
        if self.cut_done && next.iter().all(|call| self.calls[*call].returned.is_none()) {
            return true;
        }
        if self.seen.insert((self.done.clone(), self.state.clone(), self.cut_done)) {
            let before = (self.order.len(), self.state.clone());
            for call in next {
                if !self.calls[call].agrees(&self.state) {
                    continue;
                }
                self.take(call);
                self.calls[call].wrote.iter().for_each(|&(slot, value)| self.state[slot] = value);
                if self.run() {
                    return true;
                }
                self.give_back(before.0);
                self.state.clone_from(&before.1);
            }
        }
        self.give_back(length);
        self.cut_done = cut_done;
        false
    }

    fn take_reads(&mut self) {
        loop {
            let mut reads = self.next();
            reads.retain(|call| self.calls[*call].is_read() && self.calls[*call].agrees(&self.state));
            if reads.is_empty() {
                break;
            }
            reads.into_iter().for_each(|call| self.take(call));
        }
        self.cut_done |= self.cut == Some(&self.state)
            && (0..self.calls.len()).all(|call| self.is_done(call) || !self.calls[call].is_durable());
    }

    /// Calls that are left and began before all that are left have ended. If one has an answer, one of these has.
    fn next(&self) -> Vec<usize> {
        let full = self.done.iter().take_while(|word| **word == u64::MAX).count();
        let (mut next, mut deadline) = (Vec::new(), u64::MAX);
        for call in 64 * full..self.calls.len() {
            if self.calls[call].invoked > deadline {
                break;
            }
            if !self.is_done(call) {
                deadline = deadline.min(self.calls[call].returned.unwrap_or(u64::MAX));
                next.push(call);
            }
        }
        next
    }

    fn is_done(&self, call: usize) -> bool {
        self.done[call / 64] >> (call % 64) & 1 == 1
    }

    fn take(&mut self, call: usize) {
        self.done[call / 64] |= 1 << (call % 64);
        self.order.push(call);
    }

    fn give_back(&mut self, length: usize) {
        for call in self.order.drain(length..) {
            self.done[call / 64] &= !(1 << (call % 64));
        }
    }

    fn violation(mut self) -> Violation {
        self.give_back(0);
        let (order, state) = std::mem::take(&mut self.longest);
        order.iter().for_each(|call| self.take(*call));
        let some = |calls: &[usize]| calls.iter().map(|call| self.calls[*call].clone()).collect();
        let cut = self.cut.filter(|_| !self.cut_done).cloned();
        Violation {
            last: some(&order[order.len().saturating_sub(10)..]),
            state,
            stuck: some(&self.next()),
            cut,
        }
    }
}

/// Everybody's order and no order at all: the checker is right where it can be compared with all orders there are.
#[cfg(test)]
mod tests {
    use super::super::history::known_at;
    use super::*;
    use crate::common::Random;

    /// A call from its moments, and what it saw and wrote.
    fn call(moments: [u64; 2], saw: &[(usize, u64)], wrote: &[(usize, u64)]) -> Call {
        let [invoked, returned] = moments;
        Call { invoked, returned: Some(returned), saw: saw.into(), wrote: wrote.into(), ..Call::default() }
    }

    fn holds(calls: &[Call], cut: Option<&[u64]>) -> bool {
        check(&vec![0; 2], calls, cut.map(<[u64]>::to_vec).as_ref()).is_ok()
    }

    #[test]
    fn what_overlaps_has_either_order_and_what_does_not_has_one() {
        let write = call([1, 4], &[], &[(0, 7)]);
        assert!(holds(&[write.clone(), call([2, 3], &[(0, 0)], &[])], None));
        assert!(holds(&[write.clone(), call([2, 3], &[(0, 7)], &[])], None));
        assert!(holds(&[write.clone(), call([5, 6], &[(0, 7)], &[])], None));
        assert!(!holds(&[write.clone(), call([5, 6], &[(0, 0)], &[])], None), "a stale read");
        assert!(
            !holds(&[call([5, 6], &[], &[(0, 7)]), call([1, 2], &[(0, 7)], &[])], None),
            "a read of the future"
        );
        let seen = [call([2, 3], &[(0, 7)], &[]), call([5, 6], &[(0, 0)], &[])];
        assert!(
            !holds(&[call([1, 9], &[], &[(0, 7)]), seen[0].clone(), seen[1].clone()], None),
            "time goes back"
        );
    }

    #[test]
    fn what_is_done_at_once_has_one_moment() {
        let batch = call([1, 9], &[], &[(0, 7), (1, 7)]);
        assert!(!holds(&[batch.clone(), call([2, 3], &[(0, 7), (1, 0)], &[])], None), "half a batch");
        let apart = [call([2, 3], &[(0, 7)], &[]), call([4, 5], &[(1, 0)], &[])];
        assert!(!holds(&[batch, apart[0].clone(), apart[1].clone()], None), "half a batch, by two reads");
        let swaps = [call([1, 4], &[(0, 0)], &[(0, 5)]), call([2, 3], &[(0, 0)], &[(0, 6)])];
        assert!(!holds(&swaps, None), "a lost update");
        let skewed = [call([1, 4], &[(0, 0)], &[(1, 5)]), call([2, 3], &[(1, 0)], &[(0, 6)])];
        assert!(!holds(&skewed, None), "write skew");
    }

    #[test]
    fn a_call_without_an_answer_has_been_made_or_not() {
        let write = Call { returned: None, ..call([1, 2], &[], &[(0, 7)]) };
        for calls in [vec![], vec![call([3, 4], &[(0, 0)], &[])], vec![call([3, 4], &[(0, 7)], &[])]] {
            assert!(holds(&[vec![write.clone()], calls].concat(), None));
        }
        let back = [call([3, 4], &[(0, 7)], &[]), call([5, 6], &[(0, 0)], &[])];
        assert!(!holds(&[write, back[0].clone(), back[1].clone()], None));
    }

    #[test]
    fn a_cut_is_a_whole_prefix_behind_all_that_was_durable() {
        let calls = [
            call([1, 2], &[], &[(0, 1)]),
            Call { durable: true, ..call([3, 4], &[], &[]) },
            call([5, 6], &[], &[(0, 2), (1, 2)]),
            call([7, 8], &[], &[(1, 3)]),
        ];
        for kept in [[1, 0], [2, 2], [2, 3]] {
            assert!(holds(&calls, Some(&kept)), "{kept:?}");
        }
        for (wrong, why) in
            [([0, 0], "lost"), ([2, 0], "torn"), ([1, 3], "a hole"), ([9, 9], "never written")]
        {
            assert!(!holds(&calls, Some(&wrong)), "{why}");
        }
        // At 4 nobody had an answer that it was durable.
        assert!(holds(&known_at(&(4..5), &calls), Some(&[0, 0])));
        assert!(!holds(&known_at(&(5..6), &calls), Some(&[0, 0])));
    }

    /// Whether some order of some of the calls, all with an answer among them, is right: tries all of them.
    fn some_order(calls: &[Call], left: &[usize], state: &[u64], cut: Option<&[u64]>) -> bool {
        let cut_here = cut == Some(state) && left.iter().all(|call| !calls[*call].is_durable());
        let cut = cut.filter(|_| !cut_here);
        let ended = cut.is_none() && left.iter().all(|call| calls[*call].returned.is_none());
        ended
            || left.iter().any(|&next| {
                let waits =
                    |other: &usize| calls[*other].returned.is_some_and(|end| end < calls[next].invoked);
                if left.iter().any(waits) || !calls[next].agrees(&state.to_vec()) {
                    return false;
                }
                let rest: Vec<usize> = left.iter().copied().filter(|call| *call != next).collect();
                let mut state = state.to_vec();
                calls[next].wrote.iter().for_each(|&(slot, value)| state[slot] = value);
                some_order(calls, &rest, &state, cut)
            })
    }

    #[test]
    fn random_histories_are_judged_as_by_trying_all_orders() {
        let mut random = Random(1);
        let mut verdicts = [[0; 2]; 2];
        for _ in 0..20_000 {
            let calls: Vec<Call> = (0..2 + random.below(4))
                .map(|n| {
                    let invoked = random.below(12);
                    let mut slots =
                        |chance| (0..2).filter(|_| random.below(10) < chance).collect::<Vec<usize>>();
                    let (saw, wrote) = (slots(4), slots(3));
                    Call {
                        invoked: 2 * invoked,
                        returned: (random.below(8) > 0).then(|| 2 * (invoked + random.below(8)) + 1),
                        saw: saw.into_iter().map(|slot| (slot, random.below(4))).collect(),
                        wrote: wrote.into_iter().map(|slot| (slot, 1 + n % 3)).collect(),
                        durable: random.below(3) == 0,
                        ..Call::default()
                    }
                })
                .collect();
            let cut = (random.below(2) == 0).then(|| [random.below(3), random.below(3)]);
            let cut = cut.as_ref().map(|cut| &cut[..]);
            let expected = some_order(&calls, &Vec::from_iter(0..calls.len()), &[0; 2], cut);
            assert_eq!(holds(&calls, cut), expected, "{calls:?} {cut:?}");
            verdicts[usize::from(cut.is_some())][usize::from(expected)] += 1;
        }
        assert!(verdicts.as_flattened().iter().all(|count| *count > 300), "{verdicts:?}");
    }
}
