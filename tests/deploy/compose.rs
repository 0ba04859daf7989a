//! Tests of the Compose file in deploy/compose, which runs a cluster on one machine.

use crate::support::{Start, Uri, list, path, read, succeeds, table, text, tool, uri, yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const IMAGE: &str = "hatebeam:local";
/// Names of third-party images without the tag, and the ports on which these images listen.
const OTHERS: [(&str, u16); 2] = [("prom/prometheus", 9090), ("grafana/grafana", 3000)];

/// Replaces `${NAME:-default}` with the default, and `${NAME:?message}` with 1000, a valid user or group ID.
fn interpolated(text: &str) -> String {
    let mut parts = text.split("${");
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (variable, rest) = part.split_once('}').unwrap();
        let (name, fallback) = variable.split_once(':').unwrap();
        match fallback.split_at(1) {
            ("-", default) => whole.push_str(default),
            ("?", _) => {
                assert!(["HATEBEAM_UID", "HATEBEAM_GID"].contains(&name), "{name}");
                whole.push_str("1000");
            }
            _ => panic!("{variable}"),
        }
        whole.push_str(rest);
    }
    whole
}

fn interpolate(value: &mut Value) {
    match value {
        Value::String(text) => *text = interpolated(text),
        Value::Array(values) => values.iter_mut().for_each(interpolate),
        Value::Object(values) => values.values_mut().for_each(interpolate),
        _ => {}
    }
}

fn compose() -> Value {
    let mut documents = yaml("deploy/compose/compose.yaml");
    assert_eq!(documents.len(), 1);
    let mut file = documents.remove(0);
    interpolate(&mut file);
    file
}

fn strings(value: &Value, pointer: &str) -> Vec<String> {
    let texts = list(value, pointer).map(|text| text.as_str().unwrap().to_owned());
    texts.collect()
}

fn services(file: &Value) -> BTreeMap<&str, &Value> {
    table(file, "/services").collect()
}

fn start(name: &str, service: &Value) -> Start {
    let variables = table(service, "/environment");
    Start {
        place: format!("the service {name}"),
        args: strings(service, "/command"),
        variables: variables
            .map(|(key, value)| (key.to_owned(), value.as_str().unwrap().to_owned()))
            .collect(),
    }
}

/// Returns the command line and the environment of each service that runs the program.
fn starts(file: &Value) -> BTreeMap<String, Start> {
    let ours = services(file)
        .into_iter()
        .filter(|(_, service)| text(service, "/image") == IMAGE);
    ours.map(|(name, service)| (name.to_owned(), start(name, service)))
        .collect()
}

/// Returns the ports on which a service listens.
fn listened(name: &str, service: &Value) -> BTreeSet<u16> {
    let image = text(service, "/image");
    if let Some((_, port)) = OTHERS.iter().find(|(other, _)| image.starts_with(other)) {
        return BTreeSet::from([*port]);
    }
    if name == "s3" {
        return BTreeSet::from([garage_port("s3_api")]);
    }
    let start = start(name, service);
    ["--listen", "--metrics", "--dashboard"]
        .into_iter()
        .filter(|option| start.option(option).is_some())
        .map(|option| start.port(option))
        .collect()
}

/// Returns Garage's settings by names of the form `section.key`.
fn garage() -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut found = BTreeMap::new();
    for line in read("deploy/compose/s3/garage.toml").lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some((key, value)) = line.split_once(" = ") {
            found.insert(
                format!("{section}{key}"),
                value.trim_matches('"').to_owned(),
            );
        }
    }
    found
}

fn garage_port(section: &str) -> u16 {
    crate::support::port_of(&garage()[&format!("{section}.api_bind_addr")])
}

#[test]
fn program_accepts_options_and_variables_of_every_service() {
    let starts = starts(&compose());
    let workers = starts.values().filter(|start| start.args[0] == "worker");
    assert_eq!(workers.count(), 2);
    for (name, start) in &starts {
        if name != "client" {
            start.check();
            continue;
        }
        // Some of the client's commands connect to the coordinator, and others read the store. Each variable must be
        // read by at least one of these two kinds of command.
        let pull = Start {
            place: "replays pull of the client".to_owned(),
            args: ["replays", "pull", "--best"].map(str::to_owned).into(),
            variables: start.variables.clone(),
        };
        let unread_by_status = start.unread_variables();
        let unread_by_pull = pull.unread_variables();
        let unread: Vec<&&str> = unread_by_status.intersection(&unread_by_pull).collect();
        assert!(unread.is_empty(), "{unread:?}");
    }
}

#[test]
fn every_configured_address_has_a_listening_service() {
    let file = compose();
    let (services, starts) = (services(&file), starts(&file));
    let networks = |name: &str| -> BTreeSet<String> {
        strings(services[name], "/networks").into_iter().collect()
    };
    for (name, start) in &starts {
        let variables = ["HATEBEAM_COORDINATOR", "HATEBEAM_S3_ENDPOINT"];
        for address in variables.iter().filter_map(|name| start.variable(name)) {
            let Uri { host, port, .. } = uri(address);
            let ports = listened(host, services[host]);
            assert!(
                ports.contains(&port),
                "{name} connects to {address}, but {host} listens on {ports:?}"
            );
            assert!(!networks(name).is_disjoint(&networks(host)), "{address}");
        }
        if let Some(advertised) = start.option("--advertise") {
            let expected = Uri {
                scheme: "https",
                host: name,
                port: start.port("--listen"),
            };
            assert_eq!(uri(advertised), expected);
            // The worker's name is the name of its service, because this name is unique.
            assert_eq!(start.option("--name"), Some(name.as_str()));
        }
        if let Some(address) = start.variable("HATEBEAM_COORDINATOR") {
            assert_eq!(uri(address).scheme, "https", "{name}");
            assert!(start.variable("HATEBEAM_TLS").is_some(), "{name}");
        }
    }
    let ports = |name: &str| listened(name, services[name]);
    assert_eq!(ports("coordinator"), BTreeSet::from([7800, 7880, 9100]));
    assert_eq!(ports("worker-1"), BTreeSet::from([7801, 9101]));
    assert_eq!(ports("worker-1"), ports("worker-2"));
}

#[test]
fn prometheus_and_grafana_reach_their_targets() {
    let file = compose();
    let services = services(&file);
    let mut scraped = BTreeSet::new();
    for job in list(
        &yaml("deploy/prometheus/prometheus.yml")[0],
        "/scrape_configs",
    ) {
        for targets in list(job, "/static_configs") {
            for target in strings(targets, "/targets") {
                let (host, port) = target.split_once(':').unwrap();
                assert_eq!(
                    start(host, services[host]).port("--metrics").to_string(),
                    port
                );
                let command = start(host, services[host]).args[0].clone();
                assert_eq!(text(job, "/job_name"), format!("hatebeam-{command}"));
                scraped.insert(host.to_owned());
            }
        }
    }
    let starts = starts(&file);
    let with_metrics = starts
        .iter()
        .filter(|(_, start)| start.option("--metrics").is_some());
    let with_metrics: BTreeSet<String> = with_metrics.map(|(name, _)| name.clone()).collect();
    assert_eq!(scraped, with_metrics);
    let source = &yaml("deploy/grafana/provisioning/datasources/prometheus.yaml")[0];
    let Uri { host, port, .. } = uri(text(source, "/datasources/0/url"));
    assert!(listened(host, services[host]).contains(&port));
}

#[test]
fn services_use_garage_as_object_store() {
    let file = compose();
    let (services, starts) = (services(&file), starts(&file));
    let bucket = text(services["s3"], "/environment/GARAGE_DEFAULT_BUCKET");
    for (name, start) in &starts {
        let Some(store) = start.variable("HATEBEAM_STORE") else {
            assert_eq!(name, "certs");
            continue;
        };
        assert!(store.starts_with(&format!("s3://{bucket}/")), "{store}");
        let region = start.variable("HATEBEAM_S3_REGION").unwrap();
        assert_eq!(region, garage()["s3_api.s3_region"]);
        assert_eq!(start.variable("HATEBEAM_S3_PATH_STYLE"), Some("true"));
        assert!(strings(services[name.as_str()], "/secrets").contains(&"s3-credentials".into()));
    }
    // Garage ignores the conditions of conditional writes.
    assert!(starts["coordinator"].has("--single-coordinator"));
    let port = text(services["s3"], "/healthcheck/test/3");
    assert_eq!(port, garage_port("admin").to_string());
}

#[test]
fn health_checks_use_metrics_port() {
    let file = compose();
    let services = services(&file);
    for (name, start) in starts(&file) {
        let service = services[name.as_str()];
        let is_disabled = service.pointer("/healthcheck/disable") == Some(&Value::Bool(true));
        let has_metrics = start.option("--metrics").is_some();
        // A service without metrics must disable the image's health check, because the check would always fail.
        assert_ne!(is_disabled, has_metrics, "{name}");
        if has_metrics {
            let port = start.port("--metrics").to_string();
            let expected = ["CMD", "healthcheck", "/healthz", port.as_str()];
            assert_eq!(strings(service, "/healthcheck/test"), expected);
        }
    }
}

#[test]
fn containers_are_hardened_and_publish_ports_only_on_loopback() {
    let file = compose();
    for (name, service) in services(&file) {
        let read_only = service.pointer("/read_only");
        assert_eq!(read_only, Some(&Value::Bool(true)), "{name}");
        assert_eq!(strings(service, "/cap_drop"), ["ALL"], "{name}");
        let options = strings(service, "/security_opt");
        assert_eq!(options, ["no-new-privileges:true"], "{name}");
        for port in strings(service, "/ports") {
            let ports = port.strip_prefix("127.0.0.1:").expect(&port);
            let (outside, inside) = ports.split_once(':').unwrap();
            assert_eq!(outside, inside);
            let listened = listened(name, service);
            assert!(listened.contains(&inside.parse().unwrap()), "{port}");
        }
    }
}

/// Runs a copy of the script `prepare` in `dir` and returns its output.
fn prepared(dir: &Path) -> String {
    let script = dir.join("prepare");
    if !script.exists() {
        fs::copy(path("deploy/compose/prepare"), &script).unwrap();
    }
    let mut command = Command::new(script);
    command.env("HATEBEAM", env!("CARGO_BIN_EXE_hatebeam-under-test"));
    succeeds(&mut command)
}

#[test]
fn prepare_creates_secrets_and_keeps_existing_ones() {
    let file = compose();
    let dir = tempfile::tempdir().unwrap();
    let output = prepared(dir.path());
    assert!(output.contains("made  secrets/tls\n"), "{output}");
    let mut made = BTreeMap::new();
    for (name, secret) in table(&file, "/secrets") {
        let secret = dir.path().join(text(secret, "/file"));
        // The container sees the file under the secret's name, so both names must be equal.
        assert_eq!(secret.file_name().unwrap().to_str(), Some(name));
        made.insert(secret.clone(), fs::read(&secret).unwrap());
        let mode = secret.metadata().unwrap().permissions().mode() & 0o777;
        let is_secret = !name.ends_with(".pem") || name.ends_with("-key.pem");
        assert!(!is_secret || mode == 0o600, "{name}: {mode:o}");
    }
    let env = fs::read_to_string(dir.path().join(".env")).unwrap();
    let id = |name: &str| -> u32 {
        let line = env.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    };
    // The containers never run as root.
    assert!(id("HATEBEAM_UID=") > 0 && id("HATEBEAM_GID=") > 0);
    let credentials = fs::read_to_string(dir.path().join("secrets/s3-credentials")).unwrap();
    let value = |key: &str| {
        let line = credentials.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().to_owned()
    };
    // Garage accepts only keys with this prefix and these lengths.
    assert_eq!(value("aws_access_key_id = GK").len(), 24);
    assert_eq!(value("aws_secret_access_key = ").len(), 64);
    let again = prepared(dir.path());
    assert!(!again.contains("made"), "{again}");
    for (secret, bytes) in made {
        assert_eq!(fs::read(&secret).unwrap(), bytes, "{}", secret.display());
    }
}

#[test]
fn prepare_completes_interrupted_setup() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("secrets/tls.new")).unwrap();
    fs::write(dir.path().join("secrets/tls.new/ca.pem"), "half a").unwrap();
    fs::create_dir(dir.path().join("secrets/tls")).unwrap();
    prepared(dir.path());
    assert!(dir.path().join("secrets/tls/token").exists());
    assert!(!dir.path().join("secrets/tls.new").exists());
}

#[test]
fn compose_file_matches_schema() {
    let Some(mut python) = tool("HATEBEAM_SCHEMAS", "python-with-schemas") else {
        return;
    };
    let mut file = compose();
    // Removes the fragments, whose names begin with `x-`. The YAML parser has already merged them into the services.
    let top = file.as_object_mut().unwrap();
    top.retain(|key, _| !key.starts_with("x-"));
    let check = "import sys; from compose_spec import PyCompose; PyCompose.from_yaml(sys.argv[1])";
    let check_of = |file: &Value| vec!["-c".to_owned(), check.to_owned(), file.to_string()];
    let mut wrong = file.clone();
    wrong["services"]["s3"]["stop_grace_perio"] = "1m".into();
    let refused = Command::new(python.get_program())
        .args(check_of(&wrong))
        .output()
        .unwrap();
    assert!(
        !refused.status.success(),
        "the schema check accepted an invalid file"
    );
    succeeds(python.args(check_of(&file)));
}
