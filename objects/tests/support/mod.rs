//! S3 servers and a faulty network, for tests in this crate and other crates.
//!
//! Another crate can include these files with `#[path]`. It needs the dependencies `hatebeam-objects`, `tempfile`, and
//! tokio with the features `io-util`, `net`, `rt`, `sync` and `time`.
// No crate uses all helpers.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)] // test helpers

pub(crate) mod proxy;
pub(crate) mod servers;
