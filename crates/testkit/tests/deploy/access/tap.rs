//! Between the controller and the API server: sees what is denied, and lets somebody else be faster.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::runtime::Handle;

/// How the first state of a kind is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// As part of the watch.
    Streamed,
    /// By a list of its own, for the API server refuses to stream it.
    Plain,
}

/// A request, in the words of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) verb: String,
    pub(super) group: String,
    /// With its subresource.
    pub(super) resource: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}/{}", self.verb, self.group, self.resource)
    }
}

impl Asked {
    fn of(method: &Method, uri: &Uri) -> Self {
        let steps: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let (group, rest) = match steps.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => panic!("{uri} is no path of an object"),
        };
        let rest = if let ["namespaces", _, rest @ ..] = rest { rest } else { rest };
        let (resource, named) = match rest {
            [resource] => ((*resource).to_owned(), false),
            [resource, _] => ((*resource).to_owned(), true),
            [resource, _, subresource] => (format!("{resource}/{subresource}"), true),
            _ => panic!("{uri} is no path of an object"),
        };
        let watch = uri.query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
        let verb = match (method.as_str(), named) {
            ("GET", true) => "get",
            ("GET", false) => {
                if watch {
                    "watch"
                } else {
                    "list"
                }
            }
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            _ => panic!("the controller never sends {method}"),
        };
        Self { verb: verb.to_owned(), group: group.to_owned(), resource }
    }
}

/// What happens to the requests of one controller.
#[derive(Clone)]
pub(super) struct Tap(Arc<Inner>);

struct Inner {
    listing: Listing,
    administrator: Client,
    /// Created by somebody else just before the controller creates it.
    rival: Value,
    outrun: Mutex<BTreeSet<String>>,
    denied: Mutex<Option<Asked>>,
}

impl Tap {
    pub(super) fn new(listing: Listing, administrator: Client, rival: Value) -> Self {
        let (outrun, denied) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { listing, administrator, rival, outrun, denied }))
    }

    /// What was denied first.
    pub(super) fn denied(&self) -> Option<Asked> {
        self.0.denied.lock().expect("nobody panics with it").clone()
    }

    /// The client, with this between it and the API server.
    pub(super) fn between(&self, client: Client) -> Client {
        let tap = self.clone();
        let pass = move |request| {
            let (tap, client) = (tap.clone(), client.clone());
            async move { tap.pass(&client, request).await }
        };
        Client::new(tower::service_fn(pass), "default")
    }

    /// The same for somebody in another network: connections are made where `runtime` is.
    pub(super) fn between_from(&self, runtime: &Handle, client: Client) -> Client {
        let (tap, runtime) = (self.clone(), runtime.clone());
        let pass = move |request| {
            let (tap, client) = (tap.clone(), client.clone());
            let passing = runtime.spawn(async move { tap.pass(&client, request).await });
            async move { passing.await.expect("it ends") }
        };
        Client::new(tower::service_fn(pass), "default")
    }

    async fn pass(&self, client: &Client, mut request: Request<Body>) -> kube::Result<Response<Body>> {
        let asked = Asked::of(request.method(), request.uri());
        if self.0.listing == Listing::Plain
            && request.uri().query().is_some_and(|query| query.contains("sendInitialEvents"))
        {
            *request.uri_mut() = unstreamable(request.uri());
        }
        self.outrun(&asked, request.uri().path()).await;
        let response = client.send(request).await?;
        if response.status() == StatusCode::FORBIDDEN {
            self.0.denied.lock().expect("nobody panics with it").get_or_insert(asked);
        }
        Ok(response)
    }

    /// So that the first write of each object meets a conflict, and the object has to be read again.
    async fn outrun(&self, asked: &Asked, path: &str) {
        let patches = asked.verb == "patch" && ["", "k8s.ovn.org"].contains(&asked.group.as_str());
        let creates = asked.verb == "create" && asked.resource == "cloudprivateipconfigs";
        if !(patches || creates) || !self.0.outrun.lock().expect("nobody panics with it").insert(path.to_owned()) {
            return;
        }
        let path = path.trim_end_matches("/status");
        let request = if creates {
            Request::post(path).header("content-type", "application/json").body(self.0.rival.to_string().into_bytes())
        } else {
            let change = br#"{"metadata":{"labels":{"touched":"once"}}}"#.to_vec();
            Request::patch(path).header("content-type", "application/merge-patch+json").body(change)
        };
        let request = request.expect("a legal request");
        self.0.administrator.request_text(request).await.expect("an administrator may");
    }
}

/// Without this the API server has to refuse a list that is to be streamed: the two go together.
fn unstreamable(uri: &Uri) -> Uri {
    let text = uri.to_string();
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    let kept: Vec<&str> = query.split('&').filter(|part| !part.starts_with("resourceVersionMatch=")).collect();
    format!("{path}?{}", kept.join("&")).parse().expect("a part of what was legal")
}

#[test]
fn requests_are_told_in_the_words_of_roles() {
    let told = |method: Method, uri: &str| Asked::of(&method, &uri.parse().expect("a path")).to_string();
    assert_eq!(told(Method::GET, "/api/v1/nodes?watch=true&sendInitialEvents=true"), "watch of /nodes");
    assert_eq!(told(Method::GET, "/api/v1/nodes?limit=5"), "list of /nodes");
    assert_eq!(told(Method::GET, "/api/v1/nodes/n1"), "get of /nodes");
    let service = "/apis/k8s.ovn.org/v1/namespaces/shop/egressservices/web/status?x=y";
    assert_eq!(told(Method::PATCH, service), "patch of k8s.ovn.org/egressservices/status");
    assert_eq!(
        told(Method::POST, "/apis/events.k8s.io/v1/namespaces/default/events"),
        "create of events.k8s.io/events"
    );
}
