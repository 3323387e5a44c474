//! What settings can become that are decided at start: branches of the start script that may be taken, and defaults that hold
//! unless something outside the input defines the variable.

use model::{Setting, Value};

use crate::credentials;
use crate::draft::EnvValue;
use crate::expand::Variables;

/// Values at most that are kept of settings that are decided at start. A script of hundreds of branches is no recipe.
const MAX_POSSIBLE: usize = 16;

/// What settings that are decided at start can become, as far as the input shows it.
pub(crate) fn values(variables: &Variables<'_>, settings: &[Setting]) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    for setting in settings.iter().filter(|s| s.value.literal().is_none()) {
        for env in variables
            .list
            .iter()
            .rev()
            .filter(|e| e.name == setting.name)
        {
            if let Some(text) = variables.possible(env) {
                let value = Value::Literal(credentials::masked(&text).into_owned());
                let known = found
                    .iter()
                    .any(|f| f.name == setting.name && f.value == value);
                if !known && found.len() < MAX_POSSIBLE {
                    found.push(Setting {
                        name: env.name.clone(),
                        value,
                        form: env.form,
                        place: env.place.clone(),
                    });
                }
            }
            // What is set in any case replaces what was set before it.
            if !matches!(env.value, EnvValue::Conditional(_)) {
                break;
            }
        }
    }
    found
}
