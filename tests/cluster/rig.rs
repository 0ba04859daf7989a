//! A cluster of real processes on the loopback.

use crate::hosts::{COORDINATOR, Hosts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process that ends with the test.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(done.success(), "kill {signal} {pid}");
    }

    /// kill -9, and gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// The exit code, once it ends.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end: {}", self.log());
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for a word in its log.
    #[track_caller]
    pub(crate) fn says(&self, word: &str) {
        let begun = Instant::now();
        while !self.log().contains(word) {
            assert!(begun.elapsed() < PATIENCE, "no {word:?} in {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be stopped, or gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a cluster keeps its runs.
pub(crate) struct Place {
    pub(crate) store: String,
    pub(crate) flags: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// A cluster.
pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    /// Hosts of their own for the coordinator and the workers, rather than one for all.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) place: Place,
    pub(crate) port: u16,
    pub(crate) lost_after: f64,
    pub(crate) coordinator_flags: Vec<String>,
    /// So that tests side by side do not meet at its usual address.
    pub(crate) wants_no_dashboard: bool,
    pub(crate) workers: BTreeMap<String, Process>,
    pub(crate) coordinator: Option<Process>,
    started: usize,
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn hatebeam() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatebeam-under-test"));
    quiet(&mut command);
    command
}

/// Whatever the one who tests has set is not heeded.
fn quiet(command: &mut Command) {
    command.stdin(Stdio::null());
    command
        .env("HATEBEAM_CONFIG", "none")
        .env_remove("HATEBEAM_TOKEN")
        .env_remove("HATEBEAM_LOG")
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
}

impl Rig {
    /// With a folder for an object store, and nobody there yet.
    pub(crate) fn new() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store").display().to_string();
        let place = Place {
            store,
            flags: Vec::new(),
            env: Vec::new(),
        };
        Rig {
            dir,
            hosts: None,
            place,
            port: free_port(),
            lost_after: 10.0,
            coordinator_flags: Vec::new(),
            wants_no_dashboard: true,
            workers: BTreeMap::new(),
            coordinator: None,
            started: 0,
        }
    }

    pub(crate) fn start(&mut self, mut command: Command) -> Process {
        self.started += 1;
        let log = self.dir.path().join(format!("log-{}", self.started));
        let file = File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        command.envs(self.place.env.clone());
        let child = command.spawn().unwrap();
        Process { child, log }
    }

    /// The program, on the host of this name.
    fn program(&self, host: &str) -> Command {
        let Some(hosts) = &self.hosts else {
            return hatebeam();
        };
        let mut command = hosts.command(host);
        command.arg(env!("CARGO_BIN_EXE_hatebeam-under-test"));
        quiet(&mut command);
        command
    }

    fn coordinator_command(&self, port: u16) -> Command {
        let mut command = self.program(COORDINATOR);
        command.args(["coordinator", "--store", &self.place.store]);
        let has_own = self
            .coordinator_flags
            .iter()
            .any(|flag| flag == "--dashboard");
        if self.wants_no_dashboard && !has_own {
            command.args(["--dashboard", "none"]);
        }
        command
            .args(&self.place.flags)
            .args(&self.coordinator_flags);
        match &self.hosts {
            None => command.args(["--listen", &format!("127.0.0.1:{port}")]),
            Some(_) => command.args(["--insecure-bind", "--listen", &format!("0.0.0.0:{port}")]),
        };
        command.args(["--lost-after", &self.lost_after.to_string()]);
        command
    }

    /// Starts a coordinator, and waits until it listens.
    pub(crate) fn start_coordinator(&mut self) {
        let command = self.coordinator_command(self.port);
        let coordinator = self.start(command);
        coordinator.says("listening on");
        self.coordinator = Some(coordinator);
    }

    /// Starts another coordinator with the same store.
    pub(crate) fn start_rival(&mut self) -> (Process, u16) {
        let port = free_port();
        let command = self.coordinator_command(port);
        (self.start(command), port)
    }

    pub(crate) fn start_worker(&mut self, name: &str, flags: &[&str]) {
        let dir = self.dir.path().join(format!("{name}-{}", self.started));
        let mut command = self.program(name);
        command.args(["worker", "--store", &self.place.store]);
        command.args(&self.place.flags);
        command.args(["--name", name, "--dir"]).arg(&dir);
        command.args(["--coordinator", &self.uri()]).args(flags);
        if let Some(hosts) = &self.hosts {
            let address = format!("{}:7801", hosts.address(name));
            command.args(["--insecure-bind", "--listen", &address]);
        }
        let worker = self.start(command);
        self.workers.insert(name.to_owned(), worker);
    }

    pub(crate) fn uri(&self) -> String {
        let hosts = self.hosts.as_ref();
        let host = hosts.map_or("127.0.0.1".to_owned(), |hosts| hosts.address(COORDINATOR));
        format!("http://{host}:{}", self.port)
    }

    /// Runs a client's command to its end.
    pub(crate) fn client(&self, args: &[&str]) -> Output {
        let mut command = self.program(COORDINATOR);
        command.args(args).args(["--coordinator", &self.uri()]);
        command.output().unwrap()
    }

    pub(crate) fn submit(&self, args: &[&str]) -> Value {
        let output = self.client(&[&["submit", "--json"], args].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// How the only run stands.
    pub(crate) fn status(&self) -> Option<Value> {
        let output = self.client(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        status["runs"].get(0).cloned()
    }

    /// That the folder has no tables but those that the manifest leads to.
    #[track_caller]
    pub(crate) fn assert_swept(&self) {
        let run = Path::new(&self.place.store).join("runs");
        let run = fs::read_dir(run).unwrap().next().unwrap().unwrap().path();
        let manifest = fs::read(run.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let mut named = BTreeSet::new();
        let lists = manifest["depths"].as_array().unwrap().iter();
        for list in lists.filter_map(|depth| depth["tables"]["key"].as_str()) {
            let tables: Value = serde_json::from_slice(&fs::read(run.join(list)).unwrap()).unwrap();
            let keys = tables.as_array().unwrap().iter();
            named.extend(keys.map(|table| run.join(table["key"].as_str().unwrap())));
        }
        let mut found = BTreeSet::new();
        for depth in fs::read_dir(run.join("frontier")).unwrap() {
            let objects = fs::read_dir(depth.unwrap().path()).unwrap();
            found.extend(objects.map(|object| object.unwrap().path()));
        }
        assert_eq!(found, named);
    }

    /// What all that are there have said.
    pub(crate) fn logs(&self) -> String {
        let all = self.coordinator.iter().chain(self.workers.values());
        all.map(Process::log).collect::<Vec<_>>().join("\n\n")
    }

    /// Watches the only run to its end: its depths, and what it came to.
    #[track_caller]
    pub(crate) fn watch(&self) -> Watched {
        let output = self.client(&["watch", "--json", "--quiet"]);
        let watched = Watched::of(&output);
        assert!(
            output.status.success(),
            "{}\n{}\n{:?}",
            String::from_utf8_lossy(&output.stderr),
            self.logs(),
            watched.end
        );
        watched
    }
}

/// The depths of a run, and what it came to.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) depths: BTreeMap<u64, Value>,
    pub(crate) end: Value,
}

impl Watched {
    pub(crate) fn of(output: &Output) -> Watched {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let mut lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let end = lines.pop().unwrap_or_default();
        let depth = |line: Value| (line["depth"].as_u64().unwrap(), line);
        Watched {
            depths: lines.into_iter().map(depth).collect(),
            end,
        }
    }

    /// What one machine by itself comes to.
    pub(crate) fn alone(args: &[&str], dir: &Path) -> Watched {
        let mut command = hatebeam();
        command
            .args(["run", "--json", "--quiet", "--state"])
            .arg(dir);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Watched::of(&output)
    }

    /// That two are the same, digest by digest, and all else that does not hang on the time of day.
    #[track_caller]
    pub(crate) fn assert_same(&self, alone: &Watched) {
        assert!(!alone.depths.is_empty());
        for (depth, expected) in &alone.depths {
            let found = self.depths.get(depth);
            let found = found.unwrap_or_else(|| panic!("no depth {depth}: {:?}", self.end));
            for key in [
                "digest",
                "wells",
                "best_lines",
                "best_eval",
                "median_eval",
                "worst_eval",
                "children",
            ] {
                assert_eq!(found[key], expected[key], "{key} of depth {depth}");
            }
        }
        for key in ["best_lines", "pieces", "replay", "depth"] {
            assert_eq!(self.end[key], alone.end[key], "{key}");
        }
    }
}
