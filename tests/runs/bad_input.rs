//! A mistake of the caller's ends with one clear line and exit code 2.

use crate::support::run;
use std::{fs, net::TcpListener};

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
