//! Where reports go: one format on standard output, any number into files.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use model::Report;
use report::{Format, Options};

use crate::args::{Color, OutputArgs};
use crate::overwrite;
use crate::sources::reason;

/// Bytes that are written at once.
const BUFFER: usize = 64 * 1024;

/// One output that was asked for.
struct Target {
    format: Format,
    file: Option<PathBuf>,
}

/// All outputs of a run.
pub(crate) struct Outputs {
    targets: Vec<Target>,
    color: Color,
    verbose: bool,
}

impl Outputs {
    /// Reads `-o`. The error says what was got and what was expected.
    pub(crate) fn from_args(args: &OutputArgs) -> Result<Self, String> {
        let mut targets = Vec::new();
        for given in &args.output {
            let (format, file) = split(given);
            let format = format.parse::<Format>().map_err(|e| e.to_string())?;
            if file.as_ref().is_some_and(|f| f.as_os_str().is_empty()) {
                return Err(format!(
                    "no file name behind {format}=; expected -o {format}=FILE, or -o {format} for standard output"
                ));
            }
            targets.push(Target { format, file });
        }
        let twice = targets
            .iter()
            .enumerate()
            .find(|(at, t)| t.file.is_some() && targets.iter().take(*at).any(|o| o.file == t.file));
        if let Some(file) = twice.and_then(|(_, t)| t.file.as_deref()) {
            return Err(format!(
                "two formats for one file, {}; give each its own",
                file.display()
            ));
        }
        if targets.iter().filter(|t| t.file.is_none()).count() > 1 {
            return Err("two formats for standard output; give all but one a file: -o text -o json=report.json".to_owned());
        }
        if targets.is_empty() {
            targets.push(Target {
                format: Format::Text,
                file: None,
            });
        }
        Ok(Self {
            targets,
            color: args.color,
            verbose: args.verbose,
        })
    }

    /// Refuses formats that something does not have.
    pub(crate) fn only(&self, formats: &[Format], what: &str) -> Result<(), String> {
        let other = self.targets.iter().find(|t| !formats.contains(&t.format));
        match other {
            None => Ok(()),
            Some(target) => {
                let names: Vec<&str> = formats.iter().map(|f| f.as_str()).collect();
                Err(format!(
                    "{what} has no format {}; it has {}",
                    target.format,
                    names.join(" and ")
                ))
            }
        }
    }

    /// The files that will be written.
    pub(crate) fn files(&self) -> Vec<overwrite::Target<'_>> {
        self.targets
            .iter()
            .filter_map(|target| {
                Some(overwrite::Target {
                    option: format!("-o {}", target.format),
                    path: target.file.as_deref()?,
                })
            })
            .collect()
    }

    /// Writes the report everywhere.
    pub(crate) fn write(&self, report: &Report) -> Result<(), String> {
        self.write_each(|format, options, out| report::render(format, report, options, out))
    }

    /// Writes a text of another kind everywhere.
    pub(crate) fn write_texts(
        &self,
        text: impl Fn(Format, &Options) -> String,
    ) -> Result<(), String> {
        self.write_each(|format, options, out| out.write_all(text(format, options).as_bytes()))
    }

    /// Files first: standard output may be closed by its reader at any time.
    fn write_each(
        &self,
        render: impl Fn(Format, &Options, &mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), String> {
        for target in &self.targets {
            if let Some(path) = &target.file {
                let options = self.options(false);
                atomically(path, |out| render(target.format, &options, out))
                    .map_err(|e| format!("cannot write {}: {}", path.display(), reason(&e)))?;
            }
        }
        for target in self.targets.iter().filter(|t| t.file.is_none()) {
            let terminal = io::stdout().is_terminal();
            let options = self.options(terminal);
            let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            let written = render(target.format, &options, &mut out).and_then(|()| out.flush());
            match written {
                // The reader has seen enough (head, less): no error of ours.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => {
                    return Err(format!(
                        "cannot write to standard output: {}",
                        reason(&error)
                    ));
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn options(&self, terminal: bool) -> Options {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        };
        let width = terminal_size::terminal_size()
            .filter(|_| terminal)
            .map_or(100, |(width, _)| usize::from(width.0).clamp(40, 140));
        Options {
            color,
            width,
            version: env!("CARGO_PKG_VERSION"),
            verbose: self.verbose,
            ascii: terminal && !utf8_locale(),
        }
    }
}

/// Whether the locale promises UTF-8. Nothing set says nothing, and nearly all terminals take it.
fn utf8_locale() -> bool {
    let value = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    value.is_none_or(|v| {
        let v = v.to_ascii_lowercase();
        v.contains("utf-8") || v.contains("utf8")
    })
}

/// `FORMAT[=FILE]`; a file name need not be UTF-8.
fn split(given: &OsStr) -> (String, Option<PathBuf>) {
    let bytes = given.as_encoded_bytes();
    let Some(at) = bytes.iter().position(|b| *b == b'=') else {
        return (given.to_string_lossy().into_owned(), None);
    };
    let format = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default()).into_owned();
    (format, Some(tail(given, at + 1)))
}

#[cfg(unix)]
fn tail(given: &OsStr, from: usize) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(OsStr::from_bytes(
        given.as_bytes().get(from..).unwrap_or_default(),
    ))
}

#[cfg(not(unix))]
fn tail(given: &OsStr, from: usize) -> PathBuf {
    PathBuf::from(given.to_string_lossy().get(from..).unwrap_or_default())
}

/// Writes beside the file and renames, so that a reader never sees half a report.
pub(crate) fn atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    // A device or a pipe cannot be replaced.
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    // A link stays a link, and a file stays as readable as it was.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(path).map(|m| m.permissions()).ok();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let result = (|| {
        let file = File::create(&part)?;
        if let Some(permissions) = before {
            file.set_permissions(permissions)?;
        }
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()?;
        fs::rename(&part, path)
    })();
    if result.is_err() {
        let _gone = fs::remove_file(&part);
    }
    result
}
