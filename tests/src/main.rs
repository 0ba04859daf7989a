//! The program `hatebeam`, built as a binary of this package, because Cargo gives a test only the paths of binaries in
//! the test's own package.

use std::process::ExitCode;

fn main() -> ExitCode {
    hatebeam::main()
}
