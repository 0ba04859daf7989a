//! `--dashboard`: the address of the coordinator's dashboard.

use super::args::TlsArgs;
use anyhow::Context;
use hatebeam_coordinator::{Dashboard, ObjectStorePrices, estimate};
use hatebeam_dashboard::{EstimateRequest, Settings, bind};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Default address of the dashboard.
const DEFAULT: &str = "127.0.0.1:7880";

/// Address of the dashboard.
#[derive(Debug, clap::Args)]
pub(super) struct DashboardArgs {
    /// Address at which to serve the dashboard, or none to disable it. The dashboard uses HTTPS if --tls is given, and
    /// requires a login if there is a token. Addresses other than loopback require --tls and a token, or
    /// --insecure-bind. If the default address is in use, the coordinator runs without a dashboard
    /// [default: 127.0.0.1:7880]
    #[arg(long = "dashboard", value_name = "ADDRESS")]
    place: Option<Place>,
}

/// An address, or the word `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(SocketAddr),
    Nowhere,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if text == "none" {
            return Ok(Place::Nowhere);
        }
        let address = text.parse().map(Place::At);
        address.map_err(|_| format!("give an address such as {DEFAULT}, or none"))
    }
}

impl DashboardArgs {
    /// Binds the dashboard's address. Returns `None` if the dashboard is disabled, or if no address is given and the
    /// default address is in use.
    pub(super) async fn open(
        &self,
        tls: &TlsArgs,
        insecure_bind: bool,
        prices: ObjectStorePrices,
    ) -> anyhow::Result<Option<Dashboard>> {
        let listen = match self.place {
            Some(Place::Nowhere) => return Ok(None),
            Some(Place::At(address)) => address,
            None => DEFAULT
                .parse()
                .context("cannot parse the dashboard's default address")?,
        };
        let bound = bind(Settings {
            listen,
            tls: tls.member("coordinator"),
            tokens: tls.tokens()?,
            insecure_bind,
        });
        let server = match bound.await {
            Ok(server) => server,
            Err(error) if self.place.is_none() && error.is_taken() => {
                tracing::warn!(
                    "disabled the dashboard: {error}; choose another address with --dashboard"
                );
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        tracing::info!("dashboard at {}", server.url());
        let estimator = Arc::new(move |request: &EstimateRequest| estimate(request, prices));
        Ok(Some(Dashboard { server, estimator }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_parses_an_address_or_none() {
        assert_eq!("none".parse(), Ok(Place::Nowhere));
        let place = Place::At(DEFAULT.parse().unwrap());
        assert_eq!(DEFAULT.parse(), Ok(place));
        assert!("[::1]:0".parse::<Place>().is_ok());
        for text in ["", "7880", "localhost", "localhost:7880", "off", "None"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("127.0.0.1:7880, or none"), "{error}");
        }
    }
}
