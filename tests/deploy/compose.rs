//! A cluster on one machine: deploy/compose.

use crate::support::{Start, list, path, read, succeeds, table, text, tool, uri, yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const IMAGE: &str = "hatebeam:local";
/// The images whose own ports are published, and which are them.
const OTHERS: [(&str, u16); 2] = [("prom/prometheus", 9090), ("grafana/grafana", 3000)];

/// The value of `${NAME:-default}` or `${NAME:?message}` as `./prepare` or nobody has set it.
fn interpolated(text: &str) -> String {
    let mut parts = text.split("${");
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (variable, rest) = part.split_once('}').unwrap();
        let (name, otherwise) = variable.split_once(':').unwrap();
        match otherwise.split_at(1) {
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

/// Those that run the program.
fn starts(file: &Value) -> BTreeMap<String, Start> {
    let ours = services(file)
        .into_iter()
        .filter(|(_, service)| text(service, "/image") == IMAGE);
    ours.map(|(name, service)| (name.to_owned(), start(name, service)))
        .collect()
}

/// The ports that a service listens on beyond its loopback.
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
fn the_program_understands_every_service() {
    let starts = starts(&compose());
    let workers = starts.values().filter(|start| start.args[0] == "worker");
    assert_eq!(workers.count(), 2);
    for (name, start) in &starts {
        if name != "client" {
            start.check();
            continue;
        }
        // It asks the coordinator, or looks into the store.
        let pull = ["replays", "pull", "--best"].map(str::to_owned).into();
        let looks = Start {
            place: "replays of the client".to_owned(),
            args: pull,
            variables: start.variables.clone(),
        };
        let (asking, looking) = (start.unheeded(), looks.unheeded());
        let neither: Vec<&&str> = asking.intersection(&looking).collect();
        assert!(neither.is_empty(), "{neither:?}");
    }
}

#[test]
fn whoever_is_called_listens_there() {
    let file = compose();
    let (services, starts) = (services(&file), starts(&file));
    let networks = |name: &str| -> BTreeSet<String> {
        strings(services[name], "/networks").into_iter().collect()
    };
    for (name, start) in &starts {
        let calls = ["HATEBEAM_COORDINATOR", "HATEBEAM_S3_ENDPOINT"];
        for call in calls.iter().filter_map(|name| start.variable(name)) {
            let (_, host, port) = uri(call);
            let ports = listened(host, services[host]);
            assert!(
                ports.contains(&port),
                "{name} calls {call}, and {host} has {ports:?}"
            );
            assert!(!networks(name).is_disjoint(&networks(host)), "{call}");
        }
        if let Some(advertised) = start.option("--advertise") {
            let there = (name.as_str(), start.port("--listen"));
            assert_eq!(uri(advertised), ("https", there.0, there.1));
            assert_eq!(
                start.option("--name"),
                Some(name.as_str()),
                "no other has it"
            );
        }
        if let Some(call) = start.variable("HATEBEAM_COORDINATOR") {
            let secured = start.variable("HATEBEAM_TLS").is_some();
            assert!(call.starts_with("https://") && secured, "{name}: {call}");
        }
    }
    let ports = |name: &str| listened(name, services[name]);
    assert_eq!(ports("coordinator"), BTreeSet::from([7800, 7880, 9100]));
    assert_eq!(ports("worker-1"), BTreeSet::from([7801, 9101]));
    assert_eq!(ports("worker-1"), ports("worker-2"));
}

#[test]
fn what_is_scraped_is_there() {
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
    let shows = starts
        .iter()
        .filter(|(_, start)| start.option("--metrics").is_some());
    let shows: BTreeSet<String> = shows.map(|(name, _)| name.clone()).collect();
    assert_eq!(scraped, shows);
    let source = &yaml("deploy/grafana/provisioning/datasources/prometheus.yaml")[0];
    let (_, host, port) = uri(text(source, "/datasources/0/url"));
    assert!(listened(host, services[host]).contains(&port));
}

#[test]
fn the_object_store_is_the_one_that_is_served() {
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
    // It does not honour conditional writes.
    assert!(starts["coordinator"].has("--single-coordinator"));
    assert_eq!(
        text(services["s3"], "/healthcheck/test/2"),
        "/health",
        "of Garage"
    );
    let asked = text(services["s3"], "/healthcheck/test/3");
    assert_eq!(asked, garage_port("admin").to_string());
}

#[test]
fn health_is_asked_where_metrics_are() {
    let file = compose();
    let services = services(&file);
    for (name, start) in starts(&file) {
        let service = services[name.as_str()];
        let disabled = service.pointer("/healthcheck/disable") == Some(&Value::Bool(true));
        let shows = start.option("--metrics").is_some();
        assert_ne!(
            disabled, shows,
            "{name}: the image's own check would ask in vain"
        );
        if shows {
            let port = start.port("--metrics").to_string();
            let expected = ["CMD", "healthcheck", "/healthz", port.as_str()];
            assert_eq!(strings(service, "/healthcheck/test"), expected);
        }
    }
}

#[test]
fn nothing_is_open_that_need_not_be() {
    let file = compose();
    for (name, service) in services(&file) {
        assert_eq!(
            service.pointer("/read_only"),
            Some(&Value::Bool(true)),
            "{name}"
        );
        assert_eq!(strings(service, "/cap_drop"), ["ALL"], "{name}");
        assert_eq!(
            strings(service, "/security_opt"),
            ["no-new-privileges:true"]
        );
        let is_other = OTHERS
            .iter()
            .any(|(other, _)| text(service, "/image").starts_with(other));
        let user = service.pointer("/user").and_then(Value::as_str);
        // The images of others are nobody's by themselves.
        assert_eq!(user, (!is_other).then_some("1000:1000"), "{name}");
        if name != "certs" {
            for limit in ["cpus", "memory", "pids"] {
                let found = service.pointer(&format!("/deploy/resources/limits/{limit}"));
                assert!(found.is_some(), "{name}: {limit}");
            }
        }
        for port in strings(service, "/ports") {
            let inside = port.strip_prefix("127.0.0.1:").expect(&port);
            let (outside, inside) = inside.split_once(':').unwrap();
            assert_eq!(outside, inside);
            assert!(
                listened(name, service).contains(&inside.parse().unwrap()),
                "{port}"
            );
        }
        let is_worker = name.starts_with("worker-");
        let grace = service
            .pointer("/stop_grace_period")
            .and_then(Value::as_str);
        assert!(!is_worker || grace == Some("10m"), "{name}: {grace:?}");
    }
}

#[test]
fn what_is_named_is_declared() {
    let file = compose();
    let services = services(&file);
    let keys = |pointer: &str| -> BTreeSet<String> {
        table(&file, pointer)
            .map(|(key, _)| key.to_owned())
            .collect()
    };
    let (networks, volumes, secrets) = (keys("/networks"), keys("/volumes"), keys("/secrets"));
    let mut used = BTreeSet::new();
    for (name, service) in &services {
        for network in strings(service, "/networks") {
            assert!(networks.contains(&network), "{name}: {network}");
        }
        for secret in strings(service, "/secrets") {
            assert!(secrets.contains(&secret), "{name}: {secret}");
            used.insert(secret);
        }
        for volume in strings(service, "/volumes") {
            let source = volume.split(':').next().unwrap();
            match source.strip_prefix('.') {
                None => assert!(volumes.contains(source), "{name}: {volume}"),
                // ./prepare makes it.
                Some("/secrets") => {}
                Some(_) => assert!(
                    path(&format!("deploy/compose/{source}")).exists(),
                    "{name}: {volume}"
                ),
            }
        }
        for (other, _) in table(service, "/depends_on") {
            assert!(services.contains_key(other), "{name}: {other}");
        }
        if let Some(context) = service.pointer("/build/context").and_then(Value::as_str) {
            let file = service.pointer("/build/dockerfile").and_then(Value::as_str);
            let file = format!("deploy/compose/{context}/{}", file.unwrap_or("Dockerfile"));
            assert!(path(&file).exists(), "{name}: {file}");
        }
    }
    assert_eq!(used, secrets);
}

/// A copy of the folder with what `./prepare` makes.
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
fn prepare_makes_the_secrets_once() {
    let file = compose();
    let dir = tempfile::tempdir().unwrap();
    let said = prepared(dir.path());
    assert!(said.contains("made  secrets/tls\n"), "{said}");
    let mut made = BTreeMap::new();
    for (name, secret) in table(&file, "/secrets") {
        let secret = dir.path().join(text(secret, "/file"));
        // In /run/secrets it is called as the secret is, which is what the program looks for.
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
    assert!(
        id("HATEBEAM_UID=") > 0 && id("HATEBEAM_GID=") > 0,
        "never root"
    );
    let credentials = fs::read_to_string(dir.path().join("secrets/s3-credentials")).unwrap();
    let value = |key: &str| {
        let line = credentials.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().to_owned()
    };
    // Garage takes no other form.
    assert_eq!(value("aws_access_key_id = GK").len(), 24);
    assert_eq!(value("aws_secret_access_key = ").len(), 64);
    let again = prepared(dir.path());
    assert!(!again.contains("made"), "{again}");
    for (secret, bytes) in made {
        assert_eq!(fs::read(&secret).unwrap(), bytes, "{}", secret.display());
    }
}

#[test]
fn an_interrupted_prepare_is_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("secrets/tls.new")).unwrap();
    fs::write(dir.path().join("secrets/tls.new/ca.pem"), "half a").unwrap();
    fs::create_dir(dir.path().join("secrets/tls")).unwrap();
    prepared(dir.path());
    assert!(dir.path().join("secrets/tls/token").exists());
    assert!(!dir.path().join("secrets/tls.new").exists());
}

#[test]
fn it_is_what_compose_files_may_be() {
    let Some(mut python) = tool("HATEBEAM_SCHEMAS", "python-with-schemas") else {
        return;
    };
    let mut file = compose();
    // What is there to be merged is merged.
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
    assert!(!refused.status.success(), "it checks nothing");
    succeeds(python.args(check_of(&file)));
}
