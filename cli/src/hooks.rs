//! `--on-event` and `--webhook`: who is told what happens to a run.

use anyhow::Context;
use hatebeam_notify::{Events, Hooks, SECRET_VARIABLE};

/// Whom to tell what happens to a run, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// Run this command, by sh -c, when something happens to a run: it is begun, has a new best score, ends
    /// (docs/events.md lists all). The event is on its standard input, as a JSON object
    #[arg(long, value_name = "COMMAND")]
    on_event: Option<String>,
    /// Send such events there, by HTTP POST, signed if HATEBEAM_WEBHOOK_SECRET is set
    #[arg(
        long,
        value_name = "URL",
        env = "HATEBEAM_WEBHOOK",
        hide_env_values = true
    )]
    webhook: Option<String>,
    /// Depths between two events that only tell how far it is
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    event_every: u32,
}

impl HookArgs {
    /// Refuses what cannot be meant, before anything is begun.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.hooks()?.check().context("--webhook")
    }

    /// Starts those who tell; none if nobody wants to know.
    pub(crate) fn start(&self) -> anyhow::Result<Option<Events>> {
        Events::start(&self.hooks()?).context("--on-event and --webhook")
    }

    fn hooks(&self) -> anyhow::Result<Hooks> {
        let secret = std::env::var_os(SECRET_VARIABLE).map(|secret| secret.into_string());
        let secret = secret.transpose();
        let secret = secret.map_err(|_| anyhow::anyhow!("{SECRET_VARIABLE} is no text"))?;
        Ok(Hooks {
            command: self.on_event.clone(),
            webhook: self.webhook.clone(),
            secret: secret.filter(|_| self.webhook.is_some()),
            ..Hooks::default()
        })
    }

    /// Depths between two milestones.
    pub(crate) fn every(&self) -> u32 {
        self.event_every
    }
}
