//! A wire between a controller and the API server that can be cut.

use std::net::SocketAddr;

use kube::Config;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards connections until it is cut.
pub(crate) struct Wire {
    server: String,
    address: SocketAddr,
    forwarding: JoinSet<()>,
}

impl Wire {
    /// A wire to the API server of a configuration, and the configuration for this end of it.
    pub(crate) async fn to(mut config: Config) -> (Self, Config) {
        let url = &config.cluster_url;
        let server = format!("{}:{}", url.host().unwrap(), url.port_u16().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        config.cluster_url = format!("https://{address}").parse().unwrap();
        let mut wire = Self { server, address, forwarding: JoinSet::new() };
        wire.forward(listener);
        (wire, config)
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) async fn cut(&mut self) {
        self.forwarding.shutdown().await;
    }

    /// Lets connections through again.
    pub(crate) async fn mend(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.forward(listener);
    }

    fn forward(&mut self, listener: TcpListener) {
        let server = self.server.clone();
        self.forwarding.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let server = server.clone();
                connections.spawn(async move {
                    if let Ok(mut there) = TcpStream::connect(server).await {
                        let _ = copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
    }
}
