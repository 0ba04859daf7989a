//! The program `hatebeam`. The code is in the library of the same name, which the end-to-end tests link too.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
