//! The program `hatebeam`. Its code is in the library of the same name, which the end-to-end tests also link.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
