//! Test of the dashboard in Chromium. The script `tests/browser/pages.mjs` controls the browser, and this test runs the
//! server.

use crate::fake::{FakeCoordinator, RECORD, estimator, settings};
use crate::support::Browser;
use hatebeam_dashboard::{Settings, bind};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, block_in_place};

/// Default number of depths of the run in progress, about forty times as many as in a real run.
const DEPTHS: u32 = 10_000;

/// A server that can be stopped and restarted at the same address.
struct TestServer {
    fake: FakeCoordinator,
    address: SocketAddr,
    token: Option<&'static str>,
    serving: Option<JoinHandle<()>>,
}

impl TestServer {
    async fn start(&mut self) {
        let settings = Settings {
            listen: self.address,
            tokens: self.token.map(|token| token.parse().unwrap()).into(),
            ..settings()
        };
        // Closed connections may keep the port in use for a moment.
        let mut tries = 0;
        let server = loop {
            match bind(settings.clone()).await {
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
        self.serving = Some(tokio::spawn(server.serve(self.fake.clone(), estimator())));
    }

    async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
    }

    async fn restart(&mut self, fake: FakeCoordinator) {
        self.stop().await;
        self.fake = fake;
        self.start().await;
    }

    /// Executes a command from the script and returns the answer.
    async fn execute(&mut self, command: &str) -> String {
        let (command, number) = command.split_once(' ').unwrap_or((command, "0"));
        match command {
            "stop" => self.stop().await,
            "start" => self.start().await,
            "empty" => self.restart(FakeCoordinator::empty()).await,
            "busy" => {
                let depths = number.parse().ok().filter(|&depths| depths > 0);
                self.restart(FakeCoordinator::busy(depths.unwrap_or(DEPTHS)))
                    .await;
            }
            "token" => {
                self.token = Some("correct-horse-battery");
                self.restart(FakeCoordinator::busy(10)).await;
            }
            "no-games" => self.fake.world().has_games = false,
            "grow" => (0..number.parse().unwrap()).for_each(|_| self.fake.grow()),
            "search-again" => {
                let count = number.parse().unwrap();
                let mut world = self.fake.world();
                for depth in world.depths.iter_mut().rev().take(count) {
                    depth.seconds += 1.0;
                }
            }
            "depths" => return self.fake.world().depths.len().to_string(),
            "speed" => {
                let world = self.fake.world();
                let last = world.depths.iter().rev().take(10);
                let children: u64 = last.clone().map(|depth| depth.children).sum();
                let seconds: f64 = last.map(|depth| depth.seconds).sum();
                return format!("{children} {seconds}");
            }
            "drained" => return self.fake.world().drained.join(" "),
            "submitted" => {
                let submitted = self.fake.world().submitted.pop().unwrap();
                return json!({
                    "spec": submitted.spec,
                    "keep": submitted.keep,
                    "max_cost_micros": submitted.max_cost_micros,
                    "max_seconds": submitted.max_seconds,
                })
                .to_string();
            }
            "limits" => {
                let run = self
                    .fake
                    .world()
                    .find("patterns-1000000-5f3a9c1e")
                    .unwrap()
                    .clone();
                return format!("{} {}", run.max_cost_micros, run.max_seconds);
            }
            "replay" => return RECORD.trim().to_owned(),
            other => panic!("unknown command {other:?}"),
        }
        String::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_work_in_chromium() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let mut server = TestServer {
        fake: FakeCoordinator::busy(DEPTHS),
        address: settings().listen,
        token: None,
        serving: None,
    };
    server.start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pages.mjs");
    let url = format!("http://{}/", server.address);
    let mut execute = |command: &str| Handle::current().block_on(server.execute(command));
    block_in_place(|| browser.run(&script, &url, &mut execute));
}
