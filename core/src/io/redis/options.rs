//! How a server of Redis or Valkey is reached.

use std::fmt;
use std::time::Duration;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, RedisResult, TlsCertificates,
};

use super::connection::StoreServer;

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

/// What is at an address, and the address as texts may show it.
pub fn server(url: &str, options: &RedisOptions) -> Result<(StoreServer, String), StoreError> {
    let misuse = |why: String| StoreError::new(StoreFault::Misuse, why);
    let cluster = nodes(url);
    let is_cluster = cluster.is_some();
    let nodes = cluster.unwrap_or_else(|| vec![url.to_owned()]).into_iter();
    let nodes = nodes.map(|url| Ok(settled(url.into_connection_info()?, options)));
    // The error of the library might quote the password.
    let nodes = nodes.collect::<RedisResult<Vec<_>>>().map_err(|error| {
        misuse(format!(
            "the address of the store is not valid ({}); write redis://HOST:PORT/DATABASE, rediss://… for TLS, \
             redis+unix:///PATH, or redis+cluster://HOST:PORT,HOST:PORT",
            error.category()
        ))
    })?;
    if options.prefix.contains(['{', '}']) {
        return Err(misuse(format!(
            "the prefix {:?} of the store contains a brace",
            options.prefix
        )));
    }
    let shown: Vec<_> = nodes.iter().map(|node| node.addr().to_string()).collect();
    let has_tls = |node: &ConnectionInfo| matches!(node.addr(), ConnectionAddr::TcpTls { .. });
    let certificates = match nodes.iter().all(has_tls) {
        true => Some(certificates(options)),
        false if !options.root_certificates.is_empty() || options.certificate.is_some() => {
            let why = "certificates are given, but the address of the store is not one of rediss";
            return Err(misuse(why.into()));
        }
        false => None,
    };
    let server = match (&nodes[..], certificates) {
        ([node], Some(certificates)) if !is_cluster => {
            Client::build_with_tls(node.clone(), certificates).map(StoreServer::One)
        }
        ([node], None) if !is_cluster => Client::open(node.clone()).map(StoreServer::One),
        (_, certificates) => StoreServer::cluster(nodes, certificates),
    };
    let server = server.map_err(|error| misuse(format!("the store cannot be set up: {error}")))?;
    Ok((server, shown.join(",")))
}

/// The addresses in one of a cluster: with the same scheme, user and database. `None` if it is one of a single server.
fn nodes(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.strip_suffix("+cluster")?;
    let (user, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (hosts, database) = rest.split_at(end);
    let at = if user.is_empty() { "" } else { "@" };
    let node = |host| format!("{scheme}://{user}{at}{host}{database}");
    Some(hosts.split(',').map(node).collect())
}

fn certificates(options: &RedisOptions) -> TlsCertificates {
    let roots =
        (!options.root_certificates.is_empty()).then(|| options.root_certificates.join(&b'\n'));
    TlsCertificates {
        client_tls: options.certificate.clone().map(|own| ClientTlsConfig {
            client_cert: own.certificates,
            client_key: own.key,
        }),
        root_cert: roots,
    }
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

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn the_nodes_of_a_cluster_have_one_user_and_one_scheme() {
        for (url, all) in [
            ("valkey+cluster://a", &["valkey://a"][..]),
            (
                "redis+cluster://a:1,[::1]:2",
                &["redis://a:1", "redis://[::1]:2"],
            ),
            (
                "rediss+cluster://u:p%40@a:1,b:2/0?x=a,b",
                &["rediss://u:p%40@a:1/0?x=a,b", "rediss://u:p%40@b:2/0?x=a,b"],
            ),
        ] {
            assert_eq!(nodes(url).unwrap(), all);
        }
        for one in ["redis://a:1/2", "redis://a+cluster://b", "redis+cluster"] {
            assert_eq!(nodes(one), None);
        }
    }
}
