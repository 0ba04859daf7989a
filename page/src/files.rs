//! The files of the page.

use hatebeam_search::Network;
use std::sync::LazyLock;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Name of the network that the page loads. It was trained on public games, so narrow beams clear many rows with it.
const NETWORK: &str = "taught";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Name of the file, which is also its path relative to the page's URL.
    pub name: &'static str,
    /// Media type.
    pub media_type: &'static str,
    /// Contents.
    pub bytes: &'static [u8],
}

macro_rules! file {
    ($name:literal, $media_type:expr) => {
        File {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../assets/", $name)),
        }
    };
}

/// All files of the page.
pub static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    vec![
        file!("index.html", HTML),
        file!("app.css", STYLE),
        file!("page.css", STYLE),
        file!("icon.svg", "image/svg+xml"),
        file!("agents.js", SCRIPT),
        file!("beam.js", SCRIPT),
        file!("clears.js", SCRIPT),
        file!("dom.js", SCRIPT),
        file!("engine.js", SCRIPT),
        file!("field.js", SCRIPT),
        file!("figures.js", SCRIPT),
        file!("file.js", SCRIPT),
        file!("gestures.js", SCRIPT),
        file!("hatetris.js", SCRIPT),
        file!("icons.js", SCRIPT),
        file!("many.js", SCRIPT),
        file!("opinions.js", SCRIPT),
        file!("page.js", SCRIPT),
        file!("reasons.js", SCRIPT),
        file!("remote.js", SCRIPT),
        file!("replay.js", SCRIPT),
        file!("theme.js", SCRIPT),
        file!("well.js", SCRIPT),
        file!("worker.js", SCRIPT),
        file!("page.wasm", "application/wasm"),
        File {
            name: "network.bin",
            media_type: "application/octet-stream",
            bytes: Network::shipped_file(NETWORK).expect("the network is part of the program"),
        },
    ]
});
