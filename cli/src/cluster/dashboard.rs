//! `--dashboard`: the coordinator in a browser.

use super::TlsArgs;
use crate::plan::estimate;
use anyhow::Context;
use hatebeam_coordinator::{Dashboard, ObjectStorePrices};
use hatebeam_dashboard::{EstimateRequest, Settings, bind};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Where it is, unless told otherwise.
const USUAL: &str = "127.0.0.1:7880";

/// Whether there is a dashboard, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct DashboardArgs {
    /// Where the dashboard is, for a browser; `none` for no dashboard. It asks for the token if there is one, and
    /// is HTTPS with --tls. On more than the loopback it takes both, or --insecure-bind. If the default is taken,
    /// the coordinator goes on without [default: 127.0.0.1:7880]
    #[arg(long = "dashboard", value_name = "ADDRESS")]
    place: Option<Place>,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(SocketAddr),
    Nowhere,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text {
            "none" => Ok(Place::Nowhere),
            _ => text
                .parse()
                .map(Place::At)
                .map_err(|_| format!("give an address such as {USUAL}, or none")),
        }
    }
}

impl DashboardArgs {
    /// Listens, if that is wanted; the dashboard, and its URL. To be called within a runtime.
    pub(crate) async fn open(
        &self,
        tls: &TlsArgs,
        insecure_bind: bool,
        rates: ObjectStorePrices,
    ) -> anyhow::Result<Option<(Dashboard, String)>> {
        let listen = match self.place {
            Some(Place::Nowhere) => return Ok(None),
            Some(Place::At(address)) => address,
            None => USUAL.parse().context("the dashboard's usual address")?,
        };
        let bound = bind(Settings {
            listen,
            tls: tls.tls("coordinator"),
            token: tls.token()?,
            insecure_bind,
        });
        let server = match bound.await {
            Ok(server) => server,
            Err(error) if self.place.is_none() && error.is_taken() => {
                tracing::warn!("no dashboard: {error}; --dashboard gives it another address");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let url = server.url();
        tracing::info!("dashboard at {url}");
        let estimator = Arc::new(move |request: &EstimateRequest| estimate(request, rates));
        Ok(Some((Dashboard { server, estimator }, url)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_addresses_or_none() {
        assert_eq!("none".parse(), Ok(Place::Nowhere));
        let place = Place::At(USUAL.parse().unwrap());
        assert_eq!(USUAL.parse(), Ok(place));
        assert!("[::1]:0".parse::<Place>().is_ok());
        for text in ["", "7880", "localhost", "localhost:7880", "off", "None"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("127.0.0.1:7880, or none"), "{error}");
        }
    }
}
