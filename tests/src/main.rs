//! The program `hatebeam` as a binary of this package, because Cargo provides tests only with the paths of their own
//! package's binaries.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
