//! `check-interconnect`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
