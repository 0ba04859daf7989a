//! The files of the web pages, which are compiled into the binary. The dashboard shares some files with the game pages,
//! which are served under `/play/`.

use axum::Router;
use axum::http::header;
use axum::response::Redirect;
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($path:literal, $content_type:expr, $file:literal) => {
        Asset {
            path: $path,
            content_type: $content_type,
            text: include_str!(concat!("../assets/", $file)),
        }
    };
}

/// A file and the path at which it is served.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/app.js", SCRIPT, "app.js"),
    asset!("/charts.js", SCRIPT, "charts.js"),
    asset!("/depths.js", SCRIPT, "depths.js"),
    asset!("/dialog.js", SCRIPT, "dialog.js"),
    asset!("/film.js", SCRIPT, "film.js"),
    asset!("/game.js", SCRIPT, "game.js"),
    asset!("/format.js", SCRIPT, "format.js"),
    asset!("/live.js", SCRIPT, "live.js"),
    asset!("/player.js", SCRIPT, "player.js"),
    asset!("/run.js", SCRIPT, "run.js"),
    asset!("/runs.js", SCRIPT, "runs.js"),
    asset!("/fields.js", SCRIPT, "fields.js"),
    asset!("/submit.js", SCRIPT, "submit.js"),
    asset!("/workers.js", SCRIPT, "workers.js"),
    asset!("/vendor/uPlot.js", SCRIPT, "vendor/uPlot.iife.min.js"),
    asset!("/vendor/uPlot.css", STYLE, "vendor/uPlot.min.css"),
    asset!(
        "/vendor/uPlot-LICENSE.txt",
        "text/plain; charset=utf-8",
        "vendor/uPlot-LICENSE.txt"
    ),
];

/// Path of the game pages.
pub(crate) const GAMES: &str = "/play/";
/// Files of the game pages that the dashboard also uses.
const SHARED: [&str; 6] = [
    "app.css", "dom.js", "icon.svg", "icons.js", "theme.js", "well.js",
];

pub(crate) fn router() -> Router {
    let own = ASSETS.iter().fold(Router::new(), |router, asset| {
        let response = ([(header::CONTENT_TYPE, asset.content_type)], asset.text);
        router.route(asset.path, get(move || async move { response }))
    });
    let games = hatebeam_page::FILES.iter().fold(own, |router, file| {
        let serve = move || async move { ([(header::CONTENT_TYPE, file.media_type)], file.bytes) };
        let path = match file.name {
            "index.html" => GAMES.to_owned(),
            name => format!("{GAMES}{name}"),
        };
        let router = router.route(&path, get(serve));
        match SHARED.contains(&file.name) {
            true => router.route(&format!("/{}", file.name), get(serve)),
            false => router,
        }
    });
    // The page's relative URLs require the trailing slash.
    games.route("/play", get(|| async { Redirect::permanent("play/") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this test, only a browser would notice a file that is missing from `ASSETS`.
    #[test]
    fn every_asset_is_served_and_loads_nothing_from_other_hosts() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let files = |dir: &str| {
            let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files
                .map(|file| std::fs::read_to_string(file.path()).unwrap())
                .collect::<Vec<_>>()
        };
        for text in files(dir) {
            assert!(ASSETS.iter().any(|asset| asset.text == text), "{text:.80}");
        }
        for asset in ASSETS {
            let (path, text) = (asset.path, asset.text);
            let is_own = !path.starts_with("/vendor") && asset.content_type != "image/svg+xml";
            if !is_own {
                continue;
            }
            for word in [
                "src=\"http",
                "from \"http",
                "@import",
                "style=\"",
                "onclick=",
                "eval(",
            ] {
                assert!(!text.contains(word), "{path}: {word}");
            }
            for imported in text.split("from \"./").skip(1) {
                let name = imported.split('"').next().unwrap();
                let is_served = SHARED.contains(&name)
                    || ASSETS.iter().any(|asset| asset.path == format!("/{name}"));
                assert!(is_served, "{path} imports {name}");
            }
        }
    }
}
