use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const DAY: Duration = Duration::from_secs(86_400);

fn options(dir: &Path) -> Options<'_> {
    Options {
        dir,
        names: &[],
        days: 30,
        renew: false,
    }
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(named).collect()
}

#[test]
fn certificates_are_valid_for_clients_and_for_servers_of_own_role() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["gpu-1".to_owned(), "worker".to_owned()];
    let options = Options {
        names: &names,
        ..options(dir.path())
    };
    let made = make(&options, SystemTime::now()).unwrap();
    assert_eq!(made.members, ["coordinator", "worker", "client", "gpu-1"]);
    assert_eq!(made.files.len(), 1 + 2 + 2 * 4 + 2);
    for member in &made.members {
        let tls = Tls::in_dir(dir.path(), member);
        tls.client(Role::Coordinator).unwrap();
        for role in [Role::Coordinator, Role::Worker] {
            let is_own = role == role_of(member) && member != CLIENT;
            assert_eq!(tls.server(role).is_ok(), is_own, "{member} {role}");
        }
    }
    let error = Tls::in_dir(dir.path(), CLIENT)
        .server(Role::Coordinator)
        .unwrap_err();
    assert!(error.to_string().contains("for clients only"), "{error}");
    Token::from_file(&dir.path().join(TOKEN)).unwrap();
}

#[cfg(unix)]
#[test]
fn secret_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("new");
    let made = make(&options(&dir), SystemTime::now()).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in made.files {
        let name = file.path.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            file.private,
            name.ends_with(TOKEN) || name.ends_with("-key.pem")
        );
        let others = mode(&file.path) & 0o077;
        assert_eq!(others == 0, file.private, "{name}");
    }
}

#[test]
fn existing_files_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let lone = dir.path().join("worker-key.pem");
    fs::write(&lone, "mine").unwrap();
    let error = make(&options(dir.path()), SystemTime::now()).unwrap_err();
    assert!(matches!(error, CertsError::Exists(path) if path == lone));
    assert_eq!(contents(dir.path()).len(), 1);
    fs::remove_file(&lone).unwrap();
    make(&options(dir.path()), SystemTime::now()).unwrap();
    let before = contents(dir.path());
    let error = make(&options(dir.path()), SystemTime::now()).unwrap_err();
    assert!(error.to_string().contains("--renew"), "{error}");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn renewal_keeps_ca_and_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let long_ago = SystemTime::now() - 100 * DAY;
    make(&options(dir.path()), long_ago).unwrap();
    let tls = Tls::in_dir(dir.path(), "worker");
    let error = tls.server(Role::Worker).unwrap_err().to_string();
    assert!(
        error.contains("worker.pem: the certificate has expired"),
        "{error}"
    );
    let before = contents(dir.path());
    let renew = Options {
        renew: true,
        ..options(dir.path())
    };
    let made = make(&renew, SystemTime::now()).unwrap();
    assert_eq!(made.files.len(), 6);
    for (name, bytes) in contents(dir.path()) {
        let kept = [CA, CA_KEY, TOKEN, VIEW_TOKEN, IGNORE].contains(&name.as_str());
        assert_eq!(before[&name] == bytes, kept, "{name}");
    }
    tls.server(Role::Worker).unwrap();
    fs::remove_file(dir.path().join(TOKEN)).unwrap();
    assert_eq!(make(&renew, SystemTime::now()).unwrap().files.len(), 7);
}

#[test]
fn renewed_certificates_do_not_outlive_the_ca() {
    let dir = tempfile::tempdir().unwrap();
    let made = SystemTime::now();
    make(&options(dir.path()), made).unwrap();
    let before = contents(dir.path());
    let renewed_after = |days: u32, validity: u32| {
        let renew = Options {
            renew: true,
            days: validity,
            ..options(dir.path())
        };
        make(&renew, made + DAY * days)
    };
    let error = renewed_after(CA_DAYS - 30, 31).unwrap_err().to_string();
    let date = end(CA_DAYS, made).date().to_string();
    assert!(
        error.contains(&format!("ca.pem expires on {date}, before")),
        "{error}"
    );
    renewed_after(CA_DAYS + 1, 1).unwrap_err();
    assert_eq!(contents(dir.path()), before);
    // A certificate stores its expiry in whole seconds, so a validity of 30 days could be refused.
    renewed_after(CA_DAYS - 30, 29).unwrap();
}

#[test]
fn renewal_requires_a_ca_certificate_with_its_key() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = dirs.each_ref().map(tempfile::TempDir::path);
    let renew = Options {
        renew: true,
        ..options(one)
    };
    let refused = || make(&renew, SystemTime::now()).unwrap_err().to_string();
    assert!(refused().contains("ca.pem does not exist"));
    for dir in [one, other] {
        make(&options(dir), SystemTime::now()).unwrap();
    }
    let before = contents(one);
    fs::copy(other.join(CA_KEY), one.join(CA_KEY)).unwrap();
    assert!(refused().contains("do not match"), "{}", refused());
    fs::write(one.join(CA_KEY), "nothing").unwrap();
    assert!(refused().contains("ca-key.pem"), "{}", refused());
    assert_eq!(contents(one)["worker.pem"], before["worker.pem"]);
}

#[test]
fn invalid_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for days in [0, MAX_DAYS + 1] {
        let options = Options {
            days,
            ..options(dir.path())
        };
        let error = make(&options, SystemTime::now()).unwrap_err();
        assert!(matches!(error, CertsError::Days(_)));
    }
    for name in [
        "", "ca", "CA", "token", "a-key", "../a", "a/b", ".a", "-a", "ä",
    ] {
        let names = [name.to_owned()];
        let options = Options {
            names: &names,
            ..options(dir.path())
        };
        let error = make(&options, SystemTime::now()).unwrap_err();
        assert!(matches!(error, CertsError::Name(_)), "{name}");
    }
    assert!(contents(dir.path()).is_empty());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = make(&options(&file), SystemTime::now()).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

proptest! {
    #[test]
    fn member_files_are_in_the_folder_and_never_replace_the_ca_key(name in "[a-zA-Z0-9._/ -]{0,70}") {
        if is_name(&name) {
            let path = Tls::in_dir(Path::new("dir"), &name);
            prop_assert_eq!(path.cert.parent(), Some(Path::new("dir")));
            prop_assert!(path.cert != Path::new("dir/ca-key.pem"));
        }
    }
}
