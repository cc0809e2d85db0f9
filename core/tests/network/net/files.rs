//! The files of Unix sockets, and certificates.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{ConnectOptions, ServeOptions, TlsOptions};
use serde_json::json;

use crate::net::{Folder, Served, server};

#[test]
fn a_socket_file_is_its_owners_and_goes_with_its_server() {
    let folder = Folder::new();
    let path = folder.join("s");
    let served = Served::begin(&folder.address("s"), ServeOptions::default());
    let file = fs::metadata(&path).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    served.end();
    assert!(!path.exists());
}

#[test]
fn a_file_left_behind_is_replaced_and_a_live_one_is_not() {
    let folder = Folder::new();
    let path = folder.join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the file stays behind its socket");
    let served = Served::begin(&folder.address("s"), ServeOptions::default());
    let another = server(&Default::default());
    let error = another.serve(folder.address("s")).start().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    let client = served.client(Client::builder("test", "1"));
    let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
    assert_eq!(echo.unwrap().text(), "x");
}

#[test]
fn what_is_no_socket_stays() {
    let folder = Folder::new();
    let path = folder.join("s");
    fs::write(&path, "precious").unwrap();
    let error = server(&Default::default())
        .serve(folder.address("s"))
        .start()
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

/// A certificate for `localhost` that vouches for itself: both files, and the certificate.
#[cfg(feature = "tls")]
fn certificate(folder: &Folder) -> (TlsOptions, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let options = TlsOptions {
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
        clients: None,
    };
    let certificate = made.cert.pem();
    fs::write(&options.certificate, &certificate).unwrap();
    fs::write(&options.key, made.signing_key.serialize_pem()).unwrap();
    (options, certificate.into_bytes())
}

/// R-HTP-07: behind TLS, a client of WebSocket, and of HTTP where it is built in, is served if it
/// trusts the certificate.
#[cfg(feature = "tls")]
#[test]
fn a_server_behind_tls_is_whom_it_shows() {
    let folder = Folder::new();
    let (tls, certificate) = certificate(&folder);
    let options = ServeOptions {
        tls: Some(tls),
        ..ServeOptions::default()
    };
    let served = Served::begin("https://localhost:0/mcp", options);
    let http = served.address().to_string();
    let mut addresses = vec![http.replacen("https", "wss", 1)];
    if cfg!(feature = "http-client") {
        addresses.push(http);
    }
    for address in addresses {
        let address = address.parse().unwrap();
        let open = |root_certificates| {
            let options = ConnectOptions {
                root_certificates,
                ..ConnectOptions::default()
            };
            block_on(Client::builder("test", "1").open(&address, options))
        };
        let client = open(vec![certificate.clone()]).unwrap();
        let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
        assert_eq!(echo.unwrap().text(), "x", "{address}");
        assert!(open(Vec::new()).is_err(), "{address}");
        let error = open(vec![b"no PEM".to_vec()]).unwrap_err();
        assert!(error.to_string().contains("no certificate"), "{error}");
    }
}

/// TLS is spoken with the server, and only the proxy gets its credentials.
#[cfg(all(feature = "tls", feature = "http-client"))]
#[test]
fn a_proxy_opens_a_tunnel_to_a_server_behind_tls() {
    use std::io::{BufRead as _, BufReader, Write as _, copy};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use mcpbolt::io::http::{HttpClientOptions, Proxy};

    let folder = Folder::new();
    let (tls, certificate) = certificate(&folder);
    let options = ServeOptions {
        tls: Some(tls),
        ..ServeOptions::default()
    };
    let served = Served::begin("https://localhost:0/mcp", options);
    let url = served.address().to_string();
    let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap();
    let server = format!("localhost:{port}");
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy_url = format!("http://me:secret@{}", proxy.local_addr().unwrap());
    let asked = server.clone();
    thread::spawn(move || {
        for client in proxy.incoming() {
            let mut client = client.unwrap();
            let mut head = Vec::new();
            for line in BufReader::with_capacity(1, client.try_clone().unwrap()).lines() {
                match line.unwrap() {
                    end if end.is_empty() => break,
                    line => head.push(line.to_ascii_lowercase()),
                }
            }
            assert_eq!(head[0], format!("connect {asked} http/1.1"));
            assert!(head.contains(&"proxy-authorization: basic bwu6c2vjcmv0".into()));
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let there = TcpStream::connect(&asked).unwrap();
            for (from, to) in [(&client, &there), (&there, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    let options = HttpClientOptions {
        proxy: Proxy::At(proxy_url),
        root_certificates: vec![certificate],
        ..HttpClientOptions::default()
    };
    let client = block_on(Client::builder("test", "1").http(&url, options)).unwrap();
    let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
    assert_eq!(echo.unwrap().text(), "x");
}

/// R-AUX-03: a client that shows a certificate which the server's own authority vouches for is known
/// by it; one that shows none, or another, is not served.
#[cfg(feature = "tls")]
#[test]
fn a_client_is_known_by_its_certificate() {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    use mcpbolt::connection::Principal;
    use mcpbolt::policy::{Credentials, Policy};
    use mcpbolt::server::{Arguments, Context, Server, Tool};
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    let folder = Folder::new();
    let (mut tls, own) = certificate(&folder);
    let made = || rcgen::generate_simple_self_signed(["alice".to_owned()]).unwrap();
    let (alice, eve) = (made(), made());
    let vouching = folder.join("clients.pem");
    fs::write(&vouching, alice.cert.pem()).unwrap();
    tls.clients = Some(vouching);
    let known = alice.cert.der().to_vec();
    let policy = Policy::new().verifier(move |credentials| match credentials {
        Credentials::Certificate(shown) if *shown == known => Ok(Principal::new("alice")),
        other => Err(format!("{other:?} is not known")),
    });
    let who = |_: Arguments, context: Context| async move {
        context.principal().unwrap_or("nobody").to_owned()
    };
    let server = Server::builder("vault", "1")
        .actions(true)
        .policy(policy)
        .tool(Tool::new("who.am_i"), who);
    let options = ServeOptions {
        tls: Some(tls),
        ..ServeOptions::default()
    };
    let serving = server
        .build()
        .unwrap()
        .serve("https://localhost:0/mcp")
        .options(options)
        .start()
        .unwrap();
    let port: u16 = serving
        .address()
        .to_string()
        .split([':', '/'])
        .nth(4)
        .unwrap()
        .parse()
        .unwrap();
    let ask = |shown: Option<&rcgen::CertifiedKey<rcgen::KeyPair>>| -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&own).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => config.with_no_client_auth(),
            Some(shown) => {
                let key = shown.signing_key.serialize_pem();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                let chain = vec![shown.cert.der().clone()];
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(("localhost", port))?;
        stream.set_read_timeout(Some(crate::net::PATIENCE))?;
        let mut stream = StreamOwned::new(tls, stream);
        let body = r#"{"action":"who.am_i","params":{}}"#;
        let len = body.len();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask(Some(&alice)).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("alice"),
        "{answer}"
    );
    assert!(ask(None).is_err());
    assert!(ask(Some(&eve)).is_err());
    serving.stop();
    serving.wait();
}

/// A server over HTTPS that asks for certificates of `known`, and its own certificate in PEM. The files are in `folder`.
#[cfg(feature = "tls")]
fn asking_for(folder: &Folder, known: &rcgen::CertifiedKey<rcgen::KeyPair>) -> (Served, Vec<u8>) {
    let (mut tls, own) = certificate(folder);
    let vouching = folder.join("clients.pem");
    fs::write(&vouching, known.cert.pem()).unwrap();
    tls.clients = Some(vouching);
    let options = ServeOptions {
        tls: Some(tls),
        ..ServeOptions::default()
    };
    (Served::begin("https://localhost:0/mcp", options), own)
}

/// R-AUX-03: the engine's own client shows its certificate, on HTTP and on a WebSocket; without one,
/// or with one that nobody vouches for, it is told why it is not served.
#[cfg(feature = "tls")]
#[test]
fn a_client_shows_its_certificate() {
    use mcpbolt::io::ClientCertificate;

    // Its alert, where that comes before the end of the connection, which takes it along at times.
    const REFUSED: &[&str] = &["fatal alert", "reset", "pipe", "closed", "broke off"];
    let folder = Folder::new();
    let made = || rcgen::generate_simple_self_signed(["alice".to_owned()]).unwrap();
    let (alice, eve) = (made(), made());
    let (served, own) = asking_for(&folder, &alice);
    let http = served.address().to_string();
    let shown = |certificate: &str, key: &str| ClientCertificate {
        certificates: certificate.into(),
        key: key.into(),
    };
    let of = |one: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        shown(&one.cert.pem(), &one.signing_key.serialize_pem())
    };
    let mixed = shown(&alice.cert.pem(), &eve.signing_key.serialize_pem());
    assert!(!format!("{mixed:?}").contains("PRIVATE"));
    for address in [http.replacen("https", "wss", 1), http] {
        let open = |certificate: Option<ClientCertificate>| {
            let options = ConnectOptions {
                root_certificates: vec![own.clone()],
                certificate,
                ..ConnectOptions::default()
            };
            block_on(Client::builder("test", "1").open(&address.parse().unwrap(), options))
        };
        let client = open(Some(of(&alice))).unwrap();
        let echo = client.call_tool("echo", &json!({"text": "x"})).wait();
        assert_eq!(echo.unwrap().text(), "x", "{address}");
        for (certificate, why) in [
            (None, REFUSED),
            (Some(of(&eve)), REFUSED),
            (
                Some(mixed.clone()),
                &["the key is not that of the client's certificate"],
            ),
            (
                Some(shown("", &alice.signing_key.serialize_pem())),
                &["the client's certificate is not a PEM certificate"],
            ),
            (
                Some(shown(&alice.cert.pem(), "no key")),
                &["the key of the client's certificate is not a PEM private key"],
            ),
        ] {
            let error = open(certificate).unwrap_err().to_string();
            let told = why
                .iter()
                .any(|why| error.to_lowercase().contains(&why.to_lowercase()));
            assert!(told, "{address}: {error}, but none of {why:?}");
        }
    }
}

/// R-AUX-03: the certificate of a client is for the server, and not for a proxy on the way, even if it asks for one.
#[cfg(feature = "tls")]
#[test]
fn a_proxy_is_shown_no_certificate() {
    use mcpbolt::io::ClientCertificate;
    use mcpbolt::io::http::{HttpClientOptions, Proxy};

    let folder = Folder::new();
    let alice = rcgen::generate_simple_self_signed(["alice".to_owned()]).unwrap();
    let (proxy, own) = asking_for(&folder, &alice);
    let options = HttpClientOptions {
        proxy: Proxy::At(proxy.address().to_string().replace("/mcp", "")),
        root_certificates: vec![own],
        certificate: Some(ClientCertificate {
            certificates: alice.cert.pem().into(),
            key: alice.signing_key.serialize_pem().into(),
        }),
        ..HttpClientOptions::default()
    };
    let client = Client::builder("test", "1").http("http://far.invalid/mcp", options);
    let error = block_on(client).unwrap_err().to_string();
    // Its alert, where that comes before the end of the connection.
    let is_refused = ["alert", "reset", "pipe", "closed", "broke off"]
        .iter()
        .any(|why| error.to_lowercase().contains(why));
    assert!(is_refused, "{error}");
}

#[test]
fn https_needs_a_certificate_and_says_so() {
    let error = server(&Default::default())
        .serve("https://localhost:0/mcp")
        .start()
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
