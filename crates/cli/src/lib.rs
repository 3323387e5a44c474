//! The command line: reads inputs, runs the checks, writes reports, and says it all with one exit code.

mod against;
pub mod args;
mod beside;
mod bundles;
mod check;
mod choice;
mod collect;
mod deadline;
mod debug_pods;
mod decisions;
mod declared;
mod dry_run;
mod explain;
mod failure;
mod fix;
mod from_logs;
mod interrupt;
mod manifest;
mod nixl;
mod nixl_live;
mod node;
mod observe;
mod output;
mod overwrite;
mod pod_file;
mod pods;
mod progress;
mod rbac;
mod render;
mod replay;
mod rights;
mod sources;
mod transfer;
mod twin;
mod vars;
mod yaml_text;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use model::Exit;
use model::exit::{FailOn, exit_of};

use crate::args::{Cli, Command, EnvArgs, FailOnArg, OutputArgs, SchemaOf};
use crate::failure::Failure;
use crate::output::Outputs;
use crate::overwrite::Target;

pub use explain::{of_check as check_page, of_inputs as input_page, of_policy as policy_page};

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
            refuse(&error);
            return ExitCode::from(code);
        }
    };
    let code = match run(cli) {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure.message);
            ExitCode::from(failure.exit.code())
        }
    };
    // What nobody waited for when the run was ended may still be there.
    cluster::end_programs();
    code
}

fn complain(message: &str) {
    let _closed_terminal = writeln!(
        io::stderr(),
        "check-interconnect: {}",
        report::visible(message)
    );
}

/// Tells what is about to be done, beside the report.
fn tell(text: &str) {
    let mut err = io::stderr().lock();
    for line in text.lines() {
        let _closed_terminal = writeln!(err, "{}", report::visible(line));
    }
}

/// What clap says, which repeats what was typed.
fn refuse(error: &clap::Error) {
    let text = error.render().to_string();
    let visible: String = text
        .split_inclusive('\n')
        .map(|line| {
            line.strip_suffix('\n')
                .map_or_else(|| report::visible(line), |l| report::visible(l) + "\n")
        })
        .collect();
    let _closed_terminal = if error.use_stderr() && visible != text {
        io::stderr().write_all(visible.as_bytes())
    } else {
        error.print()
    };
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let done = match cli.command {
        Command::Env(args) => env(&args),
        Command::Node(args) => node::run(&args),
        Command::Nixl(args) => return nixl::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Manifest(args) => print(&manifest::text(&args)?),
        Command::Rbac(args) => rbac::text(&args).and_then(|t| print(&t)),
        Command::Explain(args) => explain::text(args.name.as_deref()).and_then(|t| print(&t)),
        Command::Vars(args) => vars::text(&args).and_then(|t| print(&t)),
        Command::Completions { shell } => print(&completions(shell)),
        Command::Man { command } => man(command.as_deref()).and_then(|t| print(&t)),
        Command::Schema { of } => print(&match of {
            SchemaOf::Json => report::schema_report(),
            SchemaOf::Jsonl => report::schema_line(),
            SchemaOf::Config => policy::schema_config(),
        }),
    };
    Ok(done?)
}

fn env(args: &EnvArgs) -> Result<ExitCode, String> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    let mut targets = outputs.files();
    targets.extend(args.policy.write_baseline.as_deref().map(|path| Target {
        option: "--write-baseline".to_owned(),
        path,
    }));
    let beside = [&args.policy.config, &args.policy.baseline];
    let beside: Vec<&Path> = beside
        .into_iter()
        .flatten()
        .chain(&args.values)
        .map(PathBuf::as_path)
        .collect();
    overwrite::refuse(&targets, &args.paths, &beside)?;
    decisions::env(args)
}

fn finish(report: &model::Report, output: &OutputArgs) -> Result<ExitCode, String> {
    Outputs::from_args(output)?.write(report)?;
    Ok(exit(report, output))
}

/// What a report's exit code is.
fn exit(report: &model::Report, output: &OutputArgs) -> ExitCode {
    if let Some(signal) = interrupt::signal() {
        return ExitCode::from(128_u8.saturating_add(signal));
    }
    let fail_on = match output.fail_on {
        FailOnArg::Fail => FailOn::Fail,
        FailOnArg::Warn => FailOn::Warn,
        FailOnArg::Unproven => FailOn::Unproven,
        FailOnArg::Never => FailOn::Never,
    };
    ExitCode::from(exit_of(report, fail_on).code())
}

fn print(text: &str) -> Result<ExitCode, String> {
    match io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!(
            "cannot write to standard output: {}",
            sources::reason(&error)
        )),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A completion script.
pub fn completions(shell: clap_complete::Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "check-interconnect", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A manual page: of one command, or the main one.
pub fn man(command: Option<&str>) -> Result<String, String> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root.clone(),
        Some(name) => root
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| {
                format!(
                    "no command is called '{}'; check-interconnect --help lists them",
                    name.escape_debug()
                )
            })?
            .name(format!("check-interconnect-{name}")),
    };
    let mut out = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut out)
        .map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
