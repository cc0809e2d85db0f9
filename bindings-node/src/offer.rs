//! The registry of a server, as JavaScript builds it: before it is served, or later if list changes were
//! announced.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::Config;
use mcpbolt::connection::Operation;
use mcpbolt::limits::TotalLimits;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    CacheScope, Change, Live, Registry, RegistryError, StateSigner, TaskLimits, Template,
};
use napi::Status;
use napi::bindgen_prelude::{Function, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answers;
use crate::definition::{PromptDefinition, ResourceDefinition, ToolDefinition};
use crate::delegate::{Delegate, DelegateOptions};
use crate::error::{self, Result, error};
use crate::kept::Made;
use crate::link::duration;
use crate::operation;
use crate::submit::Kind;

/// How long data that answers refer to are kept by default.
const KEPT: Duration = Duration::from_secs(60);

/// Options of a server besides its entries.
#[napi(object)]
pub struct OfferOptions {
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Whether lists may change while clients are connected.
    pub list_changes: bool,
    /// Whether clients may subscribe to resources.
    pub subscriptions: bool,
    /// Items on a page of a list; all by default.
    pub page_size: Option<u32>,
    /// How long clients may cache lists, in ms.
    pub cache_ms: Option<f64>,
    /// Whether cached lists may be shown to other users.
    pub cache_is_public: bool,
    /// Extensions to offer: pairs of name and settings, as JSON.
    pub extensions: Option<String>,
    /// Limits on stored tasks.
    pub tasks: Option<TaskOptions>,
    /// The tools that have `approval` or `sanitise` hooks, by name.
    pub looked_at: Vec<String>,
    /// Memory that all connections may take together, in bytes; 256 MiB by default.
    pub max_bytes: Option<f64>,
    /// When the action dialect answers with references instead of data.
    pub references: Option<ReferenceOptions>,
    /// 32 bytes that sign the state that clients hold between the rounds of a call; random by default.
    pub state_key: Option<Uint8Array>,
    /// The variant of the protocol to speak.
    pub profile: Option<String>,
    /// The policy, as JSON.
    pub policy: Option<String>,
    /// Capabilities declared as `experimental`: pairs of name and settings, as JSON.
    pub experimental: Option<String>,
    /// Whether requests of the action dialect are answered, too.
    pub actions: bool,
    /// The other library that serves the calls, if any.
    pub delegate: Option<DelegateOptions>,
}

/// Limits on the tasks that a server stores; each defaults to the engine's.
#[napi(object)]
pub struct TaskOptions {
    /// Maximum number of tasks, ended ones included.
    pub count: Option<u32>,
    /// Maximum number of tasks of one owner.
    pub per_owner: Option<u32>,
    /// Maximum size of all results in bytes.
    pub bytes: Option<f64>,
    /// How long a task is kept after its creation, in ms.
    pub ttl_ms: Option<f64>,
    /// How often clients are told to poll, in ms.
    pub poll_ms: Option<f64>,
}

impl TaskOptions {
    fn limits(&self) -> Result<TaskLimits> {
        let usual = TaskLimits::default();
        Ok(TaskLimits {
            tasks: self.count.map_or(usual.tasks, |count| count as usize),
            per_owner: self
                .per_owner
                .map_or(usual.per_owner, |count| count as usize),
            bytes: self.bytes.map_or(usual.bytes, |bytes| bytes as usize),
            ttl: self.ttl_ms.map_or(Ok(usual.ttl), duration)?,
            poll_interval: self.poll_ms.map_or(Ok(usual.poll_interval), duration)?,
        })
    }
}

/// Which data are sent by reference, and how long they are kept.
#[napi(object)]
pub struct ReferenceOptions {
    /// Data of more bytes than this are sent by reference.
    pub over_bytes: f64,
    /// How long the data are kept, in ms.
    pub ttl_ms: Option<f64>,
}

/// Passes each audit event to JavaScript, as JSON, through the policy's queue; does not keep the process
/// alive.
fn told(policy: Policy, audit: &Function<'_, String, ()>) -> Result<Policy> {
    let javascript = std::thread::current().id();
    // JavaScript's own thread must not wait: it is the one that makes room.
    let queue = policy.audit_queue().wait_by(move |wait| {
        if std::thread::current().id() != javascript {
            wait();
        }
    });
    let leaving = queue.clone();
    let tell = audit
        .build_threadsafe_function::<String>()
        .weak::<true>()
        .build_callback(move |call| {
            leaving.leave();
            Ok(call.value)
        })
        .map_err(|why| error("ERR_MCP_MISUSE", why))?;
    let closing = queue.clone();
    Ok(policy.audit_through(queue, move |event| {
        let status = tell.call(event.to_json(), ThreadsafeFunctionCallMode::NonBlocking);
        // The event loop has ended: no further event can be delivered.
        if status != Status::Ok {
            closing.close();
        }
    }))
}

/// A server's registry.
#[napi]
pub struct Offer {
    name: String,
    version: String,
    instructions: Option<String>,
    subscriptions: bool,
    actions: bool,
    registry: Registry,
    templates: Templates,
    seal: Option<StateSigner>,
    looked_at: Vec<String>,
    delegate: Option<(DelegateOptions, Arc<Delegate>)>,
    served: Option<Served>,
}

/// The resource templates by number, to extract the variables of a URI. All other work of an operation is
/// JavaScript's.
pub type Templates = HashMap<u32, Template>;

/// The current registry, and the configuration of its connections.
#[derive(Clone)]
pub struct Served {
    pub live: Arc<Live<Templates>>,
    pub config: Arc<Config>,
    pub seal: Option<StateSigner>,
    /// Answers requests instead of the registry, if present.
    pub delegate: Option<Arc<Delegate>>,
}

#[napi]
impl Offer {
    /// Creates an empty registry.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        name: String,
        version: String,
        options: OfferOptions,
        audit: Option<Function<'_, String, ()>>,
    ) -> Result<Self> {
        let mut registry = Registry::new();
        let wrong = |why: &dyn std::fmt::Display| error("ERR_MCP_MISUSE", why);
        if let Some(profile) = &options.profile {
            registry.set_profile(profile.parse().map_err(|why| wrong(&why))?);
        }
        if let Some(json) = &options.policy {
            let policy = Policy::from_json(json).map_err(|why| wrong(&why))?;
            let policy = match audit {
                None => policy,
                Some(audit) => told(policy, &audit)?,
            };
            registry.set_policy(Arc::new(policy));
        }
        if let Some(json) = &options.experimental {
            for (name, settings) in read::<Vec<(String, Box<RawValue>)>>(json)? {
                let added = registry.add_experimental(&name, settings.get());
                added.map_err(|why| error::registry(&why))?;
            }
        }
        if options.list_changes {
            registry.announce_changes();
        }
        if options.subscriptions {
            registry.offer_subscriptions();
        }
        if let Some(size) = options.page_size {
            let size = NonZeroUsize::new(size as usize);
            let none = || error("ERR_MCP_MISUSE", "a page has at least one item");
            registry.set_page_size(size.ok_or_else(none)?);
        }
        if let Some(ttl) = options.cache_ms.map(duration).transpose()? {
            registry.set_list_cache(ttl, scope(options.cache_is_public));
        }
        if let Some(json) = &options.extensions {
            for (id, settings) in read::<Vec<(String, Box<RawValue>)>>(json)? {
                let added = registry.add_extension(&id, settings.get());
                added.map_err(|why| error::registry(&why))?;
            }
        }
        if let Some(tasks) = options.tasks {
            registry.set_task_limits(tasks.limits()?);
        }
        if let Some(max_bytes) = options.max_bytes {
            let own = TotalLimits::default();
            // NaN and negative numbers would become zero, which refuses everything.
            if max_bytes.is_nan() || max_bytes < 1.0 {
                return Err(error(
                    "ERR_MCP_MISUSE",
                    "maxBytes is a number of bytes, at least 1",
                ));
            }
            let max_bytes = max_bytes as usize;
            registry.set_total_limits(TotalLimits { max_bytes, ..own });
        }
        if let Some(references) = options.references {
            let ttl = references.ttl_ms.map_or(Ok(KEPT), duration)?;
            registry.set_references(references.over_bytes as usize, ttl);
        }
        let seal = match options.state_key {
            None => StateSigner::random(),
            Some(key) => Some(StateSigner::new(key.as_ref().try_into().map_err(|_| {
                error("ERR_MCP_MISUSE", "the key of the state has 32 bytes")
            })?)),
        };
        Ok(Self {
            name,
            version,
            instructions: options.instructions,
            subscriptions: options.subscriptions,
            actions: options.actions,
            registry,
            templates: Templates::new(),
            seal,
            looked_at: options.looked_at,
            delegate: options.delegate.map(DelegateOptions::begin),
            served: None,
        })
    }

    /// Replaces the keys that signed tokens are verified with: JSON, by their `kid`.
    #[napi(catch_unwind)]
    pub fn replace_jwt_keys(&self, keys: String) -> Result<()> {
        let misuse = |why: &dyn std::fmt::Display| error("ERR_MCP_MISUSE", why);
        let served = self.served.as_ref().map(|served| served.live.offer());
        let registry = served
            .as_ref()
            .map_or(&self.registry, |offer| &offer.registry);
        let policy = registry.policy();
        let policy = policy.ok_or_else(|| misuse(&"this server has no policy"))?;
        policy.replace_jwt_keys(&keys).map_err(|why| misuse(&why))
    }

    /// Adds a tool, defined in JSON. Returns its number, like the other functions that add.
    #[napi(catch_unwind)]
    pub fn tool(&mut self, json: String) -> Result<u32> {
        let tool = read::<ToolDefinition>(&json)?.read();
        let misuse = || {
            error(
                "ERR_MCP_MISUSE",
                "taskSupport is forbidden, optional or required",
            )
        };
        let tool = tool.ok_or_else(misuse)?;
        self.change(|registry, _| registry.add_tool(tool))
    }

    /// Adds a resource.
    #[napi(catch_unwind)]
    pub fn resource(&mut self, json: String) -> Result<u32> {
        let resource: ResourceDefinition = read(&json)?;
        self.change(|registry, _| registry.add_resource(resource.into()))
    }

    /// Adds resources by template.
    #[napi(catch_unwind)]
    pub fn template(&mut self, json: String) -> Result<u32> {
        let template: ResourceDefinition = read(&json)?;
        self.change(|registry, templates| {
            if template.completes {
                registry.offer_completion();
            }
            let parsed = Template::parse(&template.uri).map_err(RegistryError::Template)?;
            let number = registry.add_template(template.into())?;
            templates.insert(number, parsed);
            Ok(number)
        })
    }

    /// Adds a prompt.
    #[napi(catch_unwind)]
    pub fn prompt(&mut self, json: String) -> Result<u32> {
        let prompt: PromptDefinition = read(&json)?;
        self.change(|registry, _| {
            if prompt.completes {
                registry.offer_completion();
            }
            registry.add_prompt(prompt.into())
        })
    }

    /// Adds a method of an extension that is offered.
    #[napi(catch_unwind)]
    pub fn method(&mut self, extension: String, name: String) -> Result<u32> {
        self.change(|registry, _| registry.add_method(&extension, &name))
    }

    /// Removes a tool; returns whether it existed.
    #[napi(catch_unwind)]
    pub fn remove_tool(&mut self, name: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_tool(&name)))
    }

    /// Removes a resource; returns whether it existed.
    #[napi(catch_unwind)]
    pub fn remove_resource(&mut self, uri: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_resource(&uri)))
    }

    /// Removes a template; returns whether it existed.
    #[napi(catch_unwind)]
    pub fn remove_template(&mut self, template: String) -> Result<bool> {
        self.change(|registry, templates| {
            let removed = registry.remove_template(&template);
            templates.retain(|number, _| registry.has(Operation::ReadTemplate(*number)));
            Ok(removed)
        })
    }

    /// Removes a prompt; returns whether it existed.
    #[napi(catch_unwind)]
    pub fn remove_prompt(&mut self, name: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_prompt(&name)))
    }

    /// Whether the operation with that target number exists.
    #[napi(catch_unwind)]
    pub fn has(&self, target: u32) -> bool {
        let operation = operation::unpack(target);
        match &self.served {
            None => self.registry.has(operation),
            Some(served) => served.live.offer().registry.has(operation),
        }
    }

    /// Why arguments, as JSON, break the schema of the tool with that number; `None` if they fit.
    #[napi(catch_unwind)]
    pub fn misfit(&self, number: u32, json: String) -> Option<String> {
        let served = self.live().map(|live| live.offer().registry);
        let registry = served.as_deref().unwrap_or(&self.registry);
        registry.check_arguments(number, &json).err()
    }

    /// Whether the answer of the tool with that number, a kind and a text as in `submit`, is no failure and
    /// fits the tool's output schema.
    #[napi(catch_unwind)]
    pub fn is_good(&self, number: u32, made: Made) -> bool {
        let Some(kind) = Kind::at(made.kind) else {
            return false;
        };
        let served = self.live().map(|live| live.offer().registry);
        let registry = served.as_deref().unwrap_or(&self.registry);
        answers::is_good(registry, number, kind, &made.text)
    }

    /// Notifies the clients that subscribed to a resource that it changed.
    #[napi(catch_unwind)]
    pub fn resource_updated(&self, uri: String) -> Result<()> {
        if !self.subscriptions {
            let why = "the server was made without `subscriptions`";
            return Err(error("ERR_MCP_MISUSE", why));
        }
        if let Some(served) = &self.served {
            served.live.offer().registry.tell(Change::Resource(&uri));
        }
        Ok(())
    }

    /// Changes the registry. Once it is served, clients are notified.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Registry, &mut Templates) -> std::result::Result<T, RegistryError>,
    ) -> Result<T> {
        let Some(served) = &self.served else {
            let outcome = change(&mut self.registry, &mut self.templates);
            return outcome.map_err(|why| error::registry(&why));
        };
        let mut made = None;
        let outcome = served.live.change(|mut registry, mut templates| {
            made = Some(change(&mut registry, &mut templates)?);
            Ok((registry, templates))
        });
        outcome.map_err(|why| error::registry(&why))?;
        made.ok_or_else(|| error("ERR_MCP_INTERNAL", "nothing was changed"))
    }

    /// Returns what connections are served from. The first call moves the registry there.
    pub fn serve(&mut self) -> Result<Served> {
        if let Some(served) = &self.served {
            return Ok(served.clone());
        }
        let looked_at = self.looked_at.iter().map(String::as_str);
        let known = self.registry.knows_tools(looked_at);
        known.map_err(|why| error::registry(&why))?;
        let registry = mem::take(&mut self.registry);
        let mut config = registry.config(&self.name, &self.version);
        config.instructions = self.instructions.as_deref().map(Into::into);
        config.actions = self.actions;
        if let Some((options, _)) = &self.delegate {
            options.apply(&mut config);
        }
        let served = Served {
            live: Arc::new(Live::new(registry, mem::take(&mut self.templates))),
            config: Arc::new(config),
            seal: self.seal.clone(),
            delegate: self.delegate.as_ref().map(|(_, delegate)| delegate.clone()),
        };
        Ok(self.served.insert(served).clone())
    }

    /// The registry that is being served, once it is.
    pub(crate) fn live(&self) -> Option<&Live<Templates>> {
        self.served.as_ref().map(|served| &*served.live)
    }

    pub(crate) fn delegate(&self) -> Option<&Delegate> {
        self.delegate.as_ref().map(|(_, delegate)| &**delegate)
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))
}

/// The cache scope for results and lists: whether they may be shown to other users.
pub fn scope(is_public: bool) -> CacheScope {
    match is_public {
        true => CacheScope::Public,
        false => CacheScope::Private,
    }
}
