//! Requests that a front passes on to the server that it stands for: observed at the front, while their handlers run here.

use std::fmt;
use std::sync::Arc;

use super::callers::Callers;
use super::config::Config;
use super::observer::{ObservedRequest, Observer, RequestEnd, RequestObserver, RequestScope};

/// The configuration of a connection whose requests `callers` pass on.
pub(crate) fn observed_there(config: &Arc<Config>, callers: &Arc<dyn Callers>) -> Arc<Config> {
    let Some(observer) = callers.observer() else {
        return config.clone();
    };
    let callers = callers.clone();
    let mut config = Config::clone(config);
    config.observer = Some(Arc::new(Carried { callers, observer }));
    Arc::new(config)
}

/// Lets handlers run within what surrounds the calls that requests carry, and tells of the requests that handlers send.
struct Carried {
    callers: Arc<dyn Callers>,
    observer: Arc<dyn Observer>,
}

impl Observer for Carried {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        if request.is_sent() {
            return self.observer.request(request);
        }
        let scope = self.callers.scope(request.id().parse().ok()?)?;
        Some(Arc::new(Surrounded(scope)))
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Carried").field(&self.observer).finish()
    }
}

/// A request that somebody else observes.
#[derive(Debug)]
struct Surrounded(RequestScope);

impl RequestObserver for Surrounded {
    fn end(&self, _: &RequestEnd) {}

    fn scope(self: Arc<Self>) -> Option<RequestScope> {
        Some(self.0.clone())
    }
}
