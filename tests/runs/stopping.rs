//! A testnet ends when it is told to, when its reader or its parent has gone, and even when it is too busy to hear of it.

use crate::support::{dposlab, interrupt, root};
use dposlab::{
    actors::{Event, NodeId, SimTime},
    cli::{
        output::{Manner, Printer},
        up::stop::Interrupts,
    },
    scenario::{Scenario, run::on_current_thread},
    sim::{Live, Observer, Pace, SeedTree, Stage},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    thread,
};

/// Starts a testnet that does nothing, and reads the line that says that it is there.
fn started(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says when it is ready");
    assert!(line.contains("\"event\":\"ready\""), "{line}");
    (child, output)
}

const UP: [&str; 7] = ["up", "--json", "--port", "0", "--delegates", "3", "--pace=manual"];

#[test]
fn a_testnet_whose_reader_has_gone_ends_though_it_prints_nothing() {
    let (mut child, output) = started(dposlab().args(UP));
    drop(output);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "as if it had been told to");
}

#[test]
fn a_testnet_ends_with_its_parent_however_that_ended() {
    // A shell that starts it, says which process that is, and is killed while it waits for it.
    let script = "\"$0\" \"$@\" & echo $! >&2; wait";
    for option in ["--exit-with-parent", "--exit-with-parent=$$"] {
        let script = script.replace("\"$@\"", &format!("\"$@\" {option}"));
        let mut shell = Command::new("sh");
        let (mut shell, mut output) = started(shell.args(["-c", &script, env!("CARGO_BIN_EXE_dposlab")]).args(UP));
        let mut number = String::new();
        let mut told = BufReader::new(shell.stderr.take().expect("it is piped"));
        told.read_line(&mut number).expect("the shell says it");
        shell.kill().expect("it waits");
        shell.wait().expect("it was killed");
        // Standard output ends when the last process that has it has ended.
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("it is text");
        assert!(rest.contains("\"event\":\"stopped\""), "it ended in order: {rest}");
    }
}

#[test]
fn a_parent_that_is_not_there_is_refused() {
    let output = dposlab().args(UP).arg("--exit-with-parent=2147483647").output().expect("the binary was built");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--exit-with-parent: process 2147483647: No such process"), "{error}");
}

/// A handle of a process, for [`ends_within`].
fn handle_of(process: u32) -> OwnedFd {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a number of a process");
    pidfd_open(process, PidfdFlags::empty()).expect("it is there")
}

fn ends_within(seconds: i64, process: &OwnedFd) -> bool {
    let patience = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&patience)).expect("it can be watched") > 0
}

#[test]
fn a_command_that_takes_long_ends_with_its_parent() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let long = ["scenarios/healthy.toml", "--set", "rounds=20000"];
    for command in ["run", "sweep", "check", "explain"] {
        let given: &[&str] = if command == "check" { &["--runs", "1000000"] } else { &long };
        let out = folder.path().join(command).display().to_string();
        let file = if command == "explain" { format!("{out}.html") } else { out };
        // A shell that starts it, says which process that is, and is killed while it waits for it.
        let mut shell = Command::new("sh")
            .args(["-c", "\"$0\" \"$@\" --exit-with-parent=$$ & echo $!; wait", env!("CARGO_BIN_EXE_dposlab"), command])
            .args(given)
            .args(["--out", &file])
            .current_dir(root())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut number = String::new();
        let mut told = BufReader::new(shell.stdout.take().expect("it is piped"));
        told.read_line(&mut number).expect("the shell says it");
        let number = number.trim().parse().expect("a number");
        let process = handle_of(number);
        // It watches with a thread of its own, before it does anything else.
        while fs::read_dir(format!("/proc/{number}/task")).map_or(0, Iterator::count) < 2 {
            assert!(!ends_within(0, &process), "{command} has ended by itself");
            thread::yield_now();
        }
        shell.kill().expect("it waits");
        shell.wait().expect("it was killed");
        assert!(ends_within(2, &process), "{command} has outlived its parent");
    }
}

/// Says that it is there with the first event, and never comes back from it.
struct Busy;

impl Observer for Busy {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {
        println!("IS-BUSY-NOW");
        loop {
            std::hint::spin_loop();
        }
    }
}

/// Which of the tests below a process is to be the testnet of.
const ROLE: &str = "DPOSLAB_TEST_IS_BUSY";

/// The testnet of the tests below, in a process of its own: told to stop, it cannot.
fn be_busy() {
    let scenario =
        Scenario::parse("version = 1\nrounds = 1\n[network]\ndelegates = 3\n", Path::new("busy")).expect("it is one");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    on_current_thread(async {
        let interrupts = Interrupts::listen(None).expect("the system takes a handler");
        let stage = Stage::ractor(&plan, vec![Box::new(Busy)]).await.expect("names of its own");
        let (live, handle) = Live::new(stage, plan.tree.slots(), Pace::Max);
        let printer = Printer::new(std::io::sink(), Manner::Wait);
        interrupts.stop(handle, printer);
        live.run().await.expect("it never ends");
    });
}

/// Runs the test of this name as a busy testnet, interrupts it, and answers how it ended and what it said.
fn busy(test: &str) -> (ExitStatus, String) {
    let (mut child, _output) = begin_busy(test);
    interrupt(&child);
    let mut told = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut told).expect("text");
    (child.wait().expect("it ends"), told)
}

/// Begins the test of this name as a busy testnet, and waits until it is busy.
fn begin_busy(test: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("a test is a program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, "yes")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is this program");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("IS-BUSY-NOW") {
        line.clear();
        assert!(output.read_line(&mut line).expect("text") > 0, "it ended before it was busy");
    }
    (child, output)
}

/// A caller that was killed leaves pipes behind that nobody reads.
#[test]
fn a_process_that_is_too_busy_to_stop_is_ended_though_nobody_hears_of_it() {
    if std::env::var_os(ROLE).is_some() {
        return be_busy();
    }
    let test = "stopping::a_process_that_is_too_busy_to_stop_is_ended_though_nobody_hears_of_it";
    let (mut child, output) = begin_busy(test);
    drop((output, child.stderr.take()));
    let process = handle_of(child.id());
    let is_ended = ends_within(10, &process);
    child.kill().expect("it is this test's");
    let status = child.wait().expect("it has ended");
    assert!(is_ended, "it goes on though its reader has gone");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_process_that_is_too_busy_to_stop_is_ended() {
    if std::env::var_os(ROLE).is_some() {
        return be_busy();
    }
    let (status, told) = busy("stopping::a_process_that_is_too_busy_to_stop_is_ended");
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("dposlab: still busy 3 s after the request to stop; ended now"), "{told}");
}

/// Those who do not want to wait for what a busy testnet makes of the first signal.
#[test]
fn a_second_signal_ends_a_busy_process_at_once() {
    if std::env::var_os(ROLE).is_some() {
        return be_busy();
    }
    let (mut child, _output) = begin_busy("stopping::a_second_signal_ends_a_busy_process_at_once");
    let process = handle_of(child.id());
    interrupt(&child);
    // One that comes together with the first is taken for the same.
    let patience = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let is_ended =
        || poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).expect("it can be watched") > 0;
    while !is_ended() {
        interrupt(&child);
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "and not after three seconds, with 1");
}
