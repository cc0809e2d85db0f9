//! What goes to the server: round trips, keys, contents, and TLS.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use mcpbolt::io::{RedisOptions, RedisStore};
use mcpbolt::store::{HolderId, LogBounds, SealedStore, SharedStore, StoreFault, StoreKeys, When};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::away::every_verb;
use crate::servers::{Program, Server};
use crate::stores::{LONG, open, patient};

/// The commands that clients send, as the server sees them, while `work` runs.
fn commands(server: &Server, runtime: &Runtime, work: impl Future<Output = ()>) -> Vec<String> {
    let mut monitor = StdUnixStream::connect(server.socket()).unwrap();
    monitor.write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(monitor).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "+OK");
    runtime.block_on(work);
    server.raw("ECHO the-end");
    let lines = lines.map(Result::unwrap);
    let seen = lines.take_while(|line| !line.contains("the-end"));
    // Commands within scripts are marked.
    seen.filter(|line| !line.contains(" lua]")).collect()
}

/// One command a verb, whose keys lie in one slot of a cluster.
#[test]
fn each_verb_is_one_round_trip() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let server = Server::start(program, &[]);
        let store = open(&server.url());
        // The first use of a script tells the server its text.
        runtime.block_on(every_verb(&store)).unwrap();
        let seen = commands(&server, &runtime, async {
            every_verb(&store).await.unwrap()
        });
        let names: Vec<_> = seen
            .iter()
            .map(|line| line.split('"').nth(1).unwrap().to_uppercase())
            // The topic that is dropped is unsubscribed from sometime.
            .filter(|name| name != "UNSUBSCRIBE")
            .collect();
        let expected = [
            "SET",
            "EVALSHA",
            "GET",
            "EVALSHA",
            "SET",
            "DEL",
            "EVALSHA",
            "EVALSHA",
            "SUBSCRIBE",
            "PUBLISH",
            "EVALSHA",
            "EVALSHA",
            "EVALSHA",
            "EVALSHA",
            "SET",
        ];
        assert_eq!(names, expected, "{seen:#?}");
        for line in seen {
            let words = line.split('"').skip(1).step_by(2);
            let keys: Vec<_> = words.filter(|word| word.starts_with("mcpbolt:")).collect();
            assert!(!keys.is_empty(), "{line}");
            let tags: Vec<_> = keys
                .iter()
                .map(|key| key.split(['{', '}']).nth(1))
                .collect();
            assert!(
                tags.iter().all(|tag| tag.is_some() && *tag == tags[0]),
                "{line}"
            );
        }
    }
}

/// Neither a name nor a content of a sealed store is anywhere in the server's memory or traffic.
#[test]
fn a_sealed_store_shows_neither_names_nor_contents() {
    let runtime = Runtime::new().unwrap();
    let server = Server::start(Program::Valkey, &[]);
    let open = |keys: StoreKeys| SealedStore::new(Arc::new(open(&server.url())), Arc::new(keys));
    let store = open(StoreKeys::new([1; 32], [2; 32]));
    let bounds = LogBounds {
        entries: 9,
        bytes: 999,
        keep: LONG,
    };
    let me = HolderId::random().unwrap();
    let seen = commands(&server, &runtime, async {
        store
            .put("alice-1", b"alice-2", LONG, When::Always)
            .await
            .unwrap();
        store
            .append("alice-3", b"alice-4", bounds, 0)
            .await
            .unwrap();
        store.lease("alice-5", me, b"alice-6", LONG).await.unwrap();
        store.once("alice-7", LONG).await.unwrap();
        drop(store.subscribe("alice-8").await.unwrap());
        store.publish("alice-8").await.unwrap();
    });
    assert!(seen.len() >= 6);
    assert!(!seen.iter().any(|line| line.contains("alice")), "{seen:#?}");
    runtime.block_on(async {
        let blob = store.get("alice-1").await.unwrap().unwrap();
        assert_eq!(&blob.bytes[..], b"alice-2");
        // A new key: first all open with it, then it seals.
        let next = open(StoreKeys::new([1; 32], [3; 32]).also_opens([2; 32]));
        assert_eq!(next.get("alice-1").await.unwrap().unwrap(), blob);
        let stranger = open(StoreKeys::new([1; 32], [4; 32]));
        let error = stranger.get("alice-1").await.unwrap_err();
        assert_eq!(error.fault(), StoreFault::Unreadable);
        assert!(!error.to_string().contains("alice"), "{error}");
        let error = stranger.read("alice-3", None, 9).await.unwrap_err();
        assert_eq!(error.fault(), StoreFault::Unreadable);
        let nameless = open(StoreKeys::new([9; 32], [2; 32]));
        assert_eq!(nameless.get("alice-1").await.unwrap(), None);
    });
}

#[test]
fn the_connection_may_be_encrypted() {
    let runtime = Runtime::new().unwrap();
    let server = Server::start(Program::Valkey, &["--requirepass", "s3cret"]);
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = server.socket();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(async move {
                let mut plain = UnixStream::connect(socket).await.unwrap();
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
                }
            });
        }
    });
    let url = format!("rediss://:s3cret@localhost:{port}");
    let trusting = RedisOptions {
        root_certificates: vec![cert.pem().into_bytes()],
        ..patient()
    };
    runtime.block_on(async {
        every_verb(&RedisStore::open(&url, &trusting).unwrap())
            .await
            .unwrap();
        let store = RedisStore::open(&url, &RedisOptions::default()).unwrap();
        let error = store.ping().await.unwrap_err();
        assert_eq!(error.fault(), StoreFault::Unavailable, "{error}");
    });
}
