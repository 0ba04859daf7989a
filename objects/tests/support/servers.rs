//! S3 servers as child processes. Each server has one bucket and its own port. Dropping a [`Server`] kills its process.
//!
//! `scripts/s3-servers.sh` sets environment variables that contain the paths of the programs: of Garage itself, and of
//! a Python interpreter with moto. If the variable for a server is not set, the tests that require this server print a
//! message and are skipped.

use hatebeam_objects::Options;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BUCKET: &str = "hatebeam-test";
const KEY_ID: &str = "GK0123456789abcdef01234567";
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const START: Duration = Duration::from_secs(60);
const MOTO: &str = include_str!("moto.py");

/// A server with an empty bucket.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    region: &'static str,
    dir: TempDir,
}

impl Server {
    /// Starts Garage, an object store. Prints a message and returns `None` if `HATEBEAM_GARAGE` is not set.
    pub(crate) fn garage() -> Option<Server> {
        let program = program("HATEBEAM_GARAGE")?;
        Some(Server::start("garage", |dir, port| {
            let config = dir.join("garage.toml");
            fs::write(&config, garage_config(dir, port)).unwrap();
            let mut command = Command::new(&program);
            command.arg("-c").arg(config);
            command.args(["server", "--single-node", "--default-bucket"]);
            command.env("GARAGE_DEFAULT_ACCESS_KEY", KEY_ID);
            command.env("GARAGE_DEFAULT_SECRET_KEY", SECRET);
            command.env("GARAGE_DEFAULT_BUCKET", BUCKET);
            command
        }))
    }

    /// Starts moto, a mock that stores objects in memory and does not check credentials. Prints a message and
    /// returns `None` if `HATEBEAM_MOTO` is not set.
    pub(crate) fn moto() -> Option<Server> {
        let python = program("HATEBEAM_MOTO")?;
        let server = Server::start("us-east-1", |_, port| {
            let mut command = Command::new(&python);
            command.args(["-c", MOTO, "-H", "127.0.0.1", "-p", &port.to_string()]);
            command
        });
        let answer = server.plain_request("PUT", "").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Some(server)
    }

    fn start(region: &'static str, command: impl Fn(&Path, u16) -> Command) -> Server {
        // Another process may take the port before the server does.
        for _ in 0..3 {
            let dir = tempfile::tempdir().unwrap();
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
            let log = File::create(dir.path().join("log")).unwrap();
            let mut command = command(dir.path(), address.port());
            command.stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log);
            let child = command.spawn().unwrap();
            let credentials = format!(
                "[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"
            );
            fs::write(dir.path().join("credentials"), credentials).unwrap();
            let mut server = Server {
                child,
                address,
                region,
                dir,
            };
            if server.answers() {
                return server;
            }
            eprintln!(
                "{}",
                fs::read_to_string(server.dir.path().join("log")).unwrap()
            );
        }
        panic!("the server did not start in three attempts");
    }

    /// Waits for a response. Returns `false` if the server exits or does not respond within [`START`].
    fn answers(&mut self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < START {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            match self.plain_request("GET", "") {
                Ok(answer) if answer.starts_with("HTTP/1.1") => return true,
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        false
    }

    /// Sends a request for the bucket without credentials, and returns the response.
    pub(crate) fn plain_request(&self, method: &str, query: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(START))?;
        write!(
            stream,
            "{method} /{BUCKET}{query} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn location(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    pub(crate) fn credentials_file(&self) -> PathBuf {
        self.dir.path().join("credentials")
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            endpoint: Some(format!("http://{}", self.address)),
            region: Some(self.region.to_owned()),
            path_style: true,
            credentials_file: Some(self.credentials_file()),
            ..Options::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(variable: &str) -> Option<PathBuf> {
    let program = std::env::var_os(variable).filter(|path| !path.is_empty());
    if program.is_none() {
        println!("skipped: {variable} is not set (scripts/s3-servers.sh finds the servers)");
    }
    program.map(PathBuf::from)
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn garage_config(dir: &Path, port: u16) -> String {
    let dir = dir.display();
    let (rpc, secret) = (free_port(), SECRET);
    format!(
        r#"
metadata_dir = "{dir}/meta"
data_dir = "{dir}/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:{rpc}"
rpc_public_addr = "127.0.0.1:{rpc}"
rpc_secret = "{secret}"

[s3_api]
s3_region = "garage"
api_bind_addr = "127.0.0.1:{port}"
root_domain = ".s3.localhost"
"#
    )
}
