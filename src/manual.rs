//! Shell completions and manual pages, generated from both programs' command lines.

mod bash;

use crate::version::version;
use clap::{Command, ValueHint};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Requests at the start of a manual page: one blank after a sentence, and no justification, which
/// would widen blanks.
const FORMAT: &str = ".ss 12 0\n.ad l\n";
/// The end of clap's script for zsh, which registers the completions.
const ZSH_END: &str = "    compdef ";

/// The commands that describe a program.
#[derive(clap::Subcommand)]
pub enum ManualCommand {
    /// Print completions for a shell
    ///
    /// For Bash, put `eval "$(NAME completions bash)"` in ~/.bashrc, where NAME is this program's
    /// name. Zsh, fish, PowerShell and Elvish load the script similarly.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages, one for each command
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

impl ManualCommand {
    /// Generates the files for `program`, given its command line.
    ///
    /// # Errors
    /// If standard output or the folder cannot be written.
    pub fn run(self, program: Command) -> io::Result<()> {
        match self {
            ManualCommand::Completions { shell } => {
                let script = script(shell, &without_hidden(&program));
                io::stdout().write_all(script.as_bytes())
            }
            ManualCommand::Man { folder } => {
                std::fs::create_dir_all(&folder)?;
                write_pages(program, &folder)
            }
        }
    }
}

/// Writes one manual page for each command.
fn write_pages(program: Command, folder: &Path) -> io::Result<()> {
    // Only our own pages are changed, whatever else the folder contains.
    let new = tempfile::tempdir_in(folder)?;
    clap_mangen::generate_to(program, new.path())?;
    for page in std::fs::read_dir(new.path())? {
        let page = page?;
        let text = std::fs::read_to_string(page.path())?;
        std::fs::write(folder.join(page.file_name()), format!("{FORMAT}{text}"))?;
    }
    Ok(())
}

/// Returns the completion script of a program.
fn script(shell: Shell, program: &Command) -> String {
    if shell == Shell::Bash {
        return bash::script(program);
    }
    let name = program.get_name();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_hints(program.clone()), name, &mut script);
    let script = String::from_utf8(script).expect("clap writes UTF-8");
    match shell {
        Shell::Zsh => registered_late(&script, name),
        _ => script,
    }
}

/// Returns the command line with a hint at every value that is not a path, for which zsh and fish
/// would otherwise offer files.
fn with_hints(command: Command) -> Command {
    let mut command = command.mut_args(|argument| {
        match argument.get_action().takes_values() && !bash::is_path(&argument) {
            true => argument.value_hint(ValueHint::Other),
            false => argument,
        }
    });
    for subcommand in command.get_subcommands_mut() {
        *subcommand = with_hints(std::mem::take(subcommand));
    }
    command
}

/// Lets a script for zsh be read before `compinit` has been called: it then registers its
/// completions at the first prompt.
fn registered_late(script: &str, name: &str) -> String {
    let register = format!("{ZSH_END}_{name} {name}\n");
    debug_assert!(script.contains(&register), "clap's script ends otherwise");
    let late = format!(
        "    _{name}_register() {{
        precmd_functions=(${{precmd_functions:#_{name}_register}})
        (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
        compdef _{name} {name}
    }}
    if (( $+functions[compdef] )); then
        _{name}_register
    else
        precmd_functions+=(_{name}_register)
    fi
"
    );
    script.replace(&register, &late)
}

/// Returns the command line without hidden commands, which completion scripts would otherwise
/// offer.
fn without_hidden(command: &Command) -> Command {
    // clap needs command names with a static lifetime.
    let name: &'static str = command.get_name().to_owned().leak();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let mut visible = Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(shown.map(without_hidden));
    if command.get_version().is_some() {
        visible = visible.version(version());
    }
    visible
}
