//! S3 servers and a faulty network for tests of this crate and of others. Another crate includes a file of this
//! folder with `#[path]`, and needs `hatebeam-objects`, `tempfile` and tokio with `io-util`, `net`, `rt`, `sync`
//! and `time`.
// No crate uses all of it.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)] // helpers of tests

pub(crate) mod proxy;
pub(crate) mod servers;
