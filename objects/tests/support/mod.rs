//! S3 servers and a faulty network for tests of this crate and others.
//!
//! Another crate includes a file of this folder with `#[path]`. It needs the dependencies `hatebeam-objects`,
//! `tempfile`, and tokio with the features `io-util`, `net`, `rt`, `sync` and `time`.
// No crate uses all of these helpers.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)] // test helpers

pub(crate) mod proxy;
pub(crate) mod servers;
