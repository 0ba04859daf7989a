//! A cluster on Kubernetes: deploy/kubernetes.

use crate::support::{
    Start, files_below, hatebeam, list, parse_yaml, path, succeeds, table, text, tool, uri, yaml,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const FOLDER: &str = "deploy/kubernetes";
/// What the images of ours that are not the program listen on.
const GARAGE: u16 = 3900;
/// An address that a pod may have.
const POD_IP: &str = "10.244.0.7";

/// Manifests that are applied together.
struct Cluster {
    name: String,
    documents: Vec<Value>,
}

/// A pod template, and what it is of.
struct Pod<'a> {
    name: &'a str,
    owner: &'a Value,
    template: &'a Value,
}

impl Pod<'_> {
    fn container(&self) -> &Value {
        let mut containers = list(self.template, "/spec/containers");
        let container = containers.next().unwrap();
        assert!(containers.next().is_none(), "{}", self.name);
        container
    }

    fn labels(&self) -> &Value {
        &self.template["metadata"]["labels"]
    }

    /// The ports by their names.
    fn ports(&self) -> BTreeMap<&str, u16> {
        list(self.container(), "/ports")
            .map(|port| (text(port, "/name"), number(&port["containerPort"])))
            .collect()
    }

    fn is_ours(&self) -> bool {
        self.labels()["app.kubernetes.io/name"] == "hatebeam"
    }

    fn component(&self) -> &str {
        let part = &self.labels()["app.kubernetes.io/component"];
        part.as_str().unwrap_or(self.name)
    }
}

#[track_caller]
fn number(value: &Value) -> u16 {
    u16::try_from(value.as_u64().unwrap()).unwrap()
}

/// Whether every label that is asked for is there.
fn selects(wanted: &Value, labels: &Value) -> bool {
    table(wanted, "").all(|(key, value)| labels.get(key) == Some(value))
}

impl Cluster {
    /// The manifests of the base as they are written, with the map that is generated of its literals.
    fn base() -> Cluster {
        let folder = format!("{FOLDER}/base");
        let kustomization = yaml(&format!("{folder}/kustomization.yaml")).remove(0);
        let resources = list(&kustomization, "/resources");
        let mut documents: Vec<Value> = resources
            .flat_map(|file| yaml(&format!("{folder}/{}", file.as_str().unwrap())))
            .collect();
        for map in list(&kustomization, "/configMapGenerator") {
            let literals = list(map, "/literals");
            let data = literals.map(|literal| {
                let (key, value) = literal.as_str().unwrap().split_once('=').unwrap();
                (key.to_owned(), Value::from(value))
            });
            let data = Value::Object(data.collect());
            let metadata = serde_json::json!({ "name": map["name"] });
            let map = serde_json::json!({"kind": "ConfigMap", "metadata": metadata, "data": data});
            documents.push(map);
        }
        Cluster {
            name: "base".to_owned(),
            documents,
        }
    }

    /// The base, and each overlay as `kubectl` puts it together where there is one.
    fn all() -> Vec<Cluster> {
        let mut all = vec![Cluster::base()];
        for overlay in ["local", "s3"] {
            let Some(mut kubectl) = tool("HATEBEAM_KUBECTL", "kubectl") else {
                continue;
            };
            let folder = path(&format!("{FOLDER}/overlays/{overlay}"));
            let rendered = succeeds(kubectl.arg("kustomize").arg(folder));
            let documents = parse_yaml(overlay, &rendered);
            for document in &documents {
                let inside = document["metadata"]["namespace"] == "hatebeam";
                let kind = text(document, "/kind");
                let of_cluster = ["Namespace", "StorageClass"].contains(&kind);
                assert!(inside != of_cluster, "{overlay}: {kind}");
            }
            all.push(Cluster {
                name: overlay.to_owned(),
                documents,
            });
        }
        all
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let documents = self.documents.iter();
        documents.filter(move |document| document["kind"] == kind)
    }

    fn named<'a>(&'a self, kind: &'a str, name: &str) -> &'a Value {
        let found = self
            .of_kind(kind)
            .find(|found| found["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{}: no {kind} {name}", self.name))
    }

    fn pods(&self) -> Vec<Pod<'_>> {
        let owners = self
            .of_kind("Deployment")
            .chain(self.of_kind("StatefulSet"));
        let pods: Vec<Pod<'_>> = owners
            .map(|owner| Pod {
                name: text(owner, "/metadata/name"),
                owner,
                template: &owner["spec"]["template"],
            })
            .collect();
        assert!(pods.len() >= 2, "{}", self.name);
        pods
    }

    /// How the pods of the program start it.
    fn starts(&self) -> BTreeMap<&str, Start> {
        let ours = self.pods().into_iter().filter(Pod::is_ours);
        ours.map(|pod| (pod.name, self.start(&pod))).collect()
    }

    fn start(&self, pod: &Pod<'_>) -> Start {
        let container = pod.container();
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        for from in list(container, "/envFrom") {
            let map = self.named("ConfigMap", text(from, "/configMapRef/name"));
            variables.extend(
                table(map, "/data")
                    .map(|(key, value)| (key.into(), value.as_str().unwrap().into())),
            );
        }
        for variable in list(container, "/env") {
            let field = variable.pointer("/valueFrom/fieldRef/fieldPath");
            let value = match field.and_then(Value::as_str) {
                Some("metadata.name") => format!("{}-0", pod.name),
                Some("status.podIP") => POD_IP.to_owned(),
                Some(other) => panic!("{other}"),
                None => text(variable, "/value").to_owned(),
            };
            variables.insert(text(variable, "/name").to_owned(), value);
        }
        let args = list(container, "/args").map(|arg| {
            let mut arg = arg.as_str().unwrap().to_owned();
            for (name, value) in &variables {
                arg = arg.replace(&format!("$({name})"), value);
            }
            assert!(!arg.contains("$("), "{arg}");
            arg
        });
        Start {
            place: format!("{}: {}", self.name, pod.name),
            args: args.collect(),
            variables: variables.into_iter().collect(),
        }
    }
}

#[test]
fn the_program_understands_every_pod() {
    for cluster in Cluster::all() {
        let starts = cluster.starts();
        let commands = starts.values().map(|start| start.args[0].as_str());
        assert_eq!(
            commands.collect::<BTreeSet<&str>>(),
            BTreeSet::from(["coordinator", "worker"])
        );
        for start in starts.values() {
            start.check();
        }
    }
}

#[test]
fn every_port_is_listened_on_and_every_probe_finds_one() {
    for cluster in Cluster::all() {
        for pod in cluster.pods() {
            let ports = pod.ports();
            if pod.is_ours() {
                let start = cluster.start(&pod);
                let expected = BTreeMap::from([
                    ("grpc", start.port("--listen")),
                    ("metrics", start.port("--metrics")),
                ]);
                assert_eq!(ports, expected, "{}", start.place);
                let contract = match start.args[0].as_str() {
                    "coordinator" => (7800, 9100),
                    _ => (7801, 9101),
                };
                assert_eq!((ports["grpc"], ports["metrics"]), contract);
                let health = &pod.container()["livenessProbe"]["httpGet"];
                assert_eq!(text(health, "/path"), "/healthz");
                assert_eq!(text(health, "/port"), "metrics");
            } else {
                assert_eq!(ports, BTreeMap::from([("s3", GARAGE)]));
            }
            for probe in ["readinessProbe", "livenessProbe"] {
                let probe = &pod.container()[probe];
                let port = probe.pointer("/tcpSocket/port");
                let port = port.or_else(|| probe.pointer("/httpGet/port"));
                match port {
                    Some(port) => assert!(ports.contains_key(port.as_str().unwrap())),
                    None => assert_eq!(text(probe, "/exec/command/0"), "healthcheck"),
                }
            }
        }
    }
}

#[test]
fn services_lead_to_pods_and_pods_call_services() {
    for cluster in Cluster::all() {
        let pods = cluster.pods();
        let mut led = BTreeMap::new();
        for service in cluster.of_kind("Service") {
            let name = text(service, "/metadata/name");
            let selector = &service["spec"]["selector"];
            let mut selected = pods.iter().filter(|pod| selects(selector, pod.labels()));
            let pod = selected.next().unwrap_or_else(|| panic!("{name}"));
            assert!(selected.next().is_none(), "{name}: more than one kind");
            for port in list(service, "/spec/ports") {
                let there = pod.ports()[text(port, "/targetPort")];
                assert_eq!(number(&port["port"]), there, "{name}");
                led.insert((name, there), pod.name);
            }
        }
        for (name, start) in cluster.starts() {
            if let Some(coordinator) = start.variable("HATEBEAM_COORDINATOR") {
                let (scheme, host, port) = uri(coordinator);
                assert_eq!(scheme, "https");
                assert_eq!(led[&(host, port)], "hatebeam-coordinator");
            }
            if let Some(endpoint) = start.variable("HATEBEAM_S3_ENDPOINT") {
                let (_, host, port) = uri(endpoint);
                assert_eq!(led[&(host, port)], "hatebeam-s3", "{name}");
            }
            if let Some(advertised) = start.option("--advertise") {
                // Names of pods are known too late.
                let expected = format!("https://{POD_IP}:{}", start.port("--listen"));
                assert_eq!(advertised, expected);
                let set = cluster.named("StatefulSet", name);
                let service = cluster.named("Service", text(set, "/spec/serviceName"));
                assert_eq!(text(service, "/spec/clusterIP"), "None");
                assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
                assert_eq!(start.option("--name"), Some(format!("{name}-0").as_str()));
            }
        }
    }
}

#[test]
fn pods_are_restricted() {
    for cluster in Cluster::all() {
        let namespace = cluster.of_kind("Namespace").next().unwrap();
        let level = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
        assert_eq!(level, "restricted");
        for account in cluster.of_kind("ServiceAccount") {
            assert_eq!(account["automountServiceAccountToken"], false);
        }
        for pod in cluster.pods() {
            let (spec, container) = (&pod.template["spec"], pod.container());
            let name = pod.name;
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            if let Some(account) = spec.get("serviceAccountName") {
                cluster.named("ServiceAccount", account.as_str().unwrap());
            }
            let of_pod = &spec["securityContext"];
            assert_eq!(of_pod["runAsNonRoot"], true, "{name}");
            assert_eq!(of_pod["runAsUser"], 10001, "that of the image");
            assert_eq!(of_pod["fsGroup"], 10001, "it could not write");
            assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault");
            let expected = serde_json::json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            });
            assert_eq!(container["securityContext"], expected, "{name}");
            for limit in ["/resources/requests/memory", "/resources/limits/memory"] {
                text(container, limit);
            }
        }
    }
}

#[test]
fn workers_go_in_order_and_one_by_one() {
    for cluster in Cluster::all() {
        let coordinator = cluster.named("Deployment", "hatebeam-coordinator");
        assert_eq!(coordinator["spec"]["replicas"], 1);
        assert_eq!(text(coordinator, "/spec/strategy/type"), "Recreate");
        let set = cluster.named("StatefulSet", "hatebeam-worker");
        let template = &set["spec"]["template"];
        let grace = template["spec"]["terminationGracePeriodSeconds"].as_u64();
        assert!(grace >= Some(600), "{grace:?}");
        let budget = cluster.named("PodDisruptionBudget", "hatebeam-worker");
        let selector = &budget["spec"]["selector"]["matchLabels"];
        assert!(selects(selector, &template["metadata"]["labels"]));
        assert!(!selects(
            selector,
            &coordinator["spec"]["template"]["metadata"]["labels"]
        ));
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        for spread in list(template, "/spec/topologySpreadConstraints") {
            let selector = &spread["labelSelector"]["matchLabels"];
            assert!(selects(selector, &template["metadata"]["labels"]));
        }
        for pod in cluster.pods() {
            let selector = &pod.owner["spec"]["selector"]["matchLabels"];
            assert!(selects(selector, pod.labels()), "{}", pod.name);
        }
        // Whoever scales them says how many there are, and nobody else.
        let scaled = cluster.of_kind("ScaledObject").next();
        assert_eq!(scaled.is_some(), set["spec"].get("replicas").is_none());
        if let Some(scaled) = scaled {
            let target = &scaled["spec"]["scaleTargetRef"];
            cluster.named(text(target, "/kind"), text(target, "/name"));
        }
    }
}

#[test]
fn volumes_are_there_and_secrets_hold_what_certs_makes() {
    let dir = tempfile::tempdir().unwrap();
    let mut certs = hatebeam();
    succeeds(certs.args(["certs", "--out"]).arg(dir.path().join("tls")));
    for secret in ["s3-credentials", "garage-rpc"] {
        std::fs::write(dir.path().join(secret), "secret\n").unwrap();
    }
    let secrets = secrets_of(dir.path());
    for cluster in Cluster::all() {
        for pod in cluster.pods() {
            let volumes: BTreeMap<&str, &Value> = list(pod.template, "/spec/volumes")
                .map(|volume| (text(volume, "/name"), volume))
                .chain(
                    list(pod.owner, "/spec/volumeClaimTemplates")
                        .map(|claim| (text(claim, "/metadata/name"), claim)),
                )
                .collect();
            let mounts: BTreeMap<&str, &str> = list(pod.container(), "/volumeMounts")
                .map(|mount| (text(mount, "/name"), text(mount, "/mountPath")))
                .collect();
            let keys = |places: &BTreeMap<&str, &str>| -> BTreeSet<String> {
                places.keys().map(|&key| key.to_owned()).collect()
            };
            let declared: BTreeSet<String> = volumes.keys().map(|&key| key.to_owned()).collect();
            assert_eq!(keys(&mounts), declared, "{}", pod.name);
            let Some(secrets) = &secrets else { continue };
            for volume in volumes.values() {
                let projected = list(volume, "/projected/sources").map(|source| &source["secret"]);
                for secret in projected.chain(volume.get("secret")) {
                    let name = secret.get("secretName").or(secret.get("name")).unwrap();
                    let held = &secrets[name.as_str().unwrap()];
                    for item in list(secret, "/items") {
                        assert!(held.contains(text(item, "/key")), "{name}");
                    }
                }
            }
            if pod.is_ours() {
                let member = pod.component();
                let start = cluster.start(&pod);
                assert_eq!(start.variable("HATEBEAM_TLS"), Some(mounts["tls"]));
                let secret = text(volumes["tls"], "/secret/secretName");
                let files = ["ca.pem", "token"].map(str::to_owned).into_iter();
                let own = [format!("{member}.pem"), format!("{member}-key.pem")];
                assert_eq!(secrets[secret], files.chain(own).collect::<BTreeSet<_>>());
                let credentials = start.variable("AWS_SHARED_CREDENTIALS_FILE").unwrap();
                assert_eq!(credentials, format!("{}/credentials", mounts["s3"]));
                // Both write below one folder, which is a volume: the rest of the file system is read-only.
                assert!(mounts.values().any(|&place| place == "/var/lib/hatebeam"));
                let dir = start.option("--dir").unwrap_or("/var/lib/hatebeam/");
                assert!(dir.starts_with("/var/lib/hatebeam/"), "{dir}");
            }
        }
    }
}

/// The keys of each secret that `make-secrets` prints, where there is a `kubectl` for it.
fn secrets_of(dir: &std::path::Path) -> Option<BTreeMap<String, BTreeSet<String>>> {
    tool("HATEBEAM_KUBECTL", "kubectl")?;
    let mut script = Command::new(path(&format!("{FOLDER}/make-secrets")));
    let printed = succeeds(script.arg(dir));
    let secrets = parse_yaml("make-secrets", &printed);
    let keys = |secret: &Value| {
        table(secret, "/data")
            .map(|(key, _)| key.to_owned())
            .collect()
    };
    let named = secrets.iter().map(|secret| {
        assert_eq!(text(secret, "/kind"), "Secret");
        assert_eq!(text(secret, "/metadata/namespace"), "hatebeam");
        (text(secret, "/metadata/name").to_owned(), keys(secret))
    });
    Some(named.collect())
}

#[test]
fn make_secrets_says_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let script = path(&format!("{FOLDER}/make-secrets"));
    let refused = Command::new(script).arg(dir.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hatebeam certs"));
}

/// Who may call whom, as the policies have it: from, to, port. Peers beyond the cluster are named by what they are.
fn allowed(cluster: &Cluster, direction: &str) -> BTreeSet<(String, String, String)> {
    let pods = cluster.pods();
    let of = |selector: &Value| -> Vec<String> {
        let labels = &selector["matchLabels"];
        let selected = pods.iter().filter(|pod| selects(labels, pod.labels()));
        selected.map(|pod| pod.component().to_owned()).collect()
    };
    let peers = |peer: &Value| -> Vec<String> {
        if let Some(block) = peer.get("ipBlock") {
            let except = list(block, "/except").count();
            assert!(except > 0, "credentials of the machine: {block}");
            return vec!["internet".to_owned()];
        }
        match peer.get("namespaceSelector") {
            Some(namespace) => {
                let name = &namespace["matchLabels"]["kubernetes.io/metadata.name"];
                vec![name.as_str().unwrap().to_owned()]
            }
            None => of(&peer["podSelector"]),
        }
    };
    let (rules, others) = match direction {
        "Ingress" => ("/spec/ingress", "/from"),
        _ => ("/spec/egress", "/to"),
    };
    let mut found = BTreeSet::new();
    for policy in cluster.of_kind("NetworkPolicy") {
        for rule in list(policy, rules) {
            assert!(list(rule, others).count() > 0, "from or to anybody");
            assert!(list(rule, "/ports").count() > 0, "any port");
            for own in of(&policy["spec"]["podSelector"]) {
                for other in list(rule, others).flat_map(peers) {
                    for port in list(rule, "/ports") {
                        let port = match &port["port"] {
                            Value::String(name) => name.clone(),
                            number => number.to_string(),
                        };
                        let (from, to) = match direction {
                            "Ingress" => (other.clone(), own.clone()),
                            _ => (own.clone(), other.clone()),
                        };
                        found.insert((from, to, port));
                    }
                }
            }
        }
    }
    found
}

#[test]
fn nobody_may_call_but_who_must() {
    for cluster in Cluster::all() {
        let deny = cluster.named("NetworkPolicy", "deny-all");
        assert_eq!(deny["spec"]["podSelector"], serde_json::json!({}));
        assert_eq!(
            deny["spec"]["policyTypes"],
            serde_json::json!(["Ingress", "Egress"])
        );
        let has_s3 = cluster.pods().iter().any(|pod| !pod.is_ours());
        let calls = |flows: &[(&str, &str, &str)]| -> BTreeSet<(String, String, String)> {
            let own =
                |&(from, to, port): &(&str, &str, &str)| (from.into(), to.into(), port.into());
            flows.iter().map(own).collect()
        };
        let inside = [
            ("worker", "coordinator", "grpc"),
            ("worker", "worker", "grpc"),
        ];
        let scraped = [
            ("monitoring", "coordinator", "metrics"),
            ("monitoring", "worker", "metrics"),
        ];
        let stored = [
            ("coordinator", "hatebeam-s3", "s3"),
            ("worker", "hatebeam-s3", "s3"),
        ];
        let outside = [
            ("coordinator", "internet", "443"),
            ("worker", "internet", "443"),
        ];
        let mut expected = calls(&inside);
        expected.extend(calls(if has_s3 { &stored } else { &outside }));
        for pod in cluster.pods() {
            expected.extend(calls(&[(pod.component(), "kube-system", "53")]));
        }
        assert_eq!(allowed(&cluster, "Egress"), expected, "{}", cluster.name);
        let mut expected = calls(&inside);
        expected.extend(calls(&scraped));
        expected.extend(has_s3.then(|| calls(&stored)).into_iter().flatten());
        assert_eq!(allowed(&cluster, "Ingress"), expected, "{}", cluster.name);
    }
}

#[test]
fn a_store_that_ignores_conditions_has_one_coordinator() {
    for cluster in Cluster::all() {
        let start = &cluster.starts()["hatebeam-coordinator"];
        let is_garage = start.variable("HATEBEAM_S3_ENDPOINT").is_some();
        assert_eq!(start.has("--single-coordinator"), is_garage);
        if is_garage {
            let pods = cluster.pods();
            let garage = pods.iter().find(|pod| !pod.is_ours()).unwrap();
            let variables: BTreeMap<&str, &str> = list(garage.container(), "/env")
                .map(|variable| (text(variable, "/name"), text(variable, "/value")))
                .collect();
            let bucket = variables["GARAGE_DEFAULT_BUCKET"];
            let store = start.variable("HATEBEAM_STORE").unwrap();
            assert!(store.starts_with(&format!("s3://{bucket}/")), "{store}");
        }
    }
}

#[test]
fn monitors_find_the_ports_they_scrape() {
    let base = Cluster::base();
    let monitors = yaml(&format!("{FOLDER}/components/monitoring/monitors.yaml"));
    let mut scraped = BTreeSet::new();
    for monitor in &monitors {
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let pods = base.pods();
        let found: Vec<&Pod<'_>> = pods
            .iter()
            .filter(|pod| selects(selector, pod.labels()))
            .collect();
        assert_eq!(found.len(), 1, "{monitor}");
        let port = text(monitor, "/spec/podMetricsEndpoints/0/port");
        assert!(found[0].ports().contains_key(port));
        scraped.insert(found[0].name.to_owned());
    }
    assert_eq!(scraped.len(), base.pods().len());
}

#[test]
fn every_manifest_is_used() {
    let mut used = BTreeSet::new();
    for kustomization in files_below(FOLDER, "kustomization.yaml") {
        let folder = kustomization.strip_suffix("/kustomization.yaml").unwrap();
        let file = &yaml(&kustomization)[0];
        for other in list(file, "/resources").chain(list(file, "/components")) {
            let other = other.as_str().unwrap();
            let whole = path(&format!("{folder}/{other}"));
            assert!(whole.exists(), "{kustomization}: {other}");
            used.insert(format!("{folder}/{other}"));
        }
    }
    let all = files_below(FOLDER, ".yaml").into_iter();
    let lost: Vec<String> = all
        .filter(|file| !file.ends_with("kustomization.yaml") && !used.contains(file))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn manifests_fit_the_schemas_of_kubernetes() {
    let check = "import json, sys, kubernetes_validate as k\n\
                 for document in json.loads(sys.argv[1]):\n    \
                     try: k.validate(document, '1.31', strict=True)\n    \
                     except k.SchemaNotFoundError: print(document['kind'])\n";
    for cluster in Cluster::all().into_iter().skip(1) {
        let Some(mut python) = tool("HATEBEAM_SCHEMAS", "python-with-schemas") else {
            return;
        };
        let documents = serde_json::to_string(&cluster.documents).unwrap();
        let unknown = succeeds(python.args(["-c", check, &documents]));
        // Those of KEDA and of the Prometheus operator, whose schemas are their own.
        for kind in unknown.lines() {
            assert!(["ScaledObject", "PodMonitor"].contains(&kind), "{kind}");
        }
        let mut wrong = cluster.documents[0].clone();
        wrong["spce"] = Value::from("wrong");
        let wrong = Value::Array(vec![wrong]).to_string();
        let refused = Command::new(python.get_program())
            .args(["-c", check, &wrong])
            .output();
        assert!(!refused.unwrap().status.success(), "it checks nothing");
    }
}
