//! A connection to one server, or to all nodes of a cluster.

use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, Pipeline, PushInfo, RedisError,
    RedisFuture, RedisResult, ServerErrorKind, TlsCertificates, Value, cmd,
};
use tokio::time::sleep;

/// The wait before a command is sent again that a node has sent elsewhere, or that waits for other keys of its slot.
const AGAIN: Duration = Duration::from_millis(10);

/// What a store connects to.
pub enum StoreServer {
    One(Client),
    /// Some nodes of a cluster, which know the others.
    Cluster(Vec<ConnectionInfo>, Option<TlsCertificates>),
}

#[derive(Clone)]
pub enum StoreConnection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

fn cluster(
    nodes: &[ConnectionInfo],
    certificates: Option<&TlsCertificates>,
) -> ClusterClientBuilder {
    // With retries the library would repeat commands that may have been carried out.
    let cluster = ClusterClientBuilder::new(nodes.to_vec()).retries(0);
    match certificates {
        Some(certificates) => cluster.certs(certificates.clone()),
        None => cluster,
    }
}

impl StoreServer {
    /// A cluster of which these nodes are known.
    ///
    /// # Errors
    /// When the nodes have different users or databases, or one is at a Unix socket.
    pub fn cluster(
        nodes: Vec<ConnectionInfo>,
        certificates: Option<TlsCertificates>,
    ) -> RedisResult<Self> {
        cluster(&nodes, certificates.as_ref()).build()?;
        Ok(Self::Cluster(nodes, certificates))
    }

    /// Opens a connection. `told` gets what the server says by itself.
    pub async fn open(
        &self,
        (connecting, answer): (Duration, Duration),
        told: impl Fn(PushInfo) -> Result<(), RedisError> + Send + Sync + 'static,
    ) -> RedisResult<StoreConnection> {
        match self {
            Self::One(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(connecting))
                    .set_response_timeout(Some(answer))
                    .set_push_sender(told);
                let opened = client.get_multiplexed_async_connection_with_config(&config);
                Ok(StoreConnection::One(opened.await?))
            }
            Self::Cluster(nodes, certificates) => {
                let cluster = cluster(nodes, certificates.as_ref())
                    .connection_timeout(connecting)
                    .response_timeout(answer)
                    .push_sender(told);
                let opened = cluster.build()?.get_async_connection().await?;
                Ok(StoreConnection::Cluster(opened))
            }
        }
    }
}

impl StoreConnection {
    pub async fn subscribe(&mut self, channels: &[String]) -> RedisResult<()> {
        match self {
            Self::One(connection) => connection.subscribe(channels).await,
            Self::Cluster(connection) => {
                // Each at the node at which it can be ended, all in flight at once.
                let subscribed = channels.iter().map(|channel| {
                    let mut connection = connection.clone();
                    async move { connection.subscribe(channel).await }
                });
                try_join_all(subscribed).await.map(drop)
            }
        }
    }

    pub async fn unsubscribe(&mut self, channel: String) -> RedisResult<()> {
        match self {
            Self::One(connection) => connection.unsubscribe(channel).await,
            Self::Cluster(connection) => connection.unsubscribe(channel).await,
        }
    }
}

/// Sends a command to the node that has its keys. A node that has not, while a slot moves, has not carried it out. New keys of
/// one name have to wait until the slot has moved.
async fn send(connection: &mut ClusterConnection, command: &Cmd) -> RedisResult<Value> {
    let mut node = None;
    loop {
        let is_asked = node.is_some();
        let sent = match node.take() {
            None => connection.req_packed_command(command).await,
            Some(node) => ask(connection, command, node).await,
        };
        let error = match sent.and_then(Value::extract_error) {
            Err(error) => error,
            sent => return sent,
        };
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Ask) => {
                node = error.redirect_node().and_then(|(at, _)| by_address(at));
                if node.is_none() {
                    sleep(AGAIN).await;
                }
            }
            // A node that the library does not know yet: it has no slot.
            ErrorKind::ClusterConnectionNotFound if is_asked => sleep(AGAIN).await,
            // The library has learnt the new place by then.
            ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::TryAgain) => {
                sleep(AGAIN).await;
            }
            _ => return Err(error),
        }
    }
}

/// Sends a command to the node to which the slot of its keys is about to move.
async fn ask(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: SingleNodeRoutingInfo,
) -> RedisResult<Value> {
    let mut asking = Pipeline::new();
    asking
        .add_command(cmd("ASKING"))
        .add_command(command.clone());
    let sent = connection.route_pipeline(asking, 0, 2, node).await;
    sent.map(|mut sent| sent.pop().unwrap_or(Value::Nil))
}

fn by_address(node: &str) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = node.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

impl ConnectionLike for StoreConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => Box::pin(send(connection, command)),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(commands, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
