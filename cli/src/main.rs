//! The program `hatebeam`. All of it is in the library beside it, which the end-to-end tests link as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
