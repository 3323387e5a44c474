//! The rules of the agentskills specification for `SKILL.md`, and ours on top, in our own words.

/// Keys that the front matter may have.
const KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// The front matter, without its fences.
pub fn front_matter(skill_md: &str) -> Option<&str> {
    skill_md
        .strip_prefix("---\n")?
        .split_once("\n---\n")
        .map(|(front, _)| front)
}

/// What follows the front matter.
pub fn body(skill_md: &str) -> &str {
    skill_md
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
        .map_or(skill_md, |(_, body)| body)
}

/// The value of a key of the front matter; all of ours stand on one line.
pub fn value<'t>(front: &'t str, key: &str) -> Option<&'t str> {
    front
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(|v| v.trim().trim_matches('"'))
}

/// One rule, and what breaks it.
pub struct Rule {
    /// The rule.
    pub rule: &'static str,
    /// Empty where it holds.
    pub broken: Vec<String>,
}

/// Holds a skill against every rule.
pub fn check(folder: &str, skill_md: &str) -> Vec<Rule> {
    let front = front_matter(skill_md).unwrap_or_default();
    let lines = skill_md.lines().count();
    let keys = front
        .lines()
        .filter(|l| !l.starts_with([' ', '#']) && !l.is_empty())
        .map(|l| l.split(':').next().unwrap_or_default());
    let name = value(front, "name").unwrap_or_default();
    let description = value(front, "description")
        .unwrap_or_default()
        .chars()
        .count();
    let compatibility = value(front, "compatibility")
        .unwrap_or_default()
        .chars()
        .count();
    let metadata: Vec<&str> = front
        .lines()
        .skip_while(|l| *l != "metadata:")
        .skip(1)
        .take_while(|l| l.starts_with(' '))
        .collect();
    vec![
        Rule {
            rule: "front matter with these keys only: name, description, license, compatibility, metadata, allowed-tools",
            broken: if front.is_empty() {
                vec!["there is no front matter".to_owned()]
            } else {
                keys.filter(|k| !KEYS.contains(k))
                    .map(str::to_owned)
                    .collect()
            },
        },
        Rule {
            rule: "name: that of the folder; lower-case letters, digits and single hyphens; at most 64 characters",
            broken: broken(
                name != folder
                    || name.is_empty()
                    || name.len() > 64
                    || name.starts_with('-')
                    || name.ends_with('-')
                    || name.contains("--")
                    || !name
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                || name.to_owned(),
            ),
        },
        Rule {
            rule: "description: 50 to 150 characters (the specification allows 1 to 1024)",
            broken: broken(!(50..=150).contains(&description), || {
                format!("{description} characters")
            }),
        },
        Rule {
            rule: "compatibility: 1 to 500 characters",
            broken: broken(!(1..=500).contains(&compatibility), || {
                format!("{compatibility} characters")
            }),
        },
        Rule {
            rule: "metadata: from strings to strings",
            broken: metadata
                .iter()
                .filter(|l| {
                    let value = l.split_once(": ").map(|(_, v)| v.trim());
                    // Quotes keep a number or a truth value a string.
                    !value.is_some_and(|v| v.len() > 2 && v.starts_with('"') && v.ends_with('"'))
                })
                .map(|l| l.trim().to_owned())
                .collect(),
        },
        Rule {
            rule: "tools are declared",
            broken: broken(
                value(front, "allowed-tools").is_none_or(str::is_empty),
                || "allowed-tools is missing".to_owned(),
            ),
        },
        Rule {
            rule: "SKILL.md has fewer than 500 lines",
            broken: broken(lines >= 500, || format!("{lines} lines")),
        },
    ]
}

fn broken(is: bool, what: impl FnOnce() -> String) -> Vec<String> {
    if is { vec![what()] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(front: &str) -> usize {
        check("my-skill", &format!("---\n{front}\n---\n\n# Body\n"))
            .iter()
            .map(|r| r.broken.len())
            .sum()
    }

    #[test]
    fn finds_what_is_wrong() {
        let good = "name: my-skill\ndescription: Says what it does and when it is to be used, in one sentence.\n\
compatibility: anything\nmetadata:\n  version: \"1\"\nallowed-tools: Read";
        assert_eq!(problems(good), 0);
        assert_eq!(problems(&good.replace("my-skill", "My-Skill")), 1);
        assert_eq!(problems(&good.replace("name: my-skill", "name: other")), 1);
        assert_eq!(problems(&good.replace("\"1\"", "1")), 1);
        assert_eq!(
            problems(&good.replace("  version: \"1\"", "  tags:\n    - a")),
            2
        );
        assert_eq!(problems(&format!("{good}\ntags: a")), 1);
        assert_eq!(
            problems(&good.replace("allowed-tools: Read", "license: MIT")),
            1
        );
        assert_eq!(problems("name: my-skill"), 3);
        assert!(
            check("x", "no front matter")
                .iter()
                .any(|r| !r.broken.is_empty())
        );
    }
}
