//! What every TCP socket is set to.

use std::time::Duration;

use tokio::net::TcpStream;

/// Silence after which the system asks whether the peer is there, and how long it may be silent
/// then, in all.
const SILENCE: Duration = Duration::from_secs(60);

/// Small messages leave at once: without it an answer in two writes waits for the other side's
/// delayed acknowledgement. A peer that is gone without a word is found by the system, also when
/// nothing is written (R-WSK-03). One that only takes nothing, which to the system is the same, has
/// at least `stall` to do so.
pub fn prepare(stream: &TcpStream, stall: Duration) {
    // A socket that knows none of these serves as well.
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

    /// R-WSK-03: the system is no less patient with who reads nothing than the engine is.
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
