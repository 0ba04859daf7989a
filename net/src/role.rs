//! Roles of cluster members. A certificate contains its holder's role.

use crate::check_address;
use rustls::pki_types::CertificateDer;
use std::fmt;
use tonic::{Request, Status};
use webpki::EndEntityCert;

/// The role of a cluster member. A certificate contains its holder's role as a DNS name such as `worker.hatebeam`. The
/// other side of a connection checks this name instead of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The process that distributes work and answers clients.
    Coordinator,
    /// A process that searches and exchanges children (candidate wells for the next depth) with other workers.
    Worker,
    /// A process that submits and watches runs.
    Client,
}

impl Role {
    const ALL: [Role; 3] = [Role::Coordinator, Role::Worker, Role::Client];

    /// Returns the DNS name that certificates for this role contain.
    pub const fn domain(self) -> &'static str {
        match self {
            Role::Coordinator => "coordinator.hatebeam",
            Role::Worker => "worker.hatebeam",
            Role::Client => "client.hatebeam",
        }
    }

    /// Returns the roles in the first certificate of a chain.
    fn of_chain(chain: &[CertificateDer<'_>]) -> Vec<Role> {
        let names = names(chain);
        let roles = Role::ALL.into_iter();
        roles
            .filter(|role| names.iter().any(|name| name == role.domain()))
            .collect()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = self.domain().split_once('.').unwrap_or_default();
        f.write_str(name)
    }
}

/// Returns the DNS names in the first certificate of a chain.
fn names(chain: &[CertificateDer<'_>]) -> Vec<String> {
    let Some(Ok(cert)) = chain.first().map(EndEntityCert::try_from) else {
        return Vec::new();
    };
    cert.valid_dns_names().map(str::to_owned).collect()
}

/// Returns `true` if the caller's certificate contains one of the `allowed` roles, or if `allowed` is empty. Returns
/// `false` if the connection does not use TLS.
///
/// # Errors
/// Returns the status to send to the caller if its certificate contains none of the `allowed` roles.
pub(crate) fn check_role<T>(request: &Request<T>, allowed: &[Role]) -> Result<bool, Status> {
    let Some(chain) = request.peer_certs() else {
        return Ok(false);
    };
    let roles = Role::of_chain(&chain);
    if allowed.is_empty() || roles.iter().any(|role| allowed.contains(role)) {
        return Ok(true);
    }
    Err(Status::permission_denied(match roles.first() {
        Some(role) => format!(
            "this certificate is for a {role}, but only a {0} may make this call: use a certificate for a {0}",
            allowed[0]
        ),
        None => "this certificate contains no role: create new ones with `hatebeam certs --renew`"
            .to_owned(),
    }))
}

/// Checks that the caller's certificate permits a worker name. A certificate created with `hatebeam certs --name NAME`
/// permits NAME, and names that consist of NAME, a hyphen and any text. The certificate that all workers share permits
/// every name.
///
/// # Errors
/// Returns the status to send to the caller if the name is not permitted.
pub fn check_worker_name<T>(request: &Request<T>, name: &str) -> Result<(), Status> {
    let chain = request.peer_certs().unwrap_or_default();
    let suffix = format!(".{}", Role::Worker.domain());
    let names = names(&chain);
    let mut own = names.iter().filter_map(|name| name.strip_suffix(&suffix));
    let Some(own) = own.next() else {
        return Ok(());
    };
    let rest = name.strip_prefix(own);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
        return Ok(());
    }
    Err(Status::permission_denied(format!(
        "this certificate is for the worker {own}, not for {name}: pass --name {own}"
    )))
}

/// Checks the address at which the other workers reach the caller, a worker. The workers use TLS exactly if the caller
/// does, because either all members of a cluster have certificates or none has.
///
/// # Errors
/// Returns the status to send to the caller if the other workers cannot connect to the address.
pub fn check_worker_address<T>(request: &Request<T>, address: &str) -> Result<(), Status> {
    let has_tls = request.peer_certs().is_some();
    check_address(address, has_tls).map_err(|error| {
        Status::invalid_argument(format!(
            "other workers cannot connect to this worker: {error}; pass the address with --advertise"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[test]
    fn worker_without_tls_must_have_an_http_address() {
        let check = |address| check_worker_address(&Request::new(()), address);
        check("http://worker-1:7801").unwrap();
        for (address, expected) in [
            ("worker-1:7801", "write http://HOST:PORT"),
            ("https://worker-1:7801", "write http://worker-1:7801"),
        ] {
            let status = check(address).unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument);
            for part in [address, expected, "--advertise"] {
                assert!(status.message().contains(part), "{status}");
            }
        }
    }
}
