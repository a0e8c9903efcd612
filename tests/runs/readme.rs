//! Every command in README.md and docs is run, and its output held against what is shown. A line `...` stands for any
//! lines, `[..]` for any text within a line.

use crate::support::{dposlab, interrupt, root};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A command as shown, with the output shown below it.
struct Shown {
    file: PathBuf,
    command: String,
    output: Vec<String>,
}

#[test]
#[ignore = "long: CI runs it"]
fn every_command_shown_prints_what_is_shown() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let scratch = Scratch::empty();
    let mut running: Option<Running> = None;
    let (mut ran, mut differ) = (0, Vec::new());
    for shown in shown_in_documents() {
        let command = shown.command.replace("4003", &port.to_string());
        let expected: Vec<String> = shown.output.iter().map(|line| line.replace("4003", &port.to_string())).collect();
        let name = format!("{}: $ {}", shown.file.display(), shown.command);
        if let Some(arguments) = arguments_of(&command) {
            let arguments: Vec<String> = arguments.into_iter().map(|argument| scratch.instead_of(argument)).collect();
            if arguments.first().map(String::as_str) == Some("up") {
                stop(running.take());
                let (child, printed) = start(&arguments, port, &expected);
                running = Some(Running(child));
                differ.extend(difference(&name, &expected, &scratch.as_shown(printed)));
            } else {
                let output = dposlab().args(&arguments).output().expect("the binary was built for this test");
                differ.extend(difference(&name, &expected, &scratch.as_shown(lines(&output.stdout))));
            }
            ran += 1;
        } else if let Some(example) = command.strip_prefix("cargo run --example ") {
            differ.extend(difference(&name, &expected, &lines(&run_example(example))));
            ran += 1;
        } else if command.starts_with("curl ") {
            let output = Command::new("sh").args(["-c", &command]).output().expect("a shell is there");
            differ.extend(difference(&name, &expected, &lines(&output.stdout)));
            ran += 1;
        } else {
            assert!(KNOWN_ELSEWHERE.contains(&command.as_str()), "{name}: nothing runs this command");
        }
    }
    stop(running);
    assert!(differ.is_empty(), "{} commands print something else:\n{}", differ.len(), differ.join("\n"));
    assert!(ran >= 4, "README shows how to start, to ask, and to run a scenario");
}

/// The folder for what the documents write to `out`. It is neither among what somebody keeps there, nor on top of what the last
/// run of this test has left, which a sweep would go on with.
struct Scratch(PathBuf);

impl Scratch {
    fn empty() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("it is this test's own");
        }
        fs::create_dir_all(folder.join("out")).expect("there is room");
        Self(folder)
    }

    fn instead_of(&self, argument: String) -> String {
        match argument.starts_with("out/") {
            true => self.0.join(argument).display().to_string(),
            false => argument,
        }
    }

    fn as_shown(&self, lines: Vec<String>) -> Vec<String> {
        let folder = format!("{}/", self.0.display());
        lines.into_iter().map(|line| line.replace(&folder, "")).collect()
    }
}

/// Commands that CI runs itself, this test being part of them. The suites of the two packages run `pip` and `npm`. The suite for
/// Python makes an environment and names the programs in it by their paths, without `activate`. `release/check.sh` packs a release
/// from a program.
const KNOWN_ELSEWHERE: [&str; 8] = [
    "cargo test",
    "bash .ci/run",
    "cargo bench",
    "cargo install --path . --locked",
    "python3 -m venv .venv && . .venv/bin/activate",
    "pip install ./python",
    "release/build.sh --binary ~/.cargo/bin/dposlab",
    "npm install --save-dev vitest ./target/release-artefacts/dposlab-*.tgz",
];

/// The arguments of the binary, if the command is one of ours.
fn arguments_of(command: &str) -> Option<Vec<String>> {
    let rest = command.strip_prefix("cargo run -- ").or_else(|| command.strip_prefix("dposlab "))?;
    // A word in quotes holds what a shell would take for its own.
    Some(rest.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect())
}

/// `cargo test` builds examples beside the tests before it runs them; a run of this test alone builds this one.
fn run_example(command: &str) -> Vec<u8> {
    let (name, arguments) = command.split_once(" -- ").unwrap_or((command, ""));
    let built = Path::new(env!("CARGO_BIN_EXE_dposlab")).with_file_name("examples").join(name);
    if !built.exists() {
        let status = Command::new(env!("CARGO")).args(["build", "--example", name]).current_dir(root()).status();
        assert!(status.expect("cargo runs this test").success());
    }
    Command::new(built)
        .args(arguments.split_whitespace())
        .current_dir(root())
        .output()
        .expect("examples are built for the tests")
        .stdout
}

fn start(arguments: &[String], port: u16, expected: &[String]) -> (Child, Vec<String>) {
    let mut command = dposlab();
    command.args(arguments);
    if !arguments.iter().any(|argument| argument == "--port") {
        command.args(["--port", &port.to_string()]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary was built for this test");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let (send, receive) = std::sync::mpsc::channel();
    // Reads on for as long as it runs, so that it never waits for a reader.
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                continue;
            }
        }
    });
    let mut printed = Vec::new();
    while !matches(expected, &printed) {
        match receive.recv_timeout(std::time::Duration::from_secs(60)) {
            Ok(line) => printed.push(line),
            Err(_) => break,
        }
    }
    (child, printed)
}

/// A testnet that does not outlive the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that has ended there is nothing left to kill.
        let _ended = self.0.kill();
    }
}

fn stop(running: Option<Running>) {
    if let Some(mut running) = running {
        interrupt(&running.0);
        assert!(running.0.wait().expect("it ends").success());
    }
}

fn shown_in_documents() -> Vec<Shown> {
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    if let Ok(folder) = fs::read_dir(root().join("docs")) {
        files.extend(folder.filter_map(Result::ok).map(|entry| entry.path()));
    }
    files.sort_by_key(|file| !file.ends_with("README.md"));
    let mut all: Vec<Shown> = Vec::new();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(&file).expect("documents are text");
        let mut inside = false;
        for line in text.lines() {
            match line {
                "```console" => inside = true,
                "```" => inside = false,
                line if inside => match line.strip_prefix("$ ") {
                    Some(command) => {
                        let shown = Shown { file: file.clone(), command: command.to_owned(), output: Vec::new() };
                        all.push(shown);
                    }
                    None => all.last_mut().expect("a block begins with a command").output.push(line.to_owned()),
                },
                _ => {}
            }
        }
    }
    all
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(|line| line.trim_end().to_owned()).collect()
}

/// What is shown beside what was printed, where they differ.
fn difference(name: &str, expected: &[String], printed: &[String]) -> Option<String> {
    let told = || format!("{name}\nshown:\n{}\nprinted:\n{}\n", expected.join("\n"), printed.join("\n"));
    (!matches(expected, printed)).then(told)
}

fn matches(expected: &[String], printed: &[String]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((dots, rest)), _) if dots == "..." => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((line, rest)), Some((first, others))) => line_matches(line.trim_end(), first) && matches(rest, others),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == printed,
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_matches(after, &rest[at..]))
        }),
    }
}
