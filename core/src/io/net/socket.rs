//! Options of every TCP socket.

use std::time::Duration;

use tokio::net::TcpStream;

/// Idle time after which the system probes the peer, and total time that the peer may leave probes
/// unanswered.
const SILENCE: Duration = Duration::from_secs(60);

/// Sets the options of a TCP socket. `TCP_NODELAY` sends small messages at once; otherwise an answer of
/// two writes waits for the other side's delayed acknowledgement. Keep-alive lets the system detect a
/// peer that disappeared, even while nothing is written (R-WSK-03). On Linux, a peer that accepts no
/// data, which to the system looks the same, has at least `stall` to do so.
pub fn prepare(stream: &TcpStream, stall: Duration) {
    // A socket that does not support an option works without it.
    let _ = stream.set_nodelay(true);
    #[cfg(not(target_os = "linux"))]
    let _ = stall;
    #[cfg(unix)]
    {
        use rustix::net::sockopt;
        let _ = sockopt::set_socket_keepalive(stream, true);
        #[cfg(target_os = "linux")]
        {
            let _ = sockopt::set_tcp_keepidle(stream, SILENCE);
            let _ = sockopt::set_tcp_keepintvl(stream, SILENCE / 4);
            let millis = SILENCE
                .max(stall)
                .as_millis()
                .try_into()
                .unwrap_or(u32::MAX);
            let _ = sockopt::set_tcp_user_timeout(stream, millis);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_user_timeout;
    use tokio::net::TcpListener;

    /// R-WSK-03: the system waits for a peer that reads nothing at least as long as the engine does.
    #[tokio::test]
    async fn who_may_stall_for_long_is_not_given_up_by_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        for (stall, expected) in [(1, 60_000), (600, 600_000)] {
            prepare(&stream, Duration::from_secs(stall));
            assert_eq!(tcp_user_timeout(&stream).unwrap(), expected);
        }
    }
}
