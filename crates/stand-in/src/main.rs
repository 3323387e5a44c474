//! Serves a scenario by hand.

fn main() {}
