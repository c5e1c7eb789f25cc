//! A controller's admin port, as far as the commands ask it.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// Answers `/snapshot`, and nothing else, for as long as the test process lives.
pub(crate) struct Snapshots {
    address: SocketAddr,
    answer: Arc<Mutex<Value>>,
}

impl Snapshots {
    /// On an address of this machine that is not a loopback one: the API server refuses to go there for anybody.
    pub(crate) fn serve(answer: Value) -> Self {
        let listener = TcpListener::bind((own_address(), 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let answer = Arc::new(Mutex::new(answer));
        let shared = Arc::clone(&answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let asked = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let (status, body) = if asked.starts_with("GET /snapshot ") {
                    ("200 OK", shared.lock().expect("nobody panics").to_string())
                } else {
                    ("404 Not Found", String::new())
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n{body}"
                );
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { address, answer }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it answers from now on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.answer.lock().expect("nobody panics"));
    }
}

/// The address that this machine would speak to others from. Nothing is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
    socket
        .connect(("203.0.113.1", 9))
        .expect("this test needs a network interface beside the loopback one, with a route");
    socket.local_addr().expect("it is connected").ip()
}
