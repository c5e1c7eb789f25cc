//! What a client learns.

use std::fmt;
use std::io;
use std::net::IpAddr;

use nix::errno::Errno;

/// What came of one question. Prints as `ext saw 192.168.50.11` or as `no answer: timed out`, and compares with that.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// Somebody answered.
    Answer {
        /// Who.
        server: String,
        /// Where the server saw the question come from.
        source: IpAddr,
    },
    /// Nobody did.
    Silence(Silence),
}

/// Why nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing came back in time.
    TimedOut,
    /// Somebody said that nobody listens.
    Refused,
    /// There is no route, or somebody on the way said so. TCP often misses that here, and times out.
    Unreachable,
    /// The connection was reset.
    Reset,
    /// A filter of the client's own host refused the packet.
    Forbidden,
    /// Anything else.
    Failed(io::ErrorKind),
}

impl Reply {
    /// Which source the server saw, if one did.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        match self {
            Reply::Answer { source, .. } => Some(*source),
            Reply::Silence(_) => None,
        }
    }

    /// Who answered, if anybody did.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        match self {
            Reply::Answer { server, .. } => Some(server),
            Reply::Silence(_) => None,
        }
    }

    /// Whether anybody answered.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.server().is_some()
    }
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        // The kernel's own time-out comes with a number, that of a socket with none of them.
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ECONNREFUSED) => Silence::Refused,
            Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN | Errno::EACCES) => Silence::Unreachable,
            Some(Errno::ECONNRESET | Errno::EPIPE) => Silence::Reset,
            Some(Errno::EPERM) => Silence::Forbidden,
            Some(Errno::EAGAIN | Errno::ETIMEDOUT | Errno::EINPROGRESS) => Silence::TimedOut,
            _ if error.kind() == io::ErrorKind::TimedOut => Silence::TimedOut,
            _ => Silence::Failed(error.kind()),
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silence::TimedOut => f.write_str("timed out"),
            Silence::Refused => f.write_str("refused"),
            Silence::Unreachable => f.write_str("unreachable"),
            Silence::Reset => f.write_str("reset"),
            Silence::Forbidden => f.write_str("forbidden"),
            Silence::Failed(kind) => write!(f, "{kind}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Answer { server, source } => write!(f, "{server} saw {source}"),
            Reply::Silence(silence) => write!(f, "no answer: {silence}"),
        }
    }
}

/// As it prints: a test that fails shows it.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl PartialEq<str> for Reply {
    fn eq(&self, other: &str) -> bool {
        let text = self.to_string();
        text == other
    }
}

impl PartialEq<&str> for Reply {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<String> for Reply {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}
