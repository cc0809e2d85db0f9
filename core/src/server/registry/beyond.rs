//! Registration beyond the core protocol: extensions, skills and tasks.

use std::sync::Arc;

use super::{Registry, RegistryError};
use crate::connection::Budget;
#[cfg(feature = "skills")]
use crate::connection::{Answer, Disposition, IncomingRequest};
use crate::limits::TotalLimits;
use crate::mcp::{Method, TaskSupport, extension};
#[cfg(feature = "skills")]
use crate::server::skills::{Skill, Skills};
use crate::server::tasks::{Task, TaskLimits, Tasks};

impl Registry {
    /// Sets the limits of stored tasks from now on. Drops all tasks stored so far.
    pub fn set_task_limits(&mut self, limits: TaskLimits) {
        self.tasks = Arc::new(Tasks::new(limits));
    }

    /// Sets the limits of all connections together. Call it before [`config`](Self::config).
    pub fn set_total_limits(&mut self, limits: TotalLimits) {
        self.budget = Arc::new(Budget::new(limits));
    }

    /// Declares an extension with these settings, a JSON object, from 2026-07-28 on (R-EXT-02).
    ///
    /// # Errors
    /// When the name has no prefix or the settings are no JSON object (R-CAP-06).
    pub fn add_extension(&mut self, id: &str, settings: &str) -> Result<(), RegistryError> {
        let is_object = settings.trim_start().starts_with('{')
            && crate::json::validate(settings.as_bytes(), 64).is_ok();
        if !extension::is_id(id) || !is_object {
            return Err(RegistryError::Extension(id.to_owned()));
        }
        self.extensions.insert(id.to_owned(), settings.to_owned());
        Ok(())
    }

    /// Adds a skill; its files are listed and read without a handler.
    ///
    /// # Errors
    /// When a skill with this URI exists, it is too large, or a file path leads out of it.
    #[cfg(feature = "skills")]
    pub fn add_skill(&mut self, skill: Skill) -> Result<(), RegistryError> {
        self.skills.add(skill).map_err(RegistryError::Skill)?;
        self.edits.resources += 1;
        self.changed();
        Ok(())
    }

    #[cfg(feature = "skills")]
    pub(in crate::server) fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Answers a method of the skills extension.
    #[cfg(feature = "skills")]
    pub(in crate::server) fn answer_skills(
        &self,
        method: Method,
        request: &IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let hints = self.cache.members();
        let paging = (&*hints, self.page_size);
        self.skills.answer(method, paging, request, answer)
    }

    /// Returns whether calls of any tool may continue as tasks.
    pub(in crate::server) fn has_tasks(&self) -> bool {
        self.has_tasks
    }

    pub(in crate::server) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns whether calls of this tool may continue as tasks.
    pub fn supports_tasks(&self, number: u32) -> bool {
        self.task_support(number) != TaskSupport::Forbidden
    }

    pub(in crate::server) fn task_support(&self, number: u32) -> TaskSupport {
        let tool = self.tools.get(number);
        tool.map_or(TaskSupport::Forbidden, |(tool, _)| tool.task_support)
    }

    /// Returns whether this principal has a task of the tasks extension with this id.
    pub(in crate::server) fn has_task(&self, id: &str, principal: Option<&str>) -> bool {
        self.has_tasks && self.tasks.has(id, principal)
    }

    /// Notifies the task's listeners of its state (R-TSK-16).
    pub(in crate::server) fn tell_task(&self, task: &Task) {
        match &task.connection {
            Some(owner) => {
                let params = format!("{{{}}}", task.summary());
                // Cannot fail for its params: they are an object.
                let _ = owner.notify(Method::TaskStatus.name(), Some(&params));
            }
            None => self.audience.tell_task(&task.id, &task.detail()),
        }
    }

    /// The declared extensions (2026-07-28): a JSON object, if there are any.
    pub(super) fn extensions(&self) -> Option<String> {
        let mut all = self.extensions.clone();
        if self.has_tasks {
            all.entry(extension::TASKS.to_owned())
                .or_insert_with(|| "{}".to_owned());
        }
        #[cfg(feature = "skills")]
        if !self.skills.is_empty() {
            let settings = "{\"directoryRead\":true}".to_owned();
            all.insert(extension::SKILLS.to_owned(), settings);
        }
        let member = |(id, settings): (&String, &String)| format!("\"{id}\":{settings}");
        let members: Vec<_> = all.iter().map(member).collect();
        (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
    }
}
