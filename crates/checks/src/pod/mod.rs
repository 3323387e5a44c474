//! Checks of pods: what the API server says of them, beside what is seen inside.

pub(crate) mod view;
