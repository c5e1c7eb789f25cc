//! A wire between a client and the API server that can be cut.

use kube::Config;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards connections until it is cut.
pub(crate) struct Wire {
    listener: Option<TcpListener>,
    server: String,
    address: std::net::SocketAddr,
    forwarding: JoinSet<()>,
}

impl Wire {
    /// A wire to the API server of a configuration, and the configuration for this end of it. Nothing is forwarded yet.
    pub(crate) async fn to(mut config: Config) -> (Self, Config) {
        let url = &config.cluster_url;
        let server = format!("{}:{}", url.host().unwrap(), url.port_u16().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        config.cluster_url = format!("https://{address}").parse().unwrap();
        (Self { listener: Some(listener), server, address, forwarding: JoinSet::new() }, config)
    }

    /// Lets connections through from now on.
    pub(crate) async fn mend(&mut self) {
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => TcpListener::bind(self.address).await.unwrap(),
        };
        let server = self.server.clone();
        self.forwarding.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let server = server.clone();
                connections.spawn(async move {
                    if let Ok(mut there) = TcpStream::connect(server).await {
                        let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) async fn cut(&mut self) {
        self.forwarding.shutdown().await;
    }
}
