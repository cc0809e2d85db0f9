//! Values that layers and HTTP middleware put beside a call.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// Values beside a call, one of each type, as in `http::Extensions`. A [layer](crate::server::Builder::layer)
/// inserts them for the handler, and HTTP middleware puts them into the extensions of the request. Cheap to
/// clone.
#[derive(Clone, Default)]
pub struct Extensions {
    own: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    #[cfg(feature = "http")]
    carried: Option<Arc<hyper::http::Extensions>>,
}

impl Extensions {
    #[cfg(feature = "server")]
    pub(crate) const NONE: Self = Self {
        own: Vec::new(),
        #[cfg(feature = "http")]
        carried: None,
    };

    /// Those of an HTTP request.
    #[cfg(feature = "http")]
    pub(crate) fn carried(extensions: &hyper::http::Extensions) -> Self {
        Self {
            own: Vec::new(),
            carried: (!extensions.is_empty()).then(|| Arc::new(extensions.clone())),
        }
    }

    /// Inserts a value. It replaces another one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let of_type = TypeId::of::<T>();
        self.own.retain(|(own, _)| *own != of_type);
        self.own.push((of_type, Arc::new(value)));
    }

    /// The value of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let of_type = TypeId::of::<T>();
        let own = self.own.iter().find(|(own, _)| *own == of_type);
        if let Some((_, value)) = own {
            return value.downcast_ref();
        }
        #[cfg(feature = "http")]
        if let Some(carried) = &self.carried {
            return carried.get();
        }
        None
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}
