//! How a server of Redis or Valkey is reached.

use std::fmt;
use std::time::Duration;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, TlsCertificates,
};

use crate::io::ClientCertificate;
use crate::store::{StoreError, StoreFault};

/// Options of a [`RedisStore`](super::RedisStore). `Debug` omits the password.
#[derive(Clone)]
pub struct RedisOptions {
    /// What all keys and channels begin with; `mcpbolt:` by default. Servers of different programs that share a database
    /// have prefixes of their own, and the rights of their users (ACL) may be restricted to them.
    pub prefix: String,
    /// The user, instead of the one of the URL.
    pub user: Option<String>,
    /// The password, instead of the one of the URL, which other programs might show or log.
    pub password: Option<String>,
    /// Certificates in PEM that are trusted instead of those of the system; for `rediss`.
    pub root_certificates: Vec<Vec<u8>>,
    /// The certificate that is shown to the server; for `rediss`.
    pub certificate: Option<ClientCertificate>,
    /// Longest time that a verb may take, connecting included; 2 s by default.
    pub timeout: Duration,
    /// Longest time in which a connection must be established; 1 s by default.
    pub connect_timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "mcpbolt:".into(),
            user: None,
            password: None,
            root_certificates: Vec::new(),
            certificate: None,
            timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("user", &self.user)
            .field("has_password", &self.password.is_some())
            .field("root_certificates", &self.root_certificates.len())
            .field("certificate", &self.certificate)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// A client for an address, and the address as texts may show it.
pub fn client(url: &str, options: &RedisOptions) -> Result<(Client, String), StoreError> {
    let misuse = |why: String| StoreError::new(StoreFault::Misuse, why);
    // The error of the library might quote the password.
    let info = url.into_connection_info().map_err(|error| {
        misuse(format!(
            "the address of the store is not valid ({}); write redis://HOST:PORT/DATABASE, rediss://… for TLS, or \
             redis+unix:///PATH",
            error.category()
        ))
    })?;
    if options.prefix.contains(['{', '}']) {
        return Err(misuse(format!(
            "the prefix {:?} of the store contains a brace",
            options.prefix
        )));
    }
    let shown = info.addr().to_string();
    let info = settled(info, options);
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        if !options.root_certificates.is_empty() || options.certificate.is_some() {
            let why = "certificates are given, but the address of the store is not one of rediss";
            return Err(misuse(why.into()));
        }
        let client = Client::open(info).map_err(|error| misuse(error.category().into()))?;
        return Ok((client, shown));
    }
    let roots =
        (!options.root_certificates.is_empty()).then(|| options.root_certificates.join(&b'\n'));
    let certificate = options.certificate.clone().map(|own| ClientTlsConfig {
        client_cert: own.certificates,
        client_key: own.key,
    });
    let tls = TlsCertificates {
        client_tls: certificate,
        root_cert: roots,
    };
    let client = Client::build_with_tls(info, tls)
        .map_err(|error| misuse(format!("TLS to the store cannot be set up: {error}")))?;
    Ok((client, shown))
}

fn settled(info: ConnectionInfo, options: &RedisOptions) -> ConnectionInfo {
    let mut settings = info
        .redis_settings()
        .clone()
        // Answers and what is published come on one connection.
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("mcpbolt", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &options.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &options.password {
        settings = settings.set_password(password);
    }
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    info.set_redis_settings(settings).set_tcp_settings(tcp)
}
