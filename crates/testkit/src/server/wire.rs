//! A wire between a client and the API server that can be cut.

use std::io;
use std::net::SocketAddr;

use kube::Config;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards connections until it is cut or dropped.
#[derive(Debug)]
#[must_use = "dropping it cuts it"]
pub struct Wire {
    server: String,
    address: SocketAddr,
    forwarding: JoinSet<()>,
}

impl Wire {
    /// A wire to the API server of a configuration, and the configuration for this end of it.
    ///
    /// # Errors
    /// Nobody can listen at this end.
    pub async fn to(mut config: Config) -> io::Result<(Self, Config)> {
        let url = &config.cluster_url;
        let (host, port) = url.host().zip(url.port_u16()).expect("a test server has both in its address");
        let server = format!("{host}:{port}");
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        config.cluster_url = format!("https://{address}").parse().expect("an address is part of a legal URL");
        let mut wire = Self { server, address, forwarding: JoinSet::new() };
        wire.forward(listener);
        Ok((wire, config))
    }

    /// Ends all connections, and refuses new ones.
    pub async fn cut(&mut self) {
        self.forwarding.shutdown().await;
    }

    /// Lets connections through again.
    ///
    /// # Errors
    /// Somebody else listens there by now.
    pub async fn mend(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.forward(listener);
        Ok(())
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
