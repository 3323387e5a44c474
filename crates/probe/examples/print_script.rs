//! Prints the collecting script as it is run, for tries by hand: `… print_script | sh -s`.

#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", probe::script::text());
}
