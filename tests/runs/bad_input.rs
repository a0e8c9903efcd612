//! A mistake of the caller's ends with one clear line and exit code 2.

use crate::support::{dposlab, root, run};
use serde_json::Value;
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

/// The one line on standard error, of a command that must end with exit code 2.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.trim_end().lines().count(), 1, "one line: {error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

#[test]
fn a_scenario_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let case = |text: &str, expected: &[&str]| {
        let file = folder.path().join("broken.toml");
        fs::write(&file, text).expect("it can be written");
        let error = refused(&["run", file.to_str().expect("a path in UTF-8")]);
        assert!(error.contains("broken.toml"), "{error}");
        for part in expected {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
    };
    case("version = 1\nrounds = 2\nround = 3\n", &[":3:", "'round'", "`rounds`"]);
    case("version = 1\nrounds = -2\n", &[":2:", "'rounds'"]);
    case("version = 9\nrounds = 2\n", &["'version'", "found 9", "allowed is 1"]);
    case("rounds = 2\n", &["version"]);
    case("version = 1\nrounds = 2\n[network]\ndelegates = 5000\n", &["'network.delegates'", "5000", "1 to 1000"]);
    case("version = 1\nrounds = 2\n[network]\ngossip = \"loud\"\n", &["gossip", "loud", "`once`", "`reference`"]);
    let fault = "version = 1\nrounds = 2\n[[fault]]\nkind = \"offline\"\ndelegates = [\"alice\"]\nrounds = 1\n";
    case(fault, &["fault[0].delegates", "'alice'", "'genesis_1' to 'genesis_51'"]);
    case("\u{0}", &[":1:"]);
    case("", &["version"]);
    let missing = refused(&["run", "scenarios/no-such-file.toml"]);
    assert!(missing.contains("no-such-file.toml") && missing.contains("cannot be read"), "{missing}");
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let error = refused(&["up", "--port", &port]);
    assert!(error.contains(&port) && error.contains("in use"), "{error}");
}

#[test]
fn a_network_folder_that_is_none() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let dir = path("network");
    let secrets = path("secrets.json");
    fs::write(&secrets, r#"{"secrets": ["one"]}"#).expect("it can be written");
    let error = refused(&["up", "--port", "0", "--network-dir", &dir, "--secrets", &secrets]);
    assert!(error.contains("network") && error.contains(".json"), "{error}");
    fs::create_dir(&dir).expect("it can be made");
    for name in ["network.json", "milestones.json", "exceptions.json", "genesisBlock.json"] {
        fs::write(folder.path().join("network").join(name), "[").expect("it can be written");
    }
    let error = refused(&["up", "--port", "0", "--network-dir", &dir, "--secrets", &secrets]);
    assert!(error.contains(".json"), "{error}");
}

/// Every argument that names a file, with everything that is none: nothing is waited for, and nothing is read without end.
#[test]
fn what_is_no_file_is_refused_wherever_a_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| fs::write(path(name), text).expect("it can be written");
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe can be made");
    // A network that is one, for what comes behind it.
    let seed = root().join("fuzz/seeds/chain/network.json");
    let parts: Value = serde_json::from_slice(&fs::read(seed).expect("it is in the repository")).expect("JSON");
    fs::create_dir(path("whole")).expect("it can be made");
    for name in ["network", "milestones", "exceptions", "genesisBlock", "secrets"] {
        write(&format!("whole/{name}.json"), &parts[name].to_string());
    }
    write("secrets", "{\"secrets\": [\"one\"]}");
    fs::create_dir(path("network")).expect("it can be made");
    fs::create_dir(path("sweep")).expect("it can be made");
    let found = [("/dev/zero".to_owned(), "a device"), (path("pipe"), "a pipe"), (path("."), "a folder")];
    for (file, what) in &found {
        write("include.toml", &format!("include = ['{file}']\n"));
        write("chain.toml", &format!("version = 1\nrounds = 1\n[[workload]]\nkind = \"chain\"\nfile = '{file}'\n"));
        for (folder, name) in [("network", "network.json"), ("sweep", "sweep.json")] {
            let at = format!("{}/{name}", path(folder));
            // There is none the first time.
            let _not_there = fs::remove_file(&at);
            std::os::unix::fs::symlink(file, at).expect("it can be made");
        }
        write("sweep/rows.bin", "");
        let (include, chain) = (path("include.toml"), path("chain.toml"));
        let (network, secrets, part, out) = (path("network"), path("secrets"), path("sweep"), path("out"));
        let up = ["up", "--port", "0"];
        let (whole, its_secrets) = (path("whole"), path("whole/secrets.json"));
        let cases: [&[&str]; 13] = [
            &["run", file],
            &["run", &include],
            &["run", &chain],
            &["sweep", file, "--out", &out],
            &["merge", &part, "--out", &out],
            &["check", file, "--runs", "1", "--out", &out],
            &["check", "--known", file, "--runs", "1", "--out", &out],
            &["replay", file],
            &["diff", file, file],
            &[&up[..], &["--network-dir", &network, "--secrets", &secrets]].concat(),
            &[&up[..], &["--network-dir", &whole, "--secrets", file]].concat(),
            &[&up[..], &["--network-dir", &whole, "--secrets", &its_secrets, "--chain", file]].concat(),
            &[&up[..], &["--lab", "token", "--lab-token", file]].concat(),
        ];
        for arguments in cases {
            let error = refused(arguments);
            // A folder given to `run` or `sweep` is a study to repeat, and says of itself what it lacks.
            let is_study = ["run", "sweep"].contains(&arguments[0]) && arguments[1] == *file && *what == "a folder";
            let told = match (is_study, arguments[0]) {
                (true, "run") => "/provenance.json: cannot be read".to_owned(),
                (true, _) => "is a folder, whose study is repeated as it was: found --out".to_owned(),
                (false, _) => format!("found {what}, allowed is a file"),
            };
            assert!(error.contains(&told), "{arguments:?}: {error}");
        }
    }
}

/// To open a pipe waits for whoever holds its other end, and nobody may.
#[test]
fn a_pipe_holds_up_no_start() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pipe = |name: &str| {
        rustix::fs::mknodat(rustix::fs::CWD, path(name), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe can be made");
    };
    fs::write(path("s.toml"), "version = 1\nrounds = 1\n[network]\ndelegates = 3\n").expect("it can be written");
    pipe("trace");
    let (scenario, trace) = (path("s.toml"), path("trace"));
    let output = run(&["run", &scenario, "--trace", &trace]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("cannot be written: found a pipe without a reader, allowed is a file"), "{error}");
    for name in ["kept/checkpoints/1", "kept/index/blocks/1", "kept/log/00000001.log", "kept/network.json"] {
        let inner = folder.path().join(name);
        fs::create_dir_all(inner.parent().expect("it is within a folder")).expect("it can be made");
        pipe(name);
        let kept = path("kept");
        for arguments in [&["up", "--port", "0", "--data-dir", &kept][..], &["export", &kept]] {
            let error = refused(arguments);
            assert!(error.contains(&format!("{name}: found a pipe, allowed is a file")), "{arguments:?}: {error}");
        }
        fs::remove_file(inner).expect("it is there");
    }
}

/// A command in a shell that first limits how large its files may be, in units of 512 bytes.
fn limited(units: u32, arguments: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {units}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_dposlab")]).args(arguments);
    shell.current_dir(root()).output().expect("a shell")
}

/// The one line on standard error of a command that failed, but not by its caller's fault.
fn failed(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "one line: {error}");
    error
}

#[test]
fn a_full_disk_is_told_with_the_file() {
    const FULL: &str = "No space left on device";
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let scenario = path("s.toml");
    fs::write(&scenario, "version = 1\nrounds = 2\n[network]\ndelegates = 3\n").expect("it can be written");
    let full = |at: &str| std::os::unix::fs::symlink("/dev/full", at).expect("it can be made");
    let error = failed(&run(&["run", &scenario, "--trace", "/dev/full"]));
    assert!(error.contains("/dev/full") && error.contains(FULL), "{error}");
    // Each file of a run and of a sweep in turn is on a disk that is full.
    let files = |out: &str| {
        let entries = fs::read_dir(out).expect("it was written").map(|entry| entry.expect("it can be listed"));
        let files = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().expect("text")).collect();
        names.sort();
        // The copy of the scenario.
        names.push("scenario/s.toml".to_owned());
        names
    };
    for command in [["run", "--seed", "1"], ["sweep", "--seeds", "0..1"]] {
        let play = |out: &str| run(&[command[0], &scenario, command[1], command[2], "--out", out]);
        let whole = path(&format!("whole-{}", command[0]));
        assert!(play(&whole).status.success());
        // Rows and traces do not take their names at the end; `rows.bin` is none that a device could be.
        for name in files(&whole).iter().filter(|name| *name != "rows.bin") {
            let out = path(&format!("{}-{}", command[0], name.replace('/', "-")));
            fs::create_dir_all(Path::new(&out).join("scenario")).expect("it can be made");
            let part = if name == "events.jsonl" { "" } else { ".part" };
            full(&format!("{out}/{name}{part}"));
            let error = failed(&play(&out));
            assert!(
                error.contains(&format!("/{name}: {FULL}"))
                    || error.contains(&format!("/{name} cannot be written: {FULL}")),
                "{error}"
            );
        }
    }
    let output = limited(0, &["sweep", &scenario, "--seeds", "0..1", "--out", &path("limited")]);
    assert!(failed(&output).contains("/sweep.json: File too large"), "{}", failed(&output));
    fs::create_dir(path("findings")).expect("it can be made");
    let output = limited(0, &["check", "--runs", "1", "--draw", "--out", &path("findings")]);
    assert!(failed(&output).contains(".toml: File too large"), "{}", failed(&output));
}

#[test]
fn a_recording_that_cannot_be_begun_is_told() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let record = folder.path().join("session").display().to_string();
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" up --port 0 --pace manual --delegates 3 --record \"$1\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_dposlab"), &record])
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains(&format!("--record {record}: File too large")), "{error}");
    let again = dposlab().args(["replay", &record]).output().expect("the binary was built");
    assert_eq!(again.status.code(), Some(2), "an empty recording is none");
}
