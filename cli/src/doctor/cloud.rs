//! Whether this is a machine of AWS, and whether its metadata service answers: workers ask it for the kind
//! of the machine, its price's region, and whether it is about to be taken away.

use super::check::Check;
use super::http::{Answer, ask};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// As AWS's own tools name them.
const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

const SERVICE: &str = "http://169.254.169.254";
const LIMIT: Duration = Duration::from_secs(1);

/// Looks, where there is something to look at.
pub(super) fn machine() -> Vec<Check> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint = variable(ENDPOINT);
    if endpoint.is_none() && !is_ec2() {
        return Vec::new();
    }
    if variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return vec![Check::warning(
            "machine",
            format!("{DISABLED} has nobody ask the metadata service"),
            "tell workers --price-per-hour, --market and --machine, or take the variable away",
        )];
    }
    vec![look(endpoint.as_deref().unwrap_or(SERVICE))]
}

/// Whether the firmware says that Amazon made the machine.
fn is_ec2() -> bool {
    let vendor = std::fs::read_to_string("/sys/devices/virtual/dmi/id/sys_vendor");
    vendor.is_ok_and(|vendor| vendor.trim() == "Amazon EC2")
}

fn look(endpoint: &str) -> Check {
    match (Service { endpoint }).describe() {
        Ok(machine) => Check::ok("machine", machine),
        Err(error) => Check::warning(
            "machine",
            format!("the metadata service at {endpoint} does not help ({error})"),
            "let IMDSv2 answer (in a container with a hop limit of 2), or tell workers \
             --price-per-hour, --market and --machine",
        ),
    }
}

struct Service<'a> {
    endpoint: &'a str,
}

impl Service<'_> {
    /// The machine in words.
    fn describe(&self) -> io::Result<String> {
        let ttl = "X-aws-ec2-metadata-token-ttl-seconds: 60";
        let token = self.ask("PUT", "/latest/api/token", ttl)?;
        let header = format!("X-aws-ec2-metadata-token: {}", token.body);
        if header.chars().any(char::is_control) {
            return Err(io::Error::other("its token is none"));
        }
        let get = |what: &str| {
            let answer = self.ask("GET", &format!("/latest/meta-data/{what}"), &header)?;
            Ok::<String, io::Error>(answer.body)
        };
        Ok(format!(
            "{}, {}, in {}",
            get("instance-type")?,
            get("instance-life-cycle")?,
            get("placement/availability-zone")?
        ))
    }

    fn ask(&self, method: &str, path: &str, header: &str) -> io::Result<Answer> {
        let answer = ask(self.address()?, method, path, &[header], LIMIT)?;
        match answer.status {
            200 if answer.body.lines().count() == 1 => Ok(answer),
            200 => Err(io::Error::other(format!("it says nothing of {path}"))),
            status => Err(io::Error::other(format!("HTTP {status} for {path}"))),
        }
    }

    fn address(&self) -> io::Result<SocketAddr> {
        let wrong = || io::Error::other("the endpoint is not http://HOST or http://HOST:PORT");
        let host = self.endpoint.strip_prefix("http://").ok_or_else(wrong)?;
        let host = host.trim_end_matches('/');
        let has_port = host.rsplit_once(':').is_some_and(|(name, port)| {
            !port.ends_with(']') && (name.ends_with(']') || !name.contains(':'))
        });
        let host = match has_port {
            true => host.to_owned(),
            false => format!("{host}:80"),
        };
        host.to_socket_addrs()?.next().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A service that speaks IMDSv2: nothing is told to who has no token.
    fn service(kind: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = vec![0; 2048];
                let read = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let has_token = request.contains("X-aws-ec2-metadata-token: secret\r\n");
                let path = request.split(' ').nth(1).unwrap();
                let (status, body) = match path {
                    "/latest/api/token"
                        if request.starts_with("PUT") && request.contains("ttl-seconds: 60") =>
                    {
                        (200, "secret")
                    }
                    _ if !has_token => (401, ""),
                    "/latest/meta-data/instance-type" if kind.is_empty() => (404, ""),
                    "/latest/meta-data/instance-type" => (200, kind),
                    "/latest/meta-data/instance-life-cycle" => (200, "spot"),
                    "/latest/meta-data/placement/availability-zone" => (200, "eu-central-1a"),
                    _ => (404, ""),
                };
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        endpoint
    }

    #[test]
    fn the_machine_is_described() {
        let check = look(&service("c5d.18xlarge"));
        assert_eq!(
            check,
            Check::ok("machine", "c5d.18xlarge, spot, in eu-central-1a")
        );
    }

    #[test]
    fn a_service_that_does_not_help_is_a_warning() {
        for endpoint in [
            &service(""),
            "http://127.0.0.1:1",
            "https://127.0.0.1",
            "127.0.0.1",
        ] {
            let check = look(endpoint);
            assert_eq!(check.verdict, Verdict::Warning, "{check}");
        }
    }

    #[test]
    fn endpoints_may_have_a_port() {
        for (endpoint, expected) in [
            ("http://169.254.169.254", "169.254.169.254:80"),
            ("http://127.0.0.1:1338/", "127.0.0.1:1338"),
            ("http://[fd00:ec2::254]", "[fd00:ec2::254]:80"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            let address = Service { endpoint }.address().unwrap();
            assert_eq!(address.to_string(), expected);
        }
    }
}
