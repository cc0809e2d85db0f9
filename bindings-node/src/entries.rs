//! The entries of a server, as JavaScript adds them: before it is served, or later if list changes were
//! announced.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpbolt::connection::Operation;
use mcpbolt::mcp::Method;
use mcpbolt::model::Resource;
use mcpbolt::policy::Policy;
use mcpbolt::server::{
    Change, Registry, RegistryError, SharedRegistry, Skill, StateSigner, Template,
};
use mcpbolt::settings::{
    Milliseconds, PromptDefinition, ResourceDefinition, ServerSettings, ToolDefinition,
};
use mcpbolt::telemetry::HostTelemetry;
use napi::Status;
use napi::bindgen_prelude::{ClassInstance, Function, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;

use crate::answers::{self, Encoded};
use crate::delegate::{Delegate, DelegateSettings};
use crate::error::{self, Result, error, misuse, unknown};
use crate::json::read;
use crate::kinds::Outbound;
use crate::operation;
use crate::served::{Served, Templates};
use crate::telemetry::Telemetry;
use crate::verifier::Verifier;

/// Passes each audit event to JavaScript, as JSON, through the policy's queue; does not keep the process
/// alive.
fn audited(policy: Policy, audit: &Function<'_, String, ()>) -> Result<Policy> {
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
        .map_err(misuse)?;
    let closing = queue.clone();
    Ok(policy.audit_through(queue, move |event| {
        let status = tell.call(event.to_json(), ThreadsafeFunctionCallMode::NonBlocking);
        // The event loop has ended: no further event can be delivered.
        if status != Status::Ok {
            closing.close();
        }
    }))
}

/// The policy of these settings, with the program's verifier and audit.
pub fn policy(
    settings: &ServerSettings<Milliseconds>,
    verifier: Option<&Verifier>,
    audit: Option<&Function<'_, String, ()>>,
) -> Result<Option<Policy>> {
    let Some(mut policy) = settings.policy().map_err(misuse)? else {
        return Ok(None);
    };
    if let Some(verifier) = verifier {
        policy = verifier.of(policy);
    }
    if let Some(audit) = audit {
        policy = audited(policy, audit)?;
    }
    Ok(Some(policy))
}

/// A file of a skill; its path is relative to the skill.
#[napi(object)]
pub struct SkillFile {
    pub path: String,
    pub mime_type: String,
    pub bytes: Uint8Array,
}

/// The tools, resources, prompts and other entries of a server.
#[napi]
pub struct Entries {
    settings: ServerSettings<Milliseconds>,
    registry: Registry,
    templates: Templates,
    signer: Option<StateSigner>,
    /// The tools that have `approval` or `sanitise` hooks, by name.
    hooked: Vec<String>,
    delegate: Option<(DelegateSettings, Arc<Delegate>)>,
    verifier: Option<Verifier>,
    policy: Option<Arc<Policy>>,
    telemetry: Option<HostTelemetry>,
    /// Whether a front before the server enforces the policy.
    is_behind_front: bool,
    passes_lists: Arc<AtomicBool>,
    served: Option<Served>,
}

#[napi]
impl Entries {
    /// Creates an empty registry from the settings of the server and, if another library serves the calls, of
    /// that delegate. `hooked` are the names of the tools that have hooks. `verify` gets the credentials of clients: see
    /// [`Verifier`]. `telemetry` is told of requests and sessions.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        settings: String,
        hooked: Vec<String>,
        delegate: Option<String>,
        audit: Option<Function<'_, String, ()>>,
        verify: Option<Function<'_, String, ()>>,
        telemetry: Option<ClassInstance<'_, Telemetry>>,
    ) -> Result<Self> {
        let settings: ServerSettings<Milliseconds> = read(&settings)?;
        let registry = settings.registry().map_err(misuse)?;
        let verifier = verify.as_ref().map(Verifier::new).transpose()?;
        let policy = policy(&settings, verifier.as_ref(), audit.as_ref())?;
        let delegate: Option<DelegateSettings> = delegate.as_deref().map(read).transpose()?;
        Ok(Self {
            signer: settings.state_signer(),
            settings,
            registry,
            templates: Templates::new(),
            hooked,
            delegate: delegate.map(|delegate| {
                let state = Arc::new(Delegate::new(delegate.opens));
                (delegate, state)
            }),
            verifier,
            policy: policy.map(Arc::new),
            telemetry: telemetry.map(|telemetry| telemetry.observer.clone()),
            is_behind_front: false,
            passes_lists: Arc::default(),
            served: None,
        })
    }

    /// Replaces the keys that signed tokens are verified with: JSON, by their `kid`.
    #[napi(catch_unwind)]
    pub fn replace_jwt_keys(&self, keys: String) -> Result<()> {
        let policy = self.policy.as_ref();
        let policy = policy.ok_or_else(|| misuse("this server has no policy"))?;
        policy.replace_jwt_keys(&keys).map_err(misuse)
    }

    /// From now on a front stands for the server, and enforces its policy.
    #[napi(catch_unwind)]
    pub fn stand_behind_front(&mut self) -> Result<()> {
        if self.served.is_some() && !self.is_behind_front {
            return Err(misuse(
                "mount external servers before this server is served",
            ));
        }
        self.is_behind_front = true;
        Ok(())
    }

    /// Gives the verdict on credentials: the client, a JSON object, or none if they are refused; `failed` if the verifier
    /// threw.
    #[napi(catch_unwind)]
    pub fn verified(&self, number: u32, granted: Option<String>, failed: bool) {
        if let Some(verifier) = &self.verifier {
            verifier.end(number, granted.as_deref(), failed);
        }
    }

    /// From now on, passes requests for lists, on all connections.
    #[napi(catch_unwind)]
    pub fn pass_lists(&self) {
        self.passes_lists.store(true, Ordering::Relaxed);
    }

    /// Adds a tool, defined in JSON. Returns its number, like the other functions that add.
    #[napi(catch_unwind)]
    pub fn tool(&mut self, json: String) -> Result<u32> {
        let tool: ToolDefinition<Milliseconds> = read(&json)?;
        self.change(|registry, _| registry.add_tool(tool.into()))
    }

    /// Adds a resource.
    #[napi(catch_unwind)]
    pub fn resource(&mut self, json: String) -> Result<u32> {
        let resource: ResourceDefinition = read(&json)?;
        self.change(|registry, _| registry.add_resource(resource.into()))
    }

    /// Adds resources by template. `completes` if values of its variables can be completed.
    #[napi(catch_unwind)]
    pub fn template(&mut self, json: String, completes: bool) -> Result<u32> {
        let template: ResourceDefinition = read(&json)?;
        self.change(|registry, templates| {
            if completes {
                registry.offer_completion();
            }
            let parsed = Template::parse(&template.uri).map_err(RegistryError::Template)?;
            let number = registry.add_template(Resource::from(template))?;
            templates.insert(number, parsed);
            Ok(number)
        })
    }

    /// Adds a prompt. `completes` if values of its arguments can be completed.
    #[napi(catch_unwind)]
    pub fn prompt(&mut self, json: String, completes: bool) -> Result<u32> {
        let prompt: PromptDefinition = read(&json)?;
        self.change(|registry, _| {
            if completes {
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

    /// Adds a skill: its manifest, its parent folder, and its other files.
    #[napi(catch_unwind)]
    pub fn skill(&mut self, manifest: String, within: String, files: Vec<SkillFile>) -> Result<()> {
        let skill = Skill::new(&manifest).map_err(misuse)?;
        let skill = match &*within {
            "" => skill,
            within => skill.within(within),
        };
        let add = |skill: Skill, file: SkillFile| {
            skill.file(file.path, file.mime_type, file.bytes.to_vec())
        };
        let skill = files.into_iter().fold(skill, add);
        self.change(|registry, _| registry.add_skill(skill))
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
        self.with(|registry| registry.has(operation::unpack(target)))
    }

    /// Why arguments, as JSON, break the schema of the tool with that number; `None` if they fit.
    #[napi(catch_unwind)]
    pub fn misfit(&self, number: u32, json: String) -> Option<String> {
        self.with(|registry| registry.check_arguments(number, &json).err())
    }

    /// Whether the answer of the tool with that number is no failure and fits the tool's output schema.
    #[napi(catch_unwind)]
    pub fn is_good(&self, number: u32, answer: Encoded) -> bool {
        let Some(kind) = Outbound::at(answer.kind) else {
            return false;
        };
        self.with(|registry| answers::is_good(registry, number, kind, &answer.text))
    }

    /// Notifies the clients that subscribed to a resource that it changed.
    #[napi(catch_unwind)]
    pub fn resource_updated(&self, uri: String) -> Result<()> {
        if !self.settings.subscriptions {
            return Err(misuse(
                "create the server with `subscriptions` to report updates",
            ));
        }
        self.tell(Change::Resource(&uri));
        Ok(())
    }

    /// With a delegate: notifies the clients that listen to a list that it changed; `notification` is the
    /// method's name.
    #[napi(catch_unwind)]
    pub fn list_changed(&self, notification: String) {
        match Method::parse(&notification) {
            Some(Method::ToolsChanged) => self.tell(Change::Tools),
            Some(Method::PromptsChanged) => self.tell(Change::Prompts),
            Some(Method::ResourcesChanged) => self.tell(Change::Resources),
            _ => {}
        }
    }

    /// With a delegate: from now on, answers a list without a cursor with this result, in that revision.
    #[napi(catch_unwind)]
    pub fn keep(&self, method: String, revision: String, result: String) -> Result<()> {
        let known = Method::parse(&method).ok_or_else(|| unknown("list", &method))?;
        let revision = revision.parse().map_err(misuse)?;
        if let Some((_, delegate)) = &self.delegate {
            delegate.keep(known, revision, &result);
        }
        Ok(())
    }

    /// With a delegate: drops a cached list, so that JavaScript is asked for it again.
    #[napi(catch_unwind)]
    pub fn forget(&self, method: String) {
        if let (Some(method), Some((_, delegate))) = (Method::parse(&method), &self.delegate) {
            delegate.forget(method);
        }
    }

    /// With a delegate: from now on, passes calls of these tools, and of no others, by number. Numbers must be
    /// below 10,000.
    #[napi(catch_unwind)]
    pub fn number_tools(&self, names: Vec<String>, numbers: Vec<u32>) {
        if let Some((_, delegate)) = &self.delegate {
            let names = names.into_iter().map(String::into_boxed_str);
            delegate.number_tools(names.zip(numbers));
        }
    }

    fn tell(&self, change: Change<'_>) {
        if let Some(served) = &self.served {
            served.live.snapshot().registry.tell(change);
        }
    }

    /// Passes the current registry to `act`.
    fn with<T>(&self, act: impl FnOnce(&Registry) -> T) -> T {
        match &self.served {
            None => act(&self.registry),
            Some(served) => act(&served.live.snapshot().registry),
        }
    }

    /// Changes the registry. Once it is served, clients are notified.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Registry, &mut Templates) -> std::result::Result<T, RegistryError>,
    ) -> Result<T> {
        let Some(served) = &self.served else {
            let outcome = change(&mut self.registry, &mut self.templates);
            return outcome.map_err(error::registry);
        };
        let mut made = None;
        let outcome = served.live.change(|mut registry, mut templates| {
            made = Some(change(&mut registry, &mut templates)?);
            Ok((registry, templates))
        });
        outcome.map_err(error::registry)?;
        made.ok_or_else(|| error("ERR_MCP_INTERNAL", "nothing was changed"))
    }

    /// The observer of requests and sessions, if telemetry is on.
    pub fn telemetry(&self) -> Option<&HostTelemetry> {
        self.telemetry.as_ref()
    }

    /// Returns what connections are served from. The first call moves the registry there.
    pub fn serve(&mut self) -> Result<Served> {
        if let Some(served) = &self.served {
            return Ok(served.clone());
        }
        let known = self
            .registry
            .knows_tools(self.hooked.iter().map(String::as_str));
        known.map_err(error::registry)?;
        let mut registry = mem::take(&mut self.registry);
        if let Some(policy) = &self.policy
            && !self.is_behind_front
        {
            registry.set_policy(policy.clone());
        }
        let mut config = self.settings.config(&registry).map_err(error::io)?;
        if let Some((settings, _)) = &self.delegate {
            settings.apply(&mut config);
        }
        if let Some(telemetry) = &self.telemetry {
            config.observer = Some(Arc::new(telemetry.clone()));
        }
        let served = Served {
            live: Arc::new(SharedRegistry::new(
                registry,
                mem::take(&mut self.templates),
            )),
            config: Arc::new(config),
            signer: self.signer.clone(),
            policy: self.policy.clone(),
            passes_lists: self.passes_lists.clone(),
            delegate: self.delegate.as_ref().map(|(_, delegate)| delegate.clone()),
        };
        Ok(self.served.insert(served).clone())
    }
}
