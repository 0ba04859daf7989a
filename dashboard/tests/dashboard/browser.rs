//! The dashboard in a real Chromium: `tests/browser/pages.mjs` clicks, this has the server.

use crate::made_up::{MadeUp, RECORD, estimator, settings};
use crate::support::Browser;
use hatebeam_dashboard::{Settings, bind};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, block_in_place};

/// Depths of the run that is looked at: some forty times what a run has.
const DEPTHS: u32 = 10_000;

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
            "limits" => {
                let run = self
                    .made_up
                    .world()
                    .find("patterns-1000000-5f3a9c1e")
                    .unwrap()
                    .clone();
                return format!("{} {}", run.max_cost_micros, run.max_seconds);
            }
            "replay" => return RECORD.trim().to_owned(),
            other => panic!("unknown order {other:?}"),
        }
        String::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_and_button_works_in_a_browser() {
    let Some(browser) = Browser::find() else {
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
    let url = format!("http://{}/", stand.address);
    let mut obey = |order: &str| Handle::current().block_on(stand.obey(order));
    block_in_place(|| browser.run(&script, &url, &mut obey));
}
