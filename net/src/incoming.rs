//! A server's incoming connections, with a limit on the number of open connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

/// Maximum number of open connections per server. It suffices for every worker of the largest cluster and for the same
/// number of clients. Further connections are closed immediately, so that clients cannot exhaust the memory or the
/// file descriptors of the process.
pub(crate) const MAX_CONNECTIONS: usize = 8192;

/// A stream of incoming connections. It closes a new connection immediately if too many connections are open.
#[derive(Debug)]
pub struct Incoming {
    connections: TcpIncoming,
    permits: Arc<Semaphore>,
}

impl Incoming {
    pub(crate) fn new(connections: TcpIncoming, max: usize) -> Incoming {
        Incoming {
            connections,
            permits: Arc::new(Semaphore::new(max)),
        }
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.connections.local_addr()
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let stream = match ready!(Pin::new(&mut self.connections).poll_next(cx)) {
                Some(Ok(stream)) => stream,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            match Arc::clone(&self.permits).try_acquire_owned() {
                Ok(permit) => {
                    let _permit = permit;
                    return Poll::Ready(Some(Ok(Connection { stream, _permit })));
                }
                Err(_) => tracing::warn!("closed connection: too many connections are open"),
            }
        }
    }
}

/// A connection. It counts towards the connection limit until it is dropped.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;

    #[tokio::test]
    async fn connections_over_the_limit_are_closed() {
        let tcp = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut incoming = Incoming::new(tcp, 2);
        let address = incoming.local_addr().unwrap();
        let (accepted, mut connections) = tokio::sync::mpsc::channel(8);
        tokio::spawn(async move {
            while let Some(Ok(mut connection)) = incoming.next().await {
                connection.write_all(b"!").await.unwrap();
                accepted.send(connection).await.unwrap();
            }
        });
        let connect = async || {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let is_accepted = stream.read_u8().await.is_ok();
            (stream, is_accepted)
        };
        let (_first, is_first) = connect().await;
        let (_second, is_second) = connect().await;
        let (_third, is_third) = connect().await;
        assert!(is_first && is_second && !is_third);
        drop(connections.recv().await);
        let (_fourth, is_fourth) = connect().await;
        assert!(is_fourth);
    }
}
