//! `dposlab pages`: the manual pages and the completions of shells, for those who package the program. They are made from the
//! definition of the arguments that the program itself parses, so they cannot differ from it.

use super::{Cli, Failure};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Write the manual pages (DIR/man) and the completions of shells (DIR/completions) of this program.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Pages {
    /// A folder, which is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Pages {
    /// Writes the pages and completions, and replaces existing ones.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn run(self) -> Result<(), Failure> {
        let wrong = |why: io::Error| Failure::usage(format!("{}: {why}", self.folder.display()));
        write(&self.folder).map_err(wrong)
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Cli::command(), &man)?;
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut Cli::command(), "dposlab", &completions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_its_completions() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path()).expect("it can be written");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = folder.path().join(format!("man/dposlab-{}.1", command.get_name()));
            let text = fs::read_to_string(&page).unwrap_or_else(|why| panic!("{}: {why}", page.display()));
            for option in command.get_opts().filter_map(|option| option.get_long()) {
                assert!(text.contains(&option.replace('-', "\\-")), "{}: --{option}", page.display());
            }
        }
        for name in ["dposlab.bash", "dposlab.fish", "_dposlab", "_dposlab.ps1", "dposlab.elv"] {
            let text = fs::read_to_string(folder.path().join("completions").join(name)).expect("a file a shell");
            assert!(text.contains("ready-file"), "{name}");
        }
    }
}
