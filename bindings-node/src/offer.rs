//! What a server offers, put together by JavaScript: before it is served, or later where clients
//! were told that it may change.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::Config;
use mcpbolt::handler::Operation;
use mcpbolt::policy::{AuditEvent, Policy};
use mcpbolt::server::{
    CacheScope, Change, Live, Registry, RegistryError, Seal, TaskLimits, Template,
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
use crate::submit::Kind;

/// How long data that answers refer to are kept, where that is not said.
const KEPT: Duration = Duration::from_secs(60);

/// How a server is offered, besides what.
#[napi(object)]
pub struct OfferOptions {
    /// What it tells the model about itself.
    pub instructions: Option<String>,
    /// Its lists may change while clients are connected.
    pub list_changes: bool,
    /// Clients may subscribe to resources.
    pub subscriptions: bool,
    /// Items on a page of a list; all by default.
    pub page_size: Option<u32>,
    /// How long clients may keep lists, in ms.
    pub cache_ms: Option<f64>,
    /// Whether what they keep may be shown to other users.
    pub cache_is_public: bool,
    /// Extensions that it offers: names and settings in pairs, as JSON.
    pub extensions: Option<String>,
    /// How much is kept of tasks.
    pub tasks: Option<TaskOptions>,
    /// The tools whose calls JavaScript looks at first.
    pub looked_at: Vec<String>,
    /// When answers of the action dialect refer to their data instead of holding them.
    pub references: Option<ReferenceOptions>,
    /// 32 bytes that sign what clients keep between the rounds of a call; random by default.
    pub state_key: Option<Uint8Array>,
    /// Whose reading of the protocol is spoken.
    pub profile: Option<String>,
    /// What clients may do, as JSON.
    pub policy: Option<String>,
    /// What is declared as `experimental`: names and settings in pairs, as JSON.
    pub experimental: Option<String>,
    /// Another library carries it out, as this says.
    pub delegate: Option<DelegateOptions>,
}

/// How much of its tasks a server keeps: what is not said is as the engine has it.
#[napi(object)]
pub struct TaskOptions {
    /// Most tasks, the ended ones included.
    pub count: Option<u32>,
    /// Most bytes of all results.
    pub bytes: Option<f64>,
    /// How long one is kept from its creation, in ms.
    pub ttl_ms: Option<f64>,
    /// How often clients are told to ask, in ms.
    pub poll_ms: Option<f64>,
}

impl TaskOptions {
    fn limits(&self) -> Result<TaskLimits> {
        let usual = TaskLimits::default();
        Ok(TaskLimits {
            tasks: self.count.map_or(usual.tasks, |count| count as usize),
            bytes: self.bytes.map_or(usual.bytes, |bytes| bytes as usize),
            ttl: self.ttl_ms.map_or(Ok(usual.ttl), duration)?,
            poll_interval: self.poll_ms.map_or(Ok(usual.poll_interval), duration)?,
        })
    }
}

/// What is referred to, and for how long.
#[napi(object)]
pub struct ReferenceOptions {
    /// Data of more bytes than this.
    pub over_bytes: f64,
    /// How long they are kept, in ms.
    pub ttl_ms: Option<f64>,
}

/// Hands each event of an audit to JavaScript, as JSON; does not keep the process alive.
fn teller(
    audit: &Function<'_, String, ()>,
) -> Result<impl Fn(&AuditEvent<'_>) + Send + Sync + 'static> {
    let tell = audit
        .build_threadsafe_function::<String>()
        .weak::<true>()
        .build()
        .map_err(|why| error("ERR_MCP_MISUSE", why))?;
    Ok(move |event: &AuditEvent<'_>| {
        let _: Status = tell.call(event.to_json(), ThreadsafeFunctionCallMode::NonBlocking);
    })
}

/// A server's registry.
#[napi]
pub struct Offer {
    name: String,
    version: String,
    instructions: Option<String>,
    subscriptions: bool,
    registry: Registry,
    templates: Templates,
    seal: Option<Seal>,
    looked_at: Vec<String>,
    delegate: Option<(DelegateOptions, Arc<Delegate>)>,
    served: Option<Served>,
}

/// The templates by number, for the variables of what is read; whatever else carries operations
/// out is JavaScript's.
pub type Templates = HashMap<u32, Template>;

/// What is offered at each moment, and what its connections begin with.
#[derive(Clone)]
pub struct Served {
    pub live: Arc<Live<Templates>>,
    pub config: Arc<Config>,
    pub seal: Option<Seal>,
    /// Who is asked instead of the registry.
    pub delegate: Option<Arc<Delegate>>,
}

#[napi]
impl Offer {
    /// An empty one.
    #[napi(constructor)]
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
                Some(audit) => policy.audit(teller(&audit)?),
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
        if let Some(references) = options.references {
            let ttl = references.ttl_ms.map_or(Ok(KEPT), duration)?;
            registry.set_references(references.over_bytes as usize, ttl);
        }
        let seal = match options.state_key {
            None => Seal::random(),
            Some(key) => Some(Seal::new(key.as_ref().try_into().map_err(|_| {
                error("ERR_MCP_MISUSE", "the key of the state has 32 bytes")
            })?)),
        };
        Ok(Self {
            name,
            version,
            instructions: options.instructions,
            subscriptions: options.subscriptions,
            registry,
            templates: Templates::new(),
            seal,
            looked_at: options.looked_at,
            delegate: options.delegate.map(DelegateOptions::begin),
            served: None,
        })
    }

    /// Adds a tool, defined in JSON; gives its number, as the others do.
    #[napi]
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
    #[napi]
    pub fn resource(&mut self, json: String) -> Result<u32> {
        let resource: ResourceDefinition = read(&json)?;
        self.change(|registry, _| registry.add_resource(resource.into()))
    }

    /// Adds resources by template.
    #[napi]
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
    #[napi]
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
    #[napi]
    pub fn method(&mut self, extension: String, name: String) -> Result<u32> {
        self.change(|registry, _| registry.add_method(&extension, &name))
    }

    /// Takes a tool away; whether there was one.
    #[napi]
    pub fn remove_tool(&mut self, name: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_tool(&name)))
    }

    /// Takes a resource away; whether there was one.
    #[napi]
    pub fn remove_resource(&mut self, uri: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_resource(&uri)))
    }

    /// Takes a template away; whether there was one.
    #[napi]
    pub fn remove_template(&mut self, template: String) -> Result<bool> {
        self.change(|registry, templates| {
            let removed = registry.remove_template(&template);
            templates.retain(|number, _| registry.has(Operation::ReadTemplate(*number)));
            Ok(removed)
        })
    }

    /// Takes a prompt away; whether there was one.
    #[napi]
    pub fn remove_prompt(&mut self, name: String) -> Result<bool> {
        self.change(|registry, _| Ok(registry.remove_prompt(&name)))
    }

    /// Whether there is something under an operation's own number.
    #[napi]
    pub fn has(&self, target: u32) -> bool {
        let operation = Operation::from_target(target);
        match &self.served {
            None => self.registry.has(operation),
            Some(served) => served.live.offer().registry.has(operation),
        }
    }

    /// Why arguments, JSON, break the schema of the tool of that number.
    #[napi]
    pub fn misfit(&self, number: u32, json: String) -> Option<String> {
        let served = self.live().map(|live| live.offer().registry);
        let registry = served.as_deref().unwrap_or(&self.registry);
        registry.check_arguments(number, &json).err()
    }

    /// Whether what the tool of that number gave back, a kind and a text as `submit` has them, is no
    /// failure, and fits its output schema.
    #[napi]
    pub fn is_good(&self, number: u32, made: Made) -> bool {
        let Some(kind) = Kind::at(made.kind) else {
            return false;
        };
        let served = self.live().map(|live| live.offer().registry);
        let registry = served.as_deref().unwrap_or(&self.registry);
        answers::is_good(registry, number, kind, &made.text)
    }

    /// Tells the clients that subscribed to it that a resource is another now.
    #[napi]
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

    /// Once it is served, clients are told.
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

    /// What connections are served from, from now on.
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

    /// What is offered at each moment, once it is served.
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

/// Whom what is kept may be shown to.
pub fn scope(is_public: bool) -> CacheScope {
    match is_public {
        true => CacheScope::Public,
        false => CacheScope::Private,
    }
}
