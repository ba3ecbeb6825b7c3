//! The state of the trees: immutable metadata, edits of it, and the checker of its invariants.
