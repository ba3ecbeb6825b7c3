//! An environment that writes down what is asked of another.
