//! `cargo xtask bench`: how fast `env` is, always as a ratio to something else in the same run.
//!
//! Whole processes are timed, alternating, so that what else the machine does hits both sides. The figures depend
//! on the machine; the ratios hardly do.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of each side.
const RUNS: usize = 15;

/// One side of a comparison.
struct Side {
    name: String,
    command: Vec<String>,
}

impl Side {
    fn new(name: &str, command: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            command: command.iter().map(|w| (*w).to_owned()).collect(),
        }
    }

    fn time(&self) -> Result<Duration, String> {
        let (program, args) = self.command.split_first().ok_or("an empty command")?;
        let start = Instant::now();
        Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|e| format!("{}: {e}", self.name))?;
        Ok(start.elapsed())
    }
}

/// Compares two commands and prints one line.
fn compare(what: &str, ours: &Side, other: &Side, promise: &str) -> Result<String, String> {
    let mut a = Vec::new();
    let mut b = Vec::new();
    for side in [ours, other] {
        // Once to warm the caches.
        side.time()?;
    }
    for _ in 0..RUNS {
        a.push(ours.time()?);
        b.push(other.time()?);
    }
    a.sort();
    b.sort();
    let ms = |d: Option<&Duration>| d.map_or(0.0, |d| d.as_secs_f64() * 1000.0);
    let (a_min, b_min) = (ms(a.first()), ms(b.first()));
    let (a_mid, b_mid) = (ms(a.get(RUNS / 2)), ms(b.get(RUNS / 2)));
    Ok(format!(
        "{what}\n  {:<44} min {a_min:8.2} ms  median {a_mid:8.2} ms\n  {:<44} min {b_min:8.2} ms  median {b_mid:8.2} ms\n  ratio: {:.2} by minimum, {:.2} by median ({promise})\n",
        ours.name,
        other.name,
        a_min / b_min,
        a_mid / b_mid
    ))
}

/// A recipe of about 250 lines.
fn recipe(root: &Path) -> Result<String, String> {
    let example = fs::read_to_string(root.join("examples/disagg-rdma/deploy.yaml"))
        .map_err(|e| e.to_string())?;
    let mut text = example.clone();
    while text.lines().count() < 250 {
        text.push_str("\n---\n");
        text.push_str(&example);
    }
    let kept: Vec<&str> = text.lines().collect();
    Ok(kept.join("\n") + "\n")
}

/// The peak memory of a command in KiB, where GNU time tells it.
fn peak(command: &[&str]) -> Option<u64> {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%M"])
        .args(command)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .last()?
        .trim()
        .parse()
        .ok()
}

/// Builds the program as it is released.
pub(crate) fn release(root: &Path) -> Result<PathBuf, String> {
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "check-interconnect",
            "-p",
            "xtask",
        ])
        .current_dir(root)
        .status()
        .map_err(|e| e.to_string())?;
    if !built.success() {
        return Err("the release build failed".to_owned());
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/check-interconnect"))
}

/// Runs everything and prints it.
pub(crate) fn run(root: &Path, recipes: Option<PathBuf>) -> Result<String, String> {
    let binary = release(root)?;
    let xtask = binary.with_file_name("xtask").display().to_string();
    let binary = binary.display().to_string();
    let scratch =
        std::env::temp_dir().join(format!("check-interconnect-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|e| e.to_string())?;
    let mut out = String::new();

    let one = scratch.join("recipe.yaml");
    fs::write(&one, recipe(root)?).map_err(|e| e.to_string())?;
    let one = one.display().to_string();
    match python() {
        Some(python) => out.push_str(&compare(
            "one recipe of 250 lines, against starting Python",
            &Side::new(
                "check-interconnect env recipe.yaml",
                &[&binary, "env", &one],
            ),
            &Side::new("python -c pass", &[&python, "-c", "pass"]),
            "promised: at most 1",
        )?),
        None => out.push_str("no python3 here: the start of Python was not compared\n"),
    }

    if let Some(python) = python() {
        // Without tools: a PATH that has nothing but a shell.
        let bare = scratch.join("bin");
        fs::create_dir_all(&bare).map_err(|e| e.to_string())?;
        #[cfg(unix)]
        std::os::unix::fs::symlink("/bin/sh", bare.join("sh")).map_err(|e| e.to_string())?;
        let path = format!("PATH={}", bare.display());
        out.push_str(&compare(
            "this host without tools, against starting Python",
            &Side::new(
                "check-interconnect node",
                &["/usr/bin/env", &path, &binary, "node"],
            ),
            &Side::new("python -c pass", &[&python, "-c", "pass"]),
            "promised: at most 5",
        )?);
    }

    let directory = match recipes {
        Some(directory) => directory,
        None => own_recipes(root, &scratch)?,
    };
    let shown = directory.display().to_string();
    out.push_str(&compare(
        &format!("a directory of recipes ({shown}), against granit-parser's bare events"),
        &Side::new(
            "check-interconnect env DIRECTORY -o json",
            &[&binary, "env", &shown, "-o", "json"],
        ),
        &Side::new(
            "bare events on the same bytes",
            &[&xtask, "bare-events", &shown],
        ),
        "promised: at most 2",
    )?);

    out.push_str("one file, many documents: time and memory against its size\n");
    let document = fs::read_to_string(root.join("examples/disagg-rdma/deploy.yaml"))
        .map_err(|e| e.to_string())?;
    let mut first = None;
    for megabytes in [1_usize, 10, 100] {
        let path = scratch.join(format!("{megabytes}.yaml"));
        let mut file = std::io::BufWriter::new(fs::File::create(&path).map_err(|e| e.to_string())?);
        let mut written = 0;
        // Data as real manifests hold it, one recipe in front.
        file.write_all(document.as_bytes())
            .map_err(|e| e.to_string())?;
        while written < megabytes * 1024 * 1024 {
            let data = format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: data-{written}\ndata:\n  key: \"some value of usual length\"\n  other: [1, 2, 3]\n"
            );
            file.write_all(data.as_bytes()).map_err(|e| e.to_string())?;
            written += data.len();
        }
        drop(file);
        let shown = path.display().to_string();
        let side = Side::new("", &[&binary, "env", &shown, "-o", "short"]);
        side.time()?;
        let time = side.time()?.as_secs_f64() * 1000.0;
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        let per_megabyte = time / megabytes as f64;
        let base = *first.get_or_insert(per_megabyte);
        let memory = peak(&[&binary, "env", &shown, "-o", "short"]).map_or_else(
            || "memory not measured".to_owned(),
            |k| format!("peak memory {} MiB", k / 1024),
        );
        let ratio = per_megabyte / base;
        let _infallible = writeln!(
            out,
            "  {megabytes:>3} MiB: {time:9.1} ms, {ratio:.2} times the first per MiB, {memory}"
        );
    }
    out.push_str("one file of 20 MiB, the examples over and over: memory in each format\n");
    let path = scratch.join("recipes.yaml");
    fs::write(&path, repeated(root, 20 * 1024 * 1024)?).map_err(|e| e.to_string())?;
    let shown = path.display().to_string();
    for format in ["short", "text", "json", "jsonl"] {
        let memory = peak(&[&binary, "env", &shown, "-o", format]).map_or_else(
            || "memory not measured".to_owned(),
            |k| format!("peak memory {} MiB", k / 1024),
        );
        let _infallible = writeln!(out, "  {format:<5}: {memory}");
    }
    out.push_str("  promised: time linear, memory at most 10 times the file plus 20 MB\n");
    let _left_behind = fs::remove_dir_all(&scratch);
    Ok(out)
}

/// The interpreter itself: a version manager's shim would be slower.
fn python() -> Option<String> {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!path.is_empty()).then_some(path)
}

/// The examples, often enough to be a directory worth walking.
fn own_recipes(root: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let directory = scratch.join("recipes");
    fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let examples = fs::read_dir(root.join("examples")).map_err(|e| e.to_string())?;
    for example in examples.flatten() {
        let Ok(text) = fs::read_to_string(example.path().join("deploy.yaml")) else {
            continue;
        };
        for copy in 0..60 {
            let name = format!("{}-{copy}.yaml", example.file_name().to_string_lossy());
            fs::write(directory.join(name), &text).map_err(|e| e.to_string())?;
        }
    }
    Ok(directory)
}

/// The recipes of the examples until there are so many bytes of them, each with a name of its own.
fn repeated(root: &Path, bytes: usize) -> Result<String, String> {
    let mut examples = Vec::new();
    for example in fs::read_dir(root.join("examples"))
        .map_err(|e| e.to_string())?
        .flatten()
    {
        examples.extend(fs::read_to_string(example.path().join("deploy.yaml")));
    }
    examples.sort();
    if examples.is_empty() {
        return Err("no examples/*/deploy.yaml".to_owned());
    }
    let mut text = String::with_capacity(bytes);
    for (copy, example) in examples.iter().cycle().enumerate() {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&example.replacen("  name: ", &format!("  name: copy-{copy}-"), 1));
        text.push_str("\n---\n");
    }
    Ok(text)
}

/// Parses every file of a directory and counts the events: the least that a linter has to do.
pub(crate) fn bare_events(directory: &Path) -> Result<String, String> {
    let mut events = 0_u64;
    let mut bytes = 0_usize;
    let mut names: Vec<PathBuf> = fs::read_dir(directory)
        .map_err(|e| e.to_string())?
        .flatten()
        .map(|e| e.path())
        .collect();
    names.sort();
    for path in names {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        bytes += text.len();
        let mut parser = granit_parser::Parser::new_from_str(&text);
        loop {
            match parser.next_event() {
                Some(Ok(_)) => events += 1,
                Some(Err(_)) => match parser.proceed_next_document() {
                    Ok(true) => {}
                    _ => break,
                },
                None => break,
            }
        }
    }
    Ok(format!("{events} events in {bytes} bytes\n"))
}
