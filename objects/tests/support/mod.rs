//! S3 servers and a faulty network for tests, of this crate and of others, which include it with
//! `#[path = "../../objects/tests/support/mod.rs"] mod support;`. It needs `hatebeam-objects`,
//! `tempfile` and tokio with `io-util`, `net`, `rt`, `sync` and `time`.
// Not every crate that includes it needs all of it.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)] // for tests

pub(crate) mod proxy;
pub(crate) mod servers;
