//! Roles of the members of a cluster. A certificate contains the role of its holder.

use rustls::pki_types::CertificateDer;
use std::fmt;
use std::sync::Arc;
use tonic::{Request, Status};
use webpki::EndEntityCert;

/// The role of a member. A certificate is issued for a role's DNS name, such as `worker.hatebeam`, and not for an
/// address. The other side of a connection accepts it for that role only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Distributes work and answers clients.
    Coordinator,
    /// Searches and exchanges children with other workers.
    Worker,
    /// Submits and watches runs.
    Client,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Coordinator, Role::Worker, Role::Client];

    /// Returns the DNS name in certificates.
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

/// Returns the certificates of the caller, or `None` if the connection does not use TLS.
fn chain<T>(request: &Request<T>) -> Option<Arc<Vec<CertificateDer<'static>>>> {
    request.peer_certs()
}

/// Checks that the caller's certificate has one of these roles, and returns `true`. If the connection does not use TLS,
/// accepts every caller and returns `false`.
///
/// # Errors
/// Returns the status to send to a caller with another role.
pub(crate) fn check_role<T>(request: &Request<T>, allowed: &[Role]) -> Result<bool, Status> {
    let Some(chain) = chain(request) else {
        return Ok(false);
    };
    let roles = Role::of_chain(&chain);
    if allowed.is_empty() || roles.iter().any(|role| allowed.contains(role)) {
        return Ok(true);
    }
    Err(Status::permission_denied(match roles.first() {
        Some(role) => format!(
            "this certificate is for a {role}, and only a {} may call this: use its certificate",
            allowed[0]
        ),
        None => "this certificate names no role: create new ones with `hatebeam certs --renew`"
            .to_owned(),
    }))
}

/// Checks that the caller's certificate permits the name of a worker. A certificate created with
/// `hatebeam certs --name NAME` permits the name NAME, and names that consist of NAME, a hyphen and any text. The
/// certificate that all workers share permits every name.
///
/// # Errors
/// Returns the status to send to the caller if the name is not permitted.
pub fn check_worker_name<T>(request: &Request<T>, name: &str) -> Result<(), Status> {
    let chain = chain(request).unwrap_or_default();
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
