//! The controller's connection to the API server: what goes over it is seen, and its watches can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use egret_api::{Kind, ObjectKey};
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use hyper::body::{Body, Frame};
use kube::client::Body as Sent;
use serde_json::Value;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Layer, Service};

use super::objects::{is_the_servers_own, version_of};
use crate::world::object::key_of;

/// What an API server says of a watch whose place in history it has forgotten.
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;

/// One controller's connection.
#[derive(Clone, Default)]
pub(super) struct Wire(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Requests that have no answer yet; watches count until their answer begins.
    under_way: usize,
    /// Grows with everything that happens.
    activity: u64,
    attempts: Vec<ObjectKey>,
    /// The version of each object that a watch has brought.
    delivered: BTreeMap<ObjectKey, u64>,
    /// The kinds whose watch has brought everything there was.
    listed: BTreeSet<Kind>,
    /// A Lease was written.
    leads: bool,
    /// Ends the watches.
    cut: CancellationToken,
}

impl Wire {
    /// Whether there is no request without an answer, and how much has happened until now.
    pub(super) fn quiet_at(&self) -> Option<u64> {
        self.with(|seen| (seen.under_way == 0).then_some(seen.activity))
    }

    /// Whether the controller leads and has been told everything there is of each of `kinds`.
    pub(super) fn knows(&self, kinds: &[Kind]) -> bool {
        self.with(|seen| seen.leads && kinds.iter().all(|kind| seen.listed.contains(kind)))
    }

    /// Whether the watches of `kinds` have brought exactly these versions.
    pub(super) fn has_delivered(&self, kinds: &[Kind], stored: &BTreeMap<ObjectKey, u64>) -> bool {
        let of = |versions: &BTreeMap<ObjectKey, u64>| -> BTreeMap<ObjectKey, u64> {
            versions.iter().filter(|(key, _)| kinds.contains(&key.kind)).map(|(key, at)| (key.clone(), *at)).collect()
        };
        self.with(|seen| of(&seen.delivered) == of(stored))
    }

    /// The objects of the writes that were tried since this was last asked.
    pub(super) fn take_attempts(&self) -> Vec<ObjectKey> {
        self.with(|seen| std::mem::take(&mut seen.attempts))
    }

    /// The last of them, if there are more than `most`.
    pub(super) fn too_many_attempts(&self, most: usize) -> Option<Vec<String>> {
        let last = |all: &[ObjectKey]| all.iter().rev().take(6).rev().map(ToString::to_string).collect();
        self.with(|seen| (seen.attempts.len() > most).then(|| last(&seen.attempts)))
    }

    /// The server has forgotten where the watches are.
    pub(super) fn cut(&self) {
        self.with(|seen| {
            std::mem::take(&mut seen.cut).cancel();
            seen.listed.clear();
            seen.delivered.clear();
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self, request: &Request<Sent>) -> UnderWay {
        let method = request.method();
        let writes = *method != Method::GET;
        let key = key_of_path(request.uri().path()).filter(|_| writes);
        self.with(|seen| {
            seen.under_way += 1;
            seen.activity += 1;
            seen.attempts.extend(key);
        });
        UnderWay(self.clone())
    }

    /// A line of a watch.
    fn deliver(&self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Value>(line) else { return };
        let object = &event["object"];
        let end = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let kind = object["apiVersion"].as_str().zip(object["kind"].as_str());
        let kind = kind.and_then(|(version, kind)| Kind::of(version, kind));
        self.with(|seen| {
            seen.activity += 1;
            if event["type"] == "BOOKMARK" {
                seen.listed.extend(kind.filter(|_| end));
            } else if let Some(key) = key_of(object).filter(|key| !is_the_servers_own(key)) {
                if event["type"] == "DELETED" {
                    seen.delivered.remove(&key);
                } else {
                    seen.delivered.insert(key, version_of(object));
                }
            }
        });
    }
}

/// A request without an answer.
struct UnderWay(Wire);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.with(|seen| {
            seen.under_way -= 1;
            seen.activity += 1;
        });
    }
}

impl<S> Layer<S> for Wire {
    type Service = Tapped<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Tapped { inner, wire: self.clone() }
    }
}

/// A client's connection with a [`Wire`] in it.
pub(super) struct Tapped<S> {
    inner: S,
    wire: Wire,
}

impl<S, B> Service<Request<Sent>> for Tapped<S>
where
    S: Service<Request<Sent>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: Send + 'static,
{
    type Response = Response<Tap<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let under_way = self.wire.begin(&request);
        let wire = self.wire.clone();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let leads = *request.method() != Method::GET && request.uri().path().contains("/leases");
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            if leads && response.status().is_success() {
                wire.with(|seen| seen.leads = true);
            }
            let watch = (watches && response.status().is_success()).then(|| {
                let cut = wire.with(|seen| seen.cut.clone());
                Watch { wire, line: Vec::new(), cut: Box::pin(cut.cancelled_owned()), ended: false }
            });
            let under_way = watch.is_none().then_some(under_way);
            Ok(response.map(|body| Tap { body, watch, _under_way: under_way }))
        })
    }
}

/// The body of an answer.
pub(super) struct Tap<B> {
    body: B,
    watch: Option<Watch>,
    _under_way: Option<UnderWay>,
}

struct Watch {
    wire: Wire,
    /// The line that has begun.
    line: Vec<u8>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
}

impl Watch {
    fn take(&mut self, bytes: &Bytes) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.wire.deliver(&self.line);
                self.line.clear();
            }
        }
    }
}

impl<B> Body for Tap<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, watch, .. } = &mut *self;
        let Some(watch) = watch else { return Pin::new(body).poll_frame(context) };
        if watch.ended {
            return Poll::Ready(None);
        }
        if Future::poll(watch.cut.as_mut(), context).is_ready() {
            watch.ended = true;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(format!("{EXPIRED}\n"))))));
        }
        let frame = ready!(Pin::new(body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            watch.take(bytes);
        }
        Poll::Ready(frame)
    }
}

/// The object that a path speaks of, if it is one of a kind of ours.
fn key_of_path(path: &str) -> Option<ObjectKey> {
    let parts: Vec<&str> = path.split('/').collect();
    let kind_at = |kind: &Kind| parts.iter().position(|part| part.strip_suffix('s') == Some(kind.as_str()));
    let (kind, at) = Kind::ALL.into_iter().find_map(|kind| Some((kind, kind_at(&kind)?)))?;
    let name = parts.get(at + 1)?;
    let namespace = (at >= 2 && parts[at - 2] == "namespaces").then(|| parts[at - 1].to_owned());
    Some(ObjectKey { kind, namespace, name: (*name).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_object_and_one_of_another_kind_does_not() {
        for (path, expected) in [
            ("/api/v1/nodes/n1/status", Some("node/n1")),
            ("/apis/k8s.ovn.org/v1/egressips/a", Some("egressip/a")),
            ("/apis/k8s.ovn.org/v1/namespaces/n/egressservices/a/status", Some("egressservice/n/a")),
            ("/apis/cloud.network.openshift.io/v1/cloudprivateipconfigs", None),
            ("/apis/events.k8s.io/v1/namespaces/default/events", None),
            ("/apis/coordination.k8s.io/v1/namespaces/egret/leases/egret-controller", None),
        ] {
            let key = key_of_path(path).map(|key| key.to_string());
            assert_eq!(key.as_deref(), expected, "{path}");
        }
    }
}
