//! The dashboard in a real Chromium: `tests/browser/pages.mjs` clicks, this has the server.

use crate::made_up::{MadeUp, RECORD, estimator, settings};
use hatebeam_dashboard::{Settings, bind};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// Depths of the run that is looked at: some forty times what a run has.
const DEPTHS: u32 = 10_000;
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(420);

/// The first of these programs that is there.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// A server that can be stopped, and started again where it was.
struct Stand {
    made_up: MadeUp,
    address: SocketAddr,
    token: Option<&'static str>,
    serving: Option<JoinHandle<()>>,
}

impl Stand {
    async fn start(&mut self) {
        let again = Settings {
            listen: self.address,
            token: self.token.map(|token| token.parse().unwrap()),
            ..settings()
        };
        // The port may be held for a moment by connections that were cut.
        let mut tries = 0;
        let server = loop {
            match bind(again.clone()).await {
                Ok(server) => break server,
                Err(error) if tries == 100 => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            tries += 1;
        };
        let url = server.url();
        self.address = url["http://".len()..]
            .trim_end_matches('/')
            .parse()
            .unwrap();
        self.serving = Some(tokio::spawn(
            server.serve(self.made_up.clone(), estimator()),
        ));
    }

    async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
    }

    async fn restart(&mut self, made_up: MadeUp) {
        self.stop().await;
        self.made_up = made_up;
        self.start().await;
    }

    /// Does what the browser's side wants, and says what it asks for.
    async fn obey(&mut self, order: &str) -> String {
        let (order, number) = order.split_once(' ').unwrap_or((order, "0"));
        match order {
            "stop" => self.stop().await,
            "start" => self.start().await,
            "empty" => self.restart(MadeUp::empty()).await,
            "busy" => {
                let depths = number.parse().ok().filter(|&depths| depths > 0);
                self.restart(MadeUp::busy(depths.unwrap_or(DEPTHS))).await;
            }
            "token" => {
                self.token = Some("correct-horse-battery");
                self.restart(MadeUp::busy(10)).await;
            }
            "no-games" => self.made_up.world().has_games = false,
            "grow" => (0..number.parse().unwrap()).for_each(|_| self.made_up.grow()),
            "depths" => return self.made_up.world().depths.len().to_string(),
            "pace" => {
                let world = self.made_up.world();
                let last = world.depths.iter().rev().take(10);
                let children: u64 = last.clone().map(|depth| depth.children).sum();
                let seconds: f64 = last.map(|depth| depth.seconds).sum();
                return format!("{children} {seconds}");
            }
            "drained" => return self.made_up.world().drained.join(" "),
            "submitted" => {
                let submitted = self.made_up.world().submitted.pop().unwrap();
                return json!({
                    "spec": submitted.spec,
                    "keep": submitted.keep,
                    "max_cost_micros": submitted.max_cost_micros,
                    "max_seconds": submitted.max_seconds,
                })
                .to_string();
            }
            "replay" => return RECORD.trim().to_owned(),
            other => panic!("unknown order {other:?}"),
        }
        String::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_and_button_works_in_a_browser() {
    let chromium = std::env::var_os("HATEBEAM_CHROMIUM").map(PathBuf::from);
    let chromium = chromium.or_else(|| program(&["chromium", "chromium-browser", "google-chrome"]));
    let (Some(chromium), Some(node)) = (chromium, program(&["node", "nodejs"])) else {
        eprintln!(
            "skipped: the dashboard in a browser (it takes chromium and node; apt-get install chromium nodejs)"
        );
        return;
    };
    let mut stand = Stand {
        made_up: MadeUp::busy(DEPTHS),
        address: settings().listen,
        token: None,
        serving: None,
    };
    stand.start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pages.mjs");
    let mut command = Command::new(node);
    command
        .arg(script)
        .arg(chromium)
        .arg(format!("http://{}/", stand.address))
        // Where pictures go, if somebody wants to look.
        .args(std::env::var_os("HATEBEAM_PICTURES"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut answers = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let clicking = async {
        let mut is_done = false;
        while let Some(line) = lines.next_line().await.unwrap() {
            match line.strip_prefix('@') {
                Some("done") => is_done = true,
                Some(order) => {
                    let answer = stand.obey(order).await;
                    answers
                        .write_all(format!("{answer}\n").as_bytes())
                        .await
                        .unwrap();
                }
                None => println!("{line}"),
            }
        }
        is_done
    };
    let is_done = tokio::time::timeout(PATIENCE, clicking).await;
    assert!(
        is_done.expect("it takes too long"),
        "see above what went wrong"
    );
    assert!(child.wait().await.unwrap().success());
}
