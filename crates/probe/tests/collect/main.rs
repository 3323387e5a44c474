//! The collecting script, run by each shell that is here, over prepared trees and over this machine.

mod bounds;
mod quiet;
mod secrets;
mod shells;
mod tree;
