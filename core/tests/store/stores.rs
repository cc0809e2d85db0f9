//! The stores that a law is tried on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use mcpbolt::store::{LocalStore, SealedStore, SharedStore, StoreKeys};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub type Store = Arc<dyn SharedStore>;

/// How long anything may take that happens at once, or when a lease has lapsed, on a machine that is busy.
pub const SOON: Duration = Duration::from_secs(60);
/// Longer than any law takes.
pub const LONG: Duration = Duration::from_secs(600);

/// One store, to which any number of processes connect.
pub struct World {
    pub name: &'static str,
    /// Where other processes find it, if they can.
    pub url: Option<String>,
    connect: Box<dyn Fn() -> Store>,
}

impl World {
    fn new(name: &'static str, connect: impl Fn() -> Store + 'static) -> Self {
        Self {
            name,
            url: None,
            connect: Box::new(connect),
        }
    }

    /// The same store, sealed.
    fn sealed(self, name: &'static str) -> Self {
        let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
        let connect = self.connect;
        Self::new(name, move || {
            Arc::new(SealedStore::new(connect(), keys.clone()))
        })
    }

    /// A connection of its own.
    pub fn connect(&self) -> Store {
        (self.connect)()
    }

    /// Runs `work` in as many tasks as there are clients, each with a connection of its own and a number. Returns what
    /// each has returned.
    pub async fn clients<T, F>(&self, count: usize, work: impl Fn(usize, Store) -> F) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for number in 0..count {
            tasks.spawn(work(number, self.connect()));
        }
        tasks.join_all().await
    }
}

/// Tries a law on every store.
pub fn on_every_store(law: impl AsyncFn(&World)) {
    let local = LocalStore::new();
    let in_memory = move || -> Store { Arc::new(local.clone()) };
    let mut worlds = vec![
        World::new("memory", in_memory.clone()),
        World::new("memory, sealed", in_memory).sealed("memory, sealed"),
    ];
    #[cfg(feature = "redis")]
    worlds.extend(on_servers());
    let runtime = Runtime::new().unwrap();
    for world in worlds {
        eprintln!("{}", world.name);
        let tried = runtime.block_on(async { timeout(LONG, law(&world)).await });
        tried.unwrap_or_else(|_| panic!("the law does not end on {}", world.name));
    }
}

/// The servers, each with a connection of its own for each that connects.
#[cfg(feature = "redis")]
fn on_servers() -> Vec<World> {
    use crate::servers::{Program, Server};

    let on = |name, program| {
        let server = Server::start(program, &[]);
        let url = server.url();
        let connect = move || -> Store { Arc::new(open(&server.url())) };
        World {
            url: Some(url),
            ..World::new(name, connect)
        }
    };
    vec![
        on_a_cluster(),
        on("Valkey", Program::Valkey),
        on("Redis", Program::Redis),
        on("Valkey, sealed", Program::Valkey).sealed("Valkey, sealed"),
    ]
}

/// A cluster, which all tests that run at once share, each with names of its own.
#[cfg(feature = "redis")]
fn on_a_cluster() -> World {
    use std::sync::{Mutex, Weak};

    use crate::servers::{Cluster, Program};

    static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    let cluster = shared.upgrade().unwrap_or_else(|| {
        let cluster = Arc::new(Cluster::start(Program::Valkey));
        *shared = Arc::downgrade(&cluster);
        cluster
    });
    let options = mcpbolt::io::RedisOptions {
        prefix: format!("{}:", fresh("test")),
        ..patient()
    };
    let connect = move || -> Store {
        let url = cluster.url(&[0, 1]);
        Arc::new(mcpbolt::io::RedisStore::open(&url, &options).unwrap())
    };
    World::new("a cluster of Valkey", connect)
}

/// A connection to the store of a server.
#[cfg(feature = "redis")]
pub fn open(url: &str) -> mcpbolt::io::RedisStore {
    mcpbolt::io::RedisStore::open(url, &patient()).unwrap()
}

/// Options for a machine that is busy.
#[cfg(feature = "redis")]
pub fn patient() -> mcpbolt::io::RedisOptions {
    mcpbolt::io::RedisOptions {
        timeout: SOON,
        connect_timeout: SOON,
        ..mcpbolt::io::RedisOptions::default()
    }
}

/// A name that no other test uses.
pub fn fresh(kind: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{kind} {}", NEXT.fetch_add(1, Relaxed))
}

/// Numbers that a seed determines, which is printed.
pub struct Chance(u64);

impl Chance {
    pub fn new() -> Self {
        let given = std::env::var("MCPBOLT_SEED").ok();
        let seed = given.map_or_else(fresh_seed, |seed| seed.parse().unwrap());
        eprintln!("MCPBOLT_SEED={seed}");
        Self(seed)
    }

    /// Other numbers, which the same seed determines.
    pub fn split(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_nanos() as u64
}
