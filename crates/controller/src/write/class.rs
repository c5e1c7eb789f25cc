//! What the API server's answer to a write means for what to do about it.

use std::time::Duration;

use egret_brain::WriteError;
use kube::core::Status;
use kube::core::response::StatusDetails;

/// How long an API server that has too much to do is left alone if it does not say: its own fairness says one second.
const OVERLOADED: Duration = Duration::from_secs(1);

/// The class of an error. A conflict comes without the current object.
pub(crate) fn of(error: &kube::Error) -> WriteError {
    match error {
        kube::Error::Api(status) => of_status(status),
        error => WriteError::Transient { message: egret_daemon::chain(error), retry_after: None },
    }
}

fn of_status(status: &Status) -> WriteError {
    let message = status.message.clone();
    let asked = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
    let retry_after = asked.map(|seconds| Duration::from_secs(seconds.into()));
    // Policies and webhooks choose their own codes.
    if is_admission(&message) {
        return WriteError::Denied { message };
    }
    match status.code {
        401 | 403 => WriteError::Denied { message },
        404 => WriteError::Gone,
        409 => WriteError::Conflict { current: None },
        422 if is_failed_patch(status) => WriteError::Conflict { current: None },
        429 => WriteError::Transient { message, retry_after: retry_after.or(Some(OVERLOADED)) },
        400..500 => WriteError::Invalid { message },
        _ => WriteError::Transient { message, retry_after },
    }
}

fn is_admission(message: &str) -> bool {
    let denied = message.contains("denied request") || message.contains("denied the request");
    denied && (message.contains("ValidatingAdmissionPolicy") || message.contains("admission webhook"))
}

/// A patch that does not fit the object, its `test` above all, is no fault of the object. An API server (1.36, seen) says
/// only that it rejected the request because of an error in it, and names no object and no field.
fn is_failed_patch(status: &Status) -> bool {
    let named = |details: &StatusDetails| {
        !details.name.is_empty() || details.causes.iter().any(|cause| !cause.field.is_empty())
    };
    !status.details.as_ref().is_some_and(named)
}
