//! The program `hatebeam` as the end-to-end tests run it: cargo gives tests the path of their own package's
//! binaries alone.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
