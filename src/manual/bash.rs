//! Completions for Bash.
//!
//! clap's own script completes paths word by word, so that it splits names at blanks and adds no
//! slash to folders. This one leaves paths to Bash.

use clap::{Arg, Command, ValueHint};
use std::fmt::Write;

/// Starts of the names of values that are paths, or begin with one.
const PATHS: [&str; 5] = ["FILE", "NET", "BOOK", "PROGRAM", "FOLDER"];

/// Returns the script for a program, whose commands have no commands of their own.
pub(super) fn script(program: &Command) -> String {
    let mut program = program.clone();
    // Adds --help, --version and `help`.
    program.build();
    let name = program.get_name();
    let function = format!("_{}", name.replace('-', "_"));
    let mut values = String::new();
    let mut words = String::new();
    describe("", &program, &mut values, &mut words);
    for command in program.get_subcommands() {
        describe(command.get_name(), command, &mut values, &mut words);
    }
    format!(
        "{function}() {{
    local cur=$2 prev=$3 command= word words=
    COMPREPLY=()
    # Bash passes the = of --option=value as a word.
    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
    for word in \"${{COMP_WORDS[@]:1:COMP_CWORD - 1}}\"; do
        if [[ $word != -* ]]; then command=$word; break; fi
    done
    # To return without words lets Bash complete a path.
    case $command,$prev in
{values}        *)
            case $command in
{words}                *) return ;;
            esac ;;
    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))
    # Nothing else fits here.
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || compopt +o bashdefault +o default 2>/dev/null
}}
complete -o bashdefault -o default -F {function} {name}
"
    )
}

/// Adds the values of a command's options, and the words that it accepts.
fn describe(name: &str, command: &Command, values: &mut String, words: &mut String) {
    let mut options = Vec::new();
    for option in command
        .get_arguments()
        .filter(|it| !it.is_positional() && !it.is_hide_set())
    {
        let short = option.get_short().map(|short| format!("-{short}"));
        let long = option.get_long().map(|long| format!("--{long}"));
        let spellings: Vec<String> = short.into_iter().chain(long).collect();
        if option.get_action().takes_values() {
            let patterns = spellings.iter().map(|it| format!("{name},{it}"));
            let patterns = patterns.collect::<Vec<_>>().join(" | ");
            let action = match is_path(option) {
                true => "return".to_owned(),
                false => format!("words='{}'", possible(option)),
            };
            writeln!(values, "        {patterns}) {action} ;;").expect("a string");
        }
        options.extend(spellings);
    }
    let commands = command.get_subcommands().map(Command::get_name);
    options.extend(commands.map(str::to_owned));
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    options.extend(
        positionals
            .iter()
            .map(|it| possible(it))
            .filter(|it| !it.is_empty()),
    );
    let files = match positionals.iter().any(|it| is_path(it)) {
        true => "[[ $cur == -* ]] || return; ",
        false => "",
    };
    let options = options.join(" ");
    writeln!(
        words,
        "                '{name}') {files}words='{options}' ;;"
    )
    .expect("a string");
}

/// Returns whether an argument is a path.
pub(super) fn is_path(argument: &Arg) -> bool {
    let hint = argument.get_value_hint();
    let names = argument.get_value_names().unwrap_or_default();
    let is_named = names
        .iter()
        .any(|name| PATHS.iter().any(|path| name.starts_with(path)));
    matches!(
        hint,
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
    ) || is_named
}

/// Returns the words that an argument accepts.
fn possible(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let names: Vec<&str> = shown.map(|value| value.get_name()).collect();
    names.join(" ")
}
