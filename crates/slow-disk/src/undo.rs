//! Steps that are taken back in reverse order, whatever happens.

use anyhow::Result;

use crate::system::complain;

/// Steps to be taken back when this is dropped.
#[derive(Default)]
pub struct Undo {
    steps: Vec<Step>,
}

struct Step {
    /// What it is to take it back, as in "cannot ...".
    what: String,
    back: Box<dyn FnOnce() -> Result<()>>,
}

impl Undo {
    /// Notes how the step that has just been made is taken back.
    pub fn push(&mut self, what: impl Into<String>, back: impl FnOnce() -> Result<()> + 'static) {
        self.steps.push(Step { what: what.into(), back: Box::new(back) });
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        // A step that cannot be taken back keeps none of the others from it.
        while let Some(Step { what, back }) = self.steps.pop() {
            if let Err(error) = back() {
                complain(&format!("cannot {what}: {error:#}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn steps_are_taken_back_in_reverse_past_failures() {
        let (order, mut undo) = (Rc::new(RefCell::new(Vec::new())), Undo::default());
        for step in 0..3 {
            let order = order.clone();
            undo.push("undo a step", move || {
                order.borrow_mut().push(step);
                if step == 1 { anyhow::bail!("stuck") } else { Ok(()) }
            });
        }
        drop(undo);
        assert_eq!(*order.borrow(), [2, 1, 0]);
    }
}
