//! The parts that the command lines of `tessera` and `tessera-train` share: parsing, time spans,
//! and the options that select a network and its device.

mod described;
mod network;
mod time_span;

pub use network::{
    BackendArguments, DeviceArguments, NetworkArguments, PlaceArguments, network_file,
};
pub use time_span::TimeSpan;

use crate::exit::{SUCCESS, exit};
use clap::{ArgMatches, Command, Parser};
use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::str::FromStr;

/// If this is the only argument, the program prints its whole command line as JSON. A test compares
/// the JSON with the table of names.
const DESCRIBE: &str = "--describe-command-line";
/// Options that many commands share. Their values are explained only in the guide.
const EXPLAINED_ELSEWHERE: [&str; 3] = ["agent", "backend", "precision"];
/// The heading of commands without a group.
const OTHERS: &str = "Other";

/// A group of commands in a program's help: its heading and the commands' names.
pub type Group = (&'static str, &'static [&'static str]);

/// Parses `NAME=VALUE`.
///
/// # Errors
/// Says how an option is written.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write the option's name, `=` and its value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Parses a number for which a rule holds.
///
/// # Errors
/// States the rule.
pub fn number_that<T: FromStr>(
    text: &str,
    holds: impl FnOnce(&T) -> bool,
    rule: &str,
) -> Result<T, String> {
    let number: T = text.parse().map_err(|_| "not a number".to_owned())?;
    match holds(&number) {
        true => Ok(number),
        false => Err(format!("it must be {rule}")),
    }
}

/// Parses this process's command line. Exits if the command line is invalid, or if it requests help
/// or the version.
pub fn parse<C: Parser>(groups: &[Group]) -> C {
    let mut command = grouped(shortened(C::command()), groups);
    if std::env::args_os().skip(1).eq([DESCRIBE]) {
        // The reader may have closed the pipe.
        let _ = writeln!(stdout(), "{}", described::described(command));
        exit(SUCCESS);
    }
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let read = |matches: ArgMatches| C::from_arg_matches(&matches);
    let read = matches.and_then(|matches| read(matches).map_err(|it| it.format(&mut command)));
    read.unwrap_or_else(|error| {
        let _ = error.print();
        exit(error.exit_code())
    })
}

/// Shortens the help for options that many commands share: their possible values are listed without
/// explanations.
fn shortened(mut command: Command) -> Command {
    for subcommand in command.get_subcommands_mut() {
        *subcommand = std::mem::take(subcommand).mut_args(|arg| {
            if !EXPLAINED_ELSEWHERE.contains(&arg.get_id().as_str()) {
                return arg;
            }
            let values = arg.get_possible_values();
            let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let help = format!("{help} [possible values: {}]", values.join(", "));
            arg.hide_possible_values(true).help(help)
        });
    }
    command
}

/// Returns the command with its subcommands in groups.
fn grouped(command: Command, groups: &[Group]) -> Command {
    let style = *command.get_styles().get_header();
    let mut text = String::new();
    let visible: Vec<_> = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .collect();
    let grouped: Vec<&str> = groups
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let others = visible.iter().map(|it| it.get_name());
    let others: Vec<&str> = others.filter(|name| !grouped.contains(name)).collect();
    let width = visible.iter().map(|it| it.get_name().len()).max();
    let width = width.unwrap_or_default();
    let last = (OTHERS, &*others);
    let all = groups.iter().map(|(title, names)| (*title, *names));
    for (title, names) in all.chain([last]) {
        let members: Vec<_> = names
            .iter()
            .filter_map(|name| visible.iter().find(|it| it.get_name() == *name))
            .collect();
        if members.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{style}{title}:{style:#}");
        for member in members {
            let about = member.get_about().map(ToString::to_string);
            let (name, about) = (member.get_name(), about.unwrap_or_default());
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
        text.push('\n');
    }
    let _ = write!(text, "{style}Options:{style:#}");
    command
        .after_help(text)
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n{options}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_listed_in_groups_and_none_is_lost() {
        let sub = |name: &'static str| Command::new(name).about(format!("Do {name}"));
        let command = Command::new("program").about("It works");
        let command = command.subcommands([sub("pack"), sub("run"), sub("new")]);
        let command = command.subcommand(sub("secret").hide(true));
        let groups: [Group; 3] = [
            ("Training", &["run"]),
            ("Data", &["pack"]),
            ("None", &["gone"]),
        ];
        let help = grouped(command, &groups).render_help().to_string();
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{help}"));
        assert!(at("Training:\n  run") < at("Data:\n  pack") && at("Data:") < at("Other:\n  new"));
        assert!(at("Other:") < at("Options:\n  -h, --help"), "{help}");
        assert!(
            !help.contains("secret") && !help.contains("None:"),
            "{help}"
        );
    }

    #[test]
    fn values_of_common_options_are_listed_on_a_line() {
        use crate::backend::Precision;
        #[derive(clap::Parser)]
        #[command(name = "x")]
        struct Cli {
            #[command(subcommand)]
            _command: Sub,
        }
        #[derive(clap::Subcommand)]
        enum Sub {
            /// Do it
            Do {
                /// The format
                #[arg(long, value_enum, default_value_t)]
                precision: Precision,
            },
        }
        let mut command = shortened(<Cli as clap::CommandFactory>::command());
        let told = command.try_get_matches_from_mut(["x", "do", "--help"]);
        let help = told.unwrap_err().to_string();
        let line = help.lines().find(|line| line.contains("--precision"));
        let line = line.unwrap();
        assert!(
            line.contains("The format [possible values: auto, f32,"),
            "{help}"
        );
        assert!(line.contains("[default: auto]"), "{help}");
        let Sub::Do { precision } = Cli::parse_from(["x", "do"])._command;
        assert_eq!(precision, Precision::Auto);
    }
}
