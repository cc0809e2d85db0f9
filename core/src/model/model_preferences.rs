//! A server's preferences for the model: advice, whose hints are read in the server's order
//! (R-SMP-06).

use serde::{Deserialize, Serialize};

use super::sampling::Sampling;

/// A server's preferences for the model: `ModelPreferences`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Model names or parts of them, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// The importance of low cost, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// The importance of a quick answer, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// The importance of intelligence, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

/// A hint for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelHint {
    /// A model name or a part of one; a hint without a name has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelPreferences {
    /// Whether every given priority lies between 0 and 1.
    pub(super) fn is_valid(&self) -> bool {
        let all = [
            self.cost_priority,
            self.speed_priority,
            self.intelligence_priority,
        ];
        let mut said = all.into_iter().flatten();
        said.all(|priority| (0.0..=1.0).contains(&priority))
    }
}

impl Sampling {
    /// The server's model preferences; the default if there are none, or they cannot be read.
    pub fn preferences(&self) -> ModelPreferences {
        let said = self.model_preferences.as_ref();
        let read = said.and_then(|said| ModelPreferences::deserialize(said).ok());
        read.unwrap_or_default()
    }

    /// The first of `models` that fits the server's hints. The hints are tried in order; a hint
    /// fits a model whose name contains it, ignoring case. `None` when no hint fits: the client
    /// chooses.
    ///
    /// ```
    /// use mcpbolt::model::Sampling;
    /// let mut sampling = Sampling::user("?", 100);
    /// let hints = serde_json::json!({"hints": [{"name": "opus"}, {"name": "sonnet"}]});
    /// sampling.model_preferences = Some(hints);
    /// assert_eq!(sampling.choose_model(&["haiku-4", "sonnet-4"]), Some("sonnet-4"));
    /// assert_eq!(sampling.choose_model(&["haiku-4"]), None);
    /// ```
    pub fn choose_model<'m>(&self, models: &[&'m str]) -> Option<&'m str> {
        let hints = self.preferences().hints.into_iter();
        let mut names = hints.filter_map(|hint| hint.name.filter(|name| !name.is_empty()));
        names.find_map(|name| {
            let name = name.to_lowercase();
            let fits = |model: &&&str| model.to_lowercase().contains(&name);
            models.iter().find(fits).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RequestError;
    use crate::mcp::Revision;
    use serde_json::{Value, json};

    fn asked(preferences: Value) -> Sampling {
        let mut sampling = Sampling::user("?", 1);
        sampling.model_preferences = Some(preferences);
        sampling
    }

    /// R-SMP-06.
    #[test]
    fn hints_are_taken_in_their_order_and_priorities_lie_between_nothing_and_all() {
        let models = ["gamma-1", "Beta-2", "alpha-3", "beta-1"];
        let hints = |names: &[&str]| {
            let hints: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
            asked(json!({ "hints": hints }))
        };
        for (names, chosen) in [
            (vec!["alpha", "beta"], Some("alpha-3")),
            (vec!["beta", "alpha"], Some("Beta-2")),
            (vec!["delta", "GAMMA"], Some("gamma-1")),
            (vec!["beta-1"], Some("beta-1")),
            (vec!["", "delta"], None),
            (vec![], None),
        ] {
            assert_eq!(hints(&names).choose_model(&models), chosen, "{names:?}");
        }
        assert_eq!(asked(json!({"hints": [{}]})).choose_model(&models), None);
        let check = |preferences: Value| {
            asked(preferences).check(Revision::V2026_07_28, r#"{"sampling":{}}"#)
        };
        for good in [
            json!({}),
            json!({"costPriority": 0, "speedPriority": 1, "intelligencePriority": 0.5}),
        ] {
            assert_eq!(check(good), Ok(()));
        }
        for name in ["costPriority", "speedPriority", "intelligencePriority"] {
            for priority in [-0.1, 1.1] {
                let refused = check(json!({ name: priority }));
                assert!(matches!(refused, Err(RequestError::Misuse(_))), "{name}");
            }
        }
    }
}
