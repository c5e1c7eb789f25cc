//! What the API server stores, once: for those who look at a cluster and go.

use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::{Resource, Stored};

/// So many objects a page, as kubectl asks for.
const PAGE: u32 = 500;

/// All objects of a kind, each complete with its `apiVersion` and `kind`; `None` if the kind is not installed.
///
/// Everything is of one moment. Where the API server has forgotten that moment before the last page was asked for, it
/// is asked for all of it in one answer.
///
/// # Errors
/// Why it cannot be read. What was read up to then is dropped: half a list would be taken for the whole.
pub async fn list(client: &Client, resource: Resource) -> kube::Result<Option<Vec<Value>>> {
    let api: Api<Stored> = Api::all_with(client.clone(), &resource.api());
    let (mut objects, mut parameters) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = match api.list(&parameters).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 404 && parameters.continue_token.is_none() => {
                return Ok(None);
            }
            Err(kube::Error::Api(status)) if status.code == 410 && parameters.continue_token.is_some() => {
                objects.clear();
                parameters = ListParams::default();
                continue;
            }
            Err(error) => return Err(error),
        };
        objects.extend(page.items.into_iter().map(|object| object.into_value(resource)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(Some(objects)),
        }
    }
}
