//! Test of the pages in Chromium. The script `tests/games.mjs` serves the files and controls the browser. It sends
//! requests to this test, which answers them with the native code, and compares the answers with the pages.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

#[path = "../../dashboard/tests/support/mod.rs"]
mod support;

use hatebeam_page::{FILES, Session};
use std::path::Path;
use support::Browser;

#[test]
fn all_tabs_work_in_chromium() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for file in FILES.iter() {
        std::fs::write(folder.path().join(file.name), file.bytes).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/games.mjs");
    let mut session = Session::default();
    let network = FILES.iter().find(|file| file.name == "network.bin");
    session.add_network(network.unwrap().bytes);
    let files = folder.path().to_str().unwrap();
    let answer = |request: &str| session.answer(request, &mut |_| ());
    browser.run(&script, files, answer);
}
