//! What was decided about findings, from the outside: suppressions, the configuration file, baselines and fixes.

mod baseline;
mod config;
mod fix;
mod support;
mod suppress;
