//! A program's command line as JSON.

use super::TimeSpan;
use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};
use std::any::TypeId;

/// Returns the commands with their help and arguments.
pub(super) fn described(mut command: Command) -> Value {
    let whole = command.clone();
    command.build();
    let commands = command.get_subcommands().map(|command| {
        let arguments = command.get_arguments().map(argument);
        json!({
            "name": command.get_name(),
            "about": command.get_about().map(ToString::to_string),
            "help": help(&whole, command.get_name()),
            "hidden": command.is_hide_set(),
            "arguments": arguments.collect::<Vec<_>>(),
        })
    });
    let commands: Vec<Value> = commands.collect();
    json!({ "commands": commands })
}

/// Returns what `--help` prints for a command.
fn help(whole: &Command, name: &str) -> Option<String> {
    let arguments = [whole.get_name(), name, "--help"];
    let printed = whole.clone().try_get_matches_from(arguments).err();
    printed.map(|help| help.to_string())
}

fn argument(arg: &Arg) -> Value {
    let takes_value = arg.get_action().takes_values();
    let names = arg.get_value_names().unwrap_or_default();
    let is_many = arg.get_num_args().is_some_and(|it| it.max_values() > 1);
    json!({
        "option": arg.get_long(),
        "value": names.first().filter(|_| takes_value).map(ToString::to_string),
        "hidden": arg.is_hide_set(),
        "several": matches!(arg.get_action(), ArgAction::Append) || is_many,
        "delimiter": arg.get_value_delimiter(),
        "is_time": arg.get_value_parser().type_id() == TypeId::of::<TimeSpan>(),
    })
}
