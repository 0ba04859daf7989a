//! Creates a folder with the files that authenticate the members of a cluster: a certificate authority (CA),
//! certificates with their private keys, and tokens.
//!
//! Every certificate is issued for a [`Role`], so all machines with the same role can share the same files. The holder
//! of a certificate cannot pose as a member with another role.

use crate::{Role, Side, Tls, Token, WireError};
use hatebeam_files::{remove_temporaries, write_private, write_whole};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::UnixTime;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use time::OffsetDateTime;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

/// Name of the member with the role [`Role::Client`].
pub const CLIENT: &str = "client";
/// Name of the member with the role [`Role::Coordinator`].
const COORDINATOR: &str = "coordinator";
/// Names of the members that always receive certificates.
pub const MEMBERS: [&str; 3] = [COORDINATOR, "worker", CLIENT];
/// Maximum validity of a certificate, in days.
pub const MAX_DAYS: u32 = 36_500;

/// Minimum validity of the CA, in days (ten years). If the certificates are valid for longer, the CA is valid for as
/// long as they are.
const CA_DAYS: u32 = 3_650;
/// Time by which the start of the validity is backdated, for machines whose clocks are behind.
const EARLY: time::Duration = time::Duration::DAY;
/// Subject of the CA. It is constant, so renewed certificates have the same issuer.
const CA_SUBJECT: &str = "hatebeam CA";
const CA: &str = "ca.pem";
const CA_KEY: &str = "ca-key.pem";
const TOKEN: &str = "token";
/// Name of the file with the read-only token.
const VIEW_TOKEN: &str = "view-token";
/// Name of the file that makes Git ignore the folder.
const IGNORE: &str = ".gitignore";

/// Options of [`make`].
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Folder for the files. [`make`] creates it if it does not exist.
    pub dir: &'a Path,
    /// Member names in addition to [`MEMBERS`].
    pub names: &'a [String],
    /// Validity of the certificates in days, at most [`MAX_DAYS`].
    pub days: u32,
    /// Whether to replace the certificates in the folder with new certificates from the same CA. The members include those
    /// for which an earlier call created certificates.
    pub renew: bool,
}

/// Result of [`make`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The files that were written, in the order of writing.
    pub files: Vec<MadeFile>,
    /// The members that received new certificates.
    pub members: Vec<String>,
    /// Names of certificates in the folder that were not renewed, because they are damaged or [`make`] has not created them.
    pub skipped: Vec<String>,
    /// Time at which the new certificates expire.
    pub expires: SystemTime,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Whether only the owner of the file can read it.
    pub private: bool,
}

/// An error returned by [`make`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertsError {
    /// A member name is invalid.
    #[error(
        "invalid certificate name '{0}': give 1 to 64 characters from a-z, A-Z, 0-9, '.', '_' and '-', starting with \
         a letter or a digit and not ending in '-key', other than 'ca', 'token' and 'view-token'"
    )]
    Name(String),
    /// The validity is out of range.
    #[error("a validity of {0} days is out of range: give a number from 1 to {MAX_DAYS}")]
    Days(u32),
    /// A file exists and would be overwritten.
    #[error(
        "{} already exists: choose another folder, or give --renew to replace the certificates",
        .0.display()
    )]
    Exists(PathBuf),
    /// The folder contains no CA to issue renewed certificates.
    #[error("{} does not exist: certificates can only be renewed with the CA that issued them", .0.display())]
    NoCa(PathBuf),
    /// The CA in the folder is unusable.
    #[error("the CA cannot be used: {0}")]
    BadCa(String),
    /// The CA in the folder expires before the new certificates would.
    #[error(
        "the CA {} expires on {date}, before a certificate that is valid for {days} days: give a smaller --days, or \
         create all files again in another folder",
        path.display()
    )]
    CaExpires {
        /// Path of the CA's certificate.
        path: PathBuf,
        /// Date on which the CA's certificate expires.
        date: time::Date,
        /// Requested validity of the certificates, in days.
        days: u32,
    },
    /// An operation on a file or folder failed.
    #[error("cannot use {}: {reason}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// A certificate cannot be created.
    #[error("cannot create the certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The token cannot be created.
    #[error(transparent)]
    Token(WireError),
}

struct Authority {
    cert: String,
    params: CertificateParams,
    key: KeyPair,
    not_after: OffsetDateTime,
}

struct Planned {
    path: PathBuf,
    text: String,
    private: bool,
}

/// Creates a CA, certificates and tokens. If [`Options::renew`] is set, keeps the CA, issues new certificates, and
/// creates only missing tokens.
///
/// # Errors
/// Returns a [`CertsError`] if an option is invalid, a file would be overwritten without [`Options::renew`], or a file
/// cannot be read or written. If a file cannot be written, the files that were already written are removed, but the
/// folder remains. A renewal does not remove files, so only some of the members may then have new certificates.
pub fn make(options: &Options<'_>, now: SystemTime) -> Result<Made, CertsError> {
    let mut members = members(options.names)?;
    let mut skipped = Vec::new();
    if options.renew {
        for name in other_members(options.dir, &members)? {
            let is_own = is_certificate_of(&Tls::in_dir(options.dir, &name).cert, &name);
            let list = if is_own { &mut members } else { &mut skipped };
            list.push(name);
        }
    }
    if !(1..=MAX_DAYS).contains(&options.days) {
        return Err(CertsError::Days(options.days));
    }
    let (authority, mut files) = if options.renew {
        (Authority::read(options.dir)?, Vec::new())
    } else {
        let authority = Authority::make(options.days.max(CA_DAYS), now)?;
        let files = authority.files(options.dir);
        (authority, files)
    };
    if authority.not_after < end(options.days, now) {
        return Err(CertsError::CaExpires {
            path: options.dir.join(CA),
            date: authority.not_after.date(),
            days: options.days,
        });
    }
    for member in &members {
        files.extend(authority.issue(options, member, now)?);
    }
    let tokens = [TOKEN, VIEW_TOKEN].map(|name| options.dir.join(name));
    // A renewal keeps existing tokens, because they do not expire, and a new token would require a restart of all
    // processes.
    for token in tokens {
        if !(options.renew && exists(&token)) {
            let text = Token::random().map_err(CertsError::Token)?;
            files.push(planned(token, format!("{}\n", text.reveal()), true));
        }
    }
    if !options.renew
        && let Some(there) = files.iter().find(|file| exists(&file.path))
    {
        return Err(CertsError::Exists(there.path.clone()));
    }
    let ignore = options.dir.join(IGNORE);
    if !exists(&ignore) {
        files.insert(0, planned(ignore, "*\n".to_owned(), false));
    }
    write_all(options, &files)?;
    let made = |file: Planned| MadeFile {
        path: file.path,
        private: file.private,
    };
    Ok(Made {
        files: files.into_iter().map(made).collect(),
        members,
        skipped,
        expires: end(options.days, now).into(),
    })
}

/// Returns [`MEMBERS`] followed by the additional members.
fn members(names: &[String]) -> Result<Vec<String>, CertsError> {
    let mut members = MEMBERS.map(str::to_owned).to_vec();
    for name in names {
        if !is_name(name) {
            return Err(CertsError::Name(name.clone()));
        }
        if !members.contains(name) {
            members.push(name.clone());
        }
    }
    Ok(members)
}

/// Returns the names of the certificates in a folder that have a key and belong to no member of the list, in
/// alphabetical order. A folder that does not exist has none.
fn other_members(dir: &Path, members: &[String]) -> Result<Vec<String>, CertsError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed(dir))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.map_err(failed(dir))?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".pem"));
        let is_other = |name: &&str| {
            is_name(name)
                && !members.iter().any(|member| member == name)
                && exists(&Tls::in_dir(dir, name).key)
        };
        names.extend(name.filter(is_other).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns whether [`make`] has created this certificate for a worker with this name. An expired certificate counts.
fn is_certificate_of(path: &Path, name: &str) -> bool {
    let domain = format!("{name}.{}", role_of(name).domain());
    let check = |text: &[u8]| {
        let (_, pem) = parse_x509_pem(text).ok()?;
        let cert = pem.parse_x509().ok()?;
        let issuer = cert.issuer().iter_common_name().next()?.as_str().ok()?;
        let names = &cert.subject_alternative_name().ok()??.value.general_names;
        let has_name = names
            .iter()
            .any(|name| matches!(name, GeneralName::DNSName(dns) if *dns == domain));
        Some(issuer == CA_SUBJECT && has_name)
    };
    fs::read(path).is_ok_and(|text| check(&text).unwrap_or(false))
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len())
        && name.bytes().all(fits)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.to_ascii_lowercase().ends_with("-key")
        && !["ca", TOKEN, VIEW_TOKEN].contains(&name.to_ascii_lowercase().as_str())
}

impl Authority {
    fn make(days: u32, now: SystemTime) -> Result<Self, CertsError> {
        let mut params = ca_params();
        (params.not_before, params.not_after) = (begin(now), end(days, now));
        let key = KeyPair::generate()?;
        Ok(Self {
            cert: params.self_signed(&key)?.pem(),
            not_after: params.not_after,
            params,
            key,
        })
    }

    fn read(dir: &Path) -> Result<Self, CertsError> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).map_err(|reason| match reason.kind() {
                io::ErrorKind::NotFound => CertsError::NoCa(path),
                _ => CertsError::Io { path, reason },
            })
        };
        let (cert, key) = (read(CA)?, read(CA_KEY)?);
        let bad = |error| CertsError::BadCa(format!("{}: {error}", dir.join(CA_KEY).display()));
        let bad_cert = || CertsError::BadCa(format!("{} is damaged", dir.join(CA).display()));
        Ok(Self {
            not_after: expiry(&cert).ok_or_else(bad_cert)?,
            cert,
            // Issuing a certificate requires only the CA's subject and key.
            params: ca_params(),
            key: KeyPair::from_pem(&key).map_err(bad)?,
        })
    }

    /// Returns the CA's files. The key comes first, so that an interruption never leaves a certificate
    /// without its key.
    fn files(&self, dir: &Path) -> Vec<Planned> {
        vec![
            planned(dir.join(CA_KEY), self.key.serialize_pem(), true),
            planned(dir.join(CA), self.cert.clone(), false),
        ]
    }

    fn issue(
        &self,
        options: &Options<'_>,
        member: &str,
        now: SystemTime,
    ) -> Result<[Planned; 2], CertsError> {
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_params(&self.params, &self.key);
        let params = member_params(member, options.days, now)?;
        let cert = params.signed_by(&key, &issuer)?.pem();
        let key = key.serialize_pem();
        let files = Tls::in_dir(options.dir, member);
        let contents = [&self.cert, &cert, &key].map(|text| text.as_bytes());
        // The CA's certificate may not match its key, because `read` does not check this.
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH);
        let unix_time = UnixTime::since_unix_epoch(since_1970.unwrap_or(Duration::ZERO));
        files
            .check(contents, Side::Client, unix_time)
            .map_err(|error| {
                let (ca, key) = (options.dir.join(CA), options.dir.join(CA_KEY));
                let pair = format!("{} and {}", ca.display(), key.display());
                CertsError::BadCa(format!("{pair} do not match ({error})"))
            })?;
        Ok([
            planned(files.key, key, true),
            planned(files.cert, cert, false),
        ])
    }
}

/// Returns the time at which a certificate in PEM format expires, or `None` if it cannot be parsed.
fn expiry(cert: &str) -> Option<OffsetDateTime> {
    let (_, pem) = parse_x509_pem(cert.as_bytes()).ok()?;
    let validity = pem.parse_x509().ok()?.validity().clone();
    Some(validity.not_after.to_datetime())
}

fn planned(path: PathBuf, text: String, private: bool) -> Planned {
    Planned {
        path,
        text,
        private,
    }
}

fn subject(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn begin(now: SystemTime) -> OffsetDateTime {
    OffsetDateTime::from(now) - EARLY
}

fn end(days: u32, now: SystemTime) -> OffsetDateTime {
    OffsetDateTime::from(now) + time::Duration::days(days.into())
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(CA_SUBJECT);
    // With a path length of 0, the CA can issue certificates to members but not to other CAs.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Returns the role of a member. All members outside [`MEMBERS`] are workers.
fn role_of(member: &str) -> Role {
    match member {
        COORDINATOR => Role::Coordinator,
        CLIENT => Role::Client,
        _ => Role::Worker,
    }
}

fn member_params(
    member: &str,
    days: u32,
    now: SystemTime,
) -> Result<CertificateParams, rcgen::Error> {
    let role = role_of(member);
    let mut names = vec![role.domain().to_owned()];
    if role == Role::Coordinator {
        // Through a tunnel, a browser reaches the dashboard at one of these addresses. The browser requires a
        // certificate for the address.
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    }
    if !MEMBERS.contains(&member) {
        names.push(format!("{member}.{}", role.domain()));
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = subject(&format!("hatebeam {member}"));
    (params.not_before, params.not_after) = (begin(now), end(days, now));
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if role != Role::Client {
        params
            .extended_key_usages
            .push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    Ok(params)
}

/// Returns whether the path exists. A dangling symbolic link counts as existing.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn write_all(options: &Options<'_>, files: &[Planned]) -> Result<(), CertsError> {
    make_dir(options.dir).map_err(failed(options.dir))?;
    // An interrupted process may have left private keys.
    remove_temporaries(options.dir).map_err(failed(options.dir))?;
    for (at, file) in files.iter().enumerate() {
        let write = if file.private {
            write_private
        } else {
            write_whole
        };
        if let Err(error) = write(&file.path, file.text.as_bytes()) {
            if !options.renew {
                // Otherwise, the next attempt would refuse to overwrite these files. The failed file may exist, too, if only
                // the sync of the folder has failed.
                for written in &files[..=at] {
                    let _ = fs::remove_file(&written.path);
                }
            }
            return Err(failed(&file.path)(error));
        }
    }
    Ok(())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> CertsError {
    let path = path.to_owned();
    move |reason| CertsError::Io {
        path: path.clone(),
        reason,
    }
}

/// Creates a folder that only its owner can read, unless the folder exists.
fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(test)]
mod tests;
