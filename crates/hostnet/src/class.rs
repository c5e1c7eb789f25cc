//! What to do about an error.

use std::io;

use nix::errno::Errno;

use crate::netlink::Fault;

/// What to do about an error. Back-off, reason and metric label come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Try again.
    Transient,
    /// Something is not as it was observed: observe again.
    Conflict,
    /// This kernel, or this node, cannot do it.
    Invalid,
    /// Egret lacks the right to.
    Denied,
    /// Egret is wrong.
    Bug,
}

impl Class {
    /// Its name in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Bug => "bug",
        }
    }

    pub(crate) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied,
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Self::Invalid,
            _ => Self::Transient,
        }
    }

    pub(crate) fn of_errno(errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => Self::Denied,
            // A link that went, a router that is not on the link any more, what somebody else put there or took away.
            Errno::EEXIST
            | Errno::ENOENT
            | Errno::ESRCH
            | Errno::EBUSY
            | Errno::ENODEV
            | Errno::ENXIO
            | Errno::EADDRNOTAVAIL
            | Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::EHOSTUNREACH => Self::Conflict,
            Errno::EINVAL | Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT => Self::Invalid,
            _ => Self::Transient,
        }
    }

    pub(crate) fn of_fault(fault: Fault) -> Self {
        match fault {
            Fault::Refused(errno) => Self::of_errno(errno),
            Fault::Unanswered(_) | Fault::Unsteady => Self::Transient,
            Fault::Truncated(_) => Self::Bug,
        }
    }
}
