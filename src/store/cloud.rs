//! A store in the cloud: Amazon S3 and compatible stores, Google Cloud Storage, and Azure.
//!
//! The object_store crate retries failed requests with exponential backoff.

use super::{Listing, Name};
use object_store::path::Path as Key;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, parse_url_opts,
};
use std::io;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Prefixes of the environment variables that configure object stores.
const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// The runtime on which requests run.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    // Of the two cryptography providers for rustls, ring builds faster. A program that has already
    // installed one keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("object-store")
        .enable_all()
        .build()
});

/// Returns the runtime on which requests run.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Returns the store that an address belongs to, and the key that it names there.
///
/// Credentials, region and endpoint are taken from the environment variables that these stores' own
/// tools use (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on).
pub(crate) fn connect(address: &str) -> io::Result<(Arc<dyn ObjectStore>, Key)> {
    // Starting the runtime also installs the provider that HTTP clients need.
    runtime()?;
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let url = Url::parse(address).map_err(|error| wrong(error.to_string()))?;
    let is_ours = |name: &str| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    let variables: Vec<(String, String)> =
        std::env::vars().filter(|(name, _)| is_ours(name)).collect();
    let is_plain = |text: &str| text.starts_with("http://");
    let plain = is_plain(url.as_str())
        || variables
            .iter()
            .any(|(name, value)| name.contains("ENDPOINT") && is_plain(value));
    // An explicit http:// address is intentional.
    let plain = plain.then(|| ("allow_http".to_owned(), "true".to_owned()));
    let options = variables.into_iter().chain(plain);
    let (store, key) = parse_url_opts(&url, options).map_err(|error| wrong(error.to_string()))?;
    Ok((Arc::from(store), key))
}

/// The part of a bucket that contains the store.
#[derive(Debug)]
pub(super) struct Cloud {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
}

impl Cloud {
    pub fn open(address: &str) -> io::Result<Cloud> {
        let (store, prefix) = connect(address)?;
        Ok(Cloud { store, prefix })
    }

    pub fn put(&self, name: &Name, bytes: &[u8]) -> io::Result<bool> {
        let key = self.key(name.as_str());
        let payload = PutPayload::from(bytes.to_vec());
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&key, payload, options);
        match runtime()?.block_on(put) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    pub fn get(&self, name: &Name) -> io::Result<Option<Vec<u8>>> {
        let key = self.key(name.as_str());
        let get = async { self.store.get(&key).await?.bytes().await };
        match runtime()?.block_on(get) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    pub fn list(&self, folder: &str) -> io::Result<Listing> {
        let key = self.key(folder);
        let list = self.store.list_with_delimiter(Some(&key));
        let found = runtime()?.block_on(list).map_err(io::Error::other)?;
        let last = |key: &Key| key.filename().map(str::to_owned);
        Ok(Listing {
            files: found
                .objects
                .iter()
                .filter_map(|object| last(&object.location))
                .collect(),
            folders: found.common_prefixes.iter().filter_map(last).collect(),
        })
    }

    fn key(&self, name: &str) -> Key {
        let parts = name.split('/').map(Into::into);
        self.prefix.parts().chain(parts).collect()
    }
}
