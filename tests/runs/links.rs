//! Links in files: the table `links` of a run against what messages took, and a topology that is read from it again.

use crate::support::run;
use dposlab::scenario::{Override, Scenario};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for temporary files"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.file(name).parent().expect("it has one")).expect("it can be made");
        fs::write(self.file(name), text).expect("it can be written");
    }

    /// Writes a scenario of two rounds and plays it into a folder of the same name. Returns its digest.
    fn play(&self, name: &str, network: &str, more: &[&str]) -> String {
        let file = format!("{name}.toml");
        self.put(&file, &format!("version = 1\nrounds = 2\ncrypto = \"modelled\"\n[network]\n{network}\n"));
        let output = run(&[&["run", &self.path(&file), "--json", "--out", &self.path(name)], more].concat());
        assert!(output.status.success(), "{network}: {}", String::from_utf8_lossy(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
        told["digest"].as_str().expect("a text").to_owned()
    }

    /// The error of a scenario, without the folder's path.
    fn refused(&self, name: &str, set: &[&str]) -> String {
        let set: Vec<Override> = set.iter().map(|set| set.parse().expect("well formed")).collect();
        let why = Scenario::load_with(&self.file(name), &set).expect_err("it is refused").to_string();
        why.replace(&self.path(""), "")
    }
}

/// A row of `links.csv`. A latency is `None` where its cell is empty.
type Link = (u32, u32, Option<u64>, Option<u64>);

fn links(out: &Path) -> Vec<Link> {
    let mut table = csv::Reader::from_path(out.join("links.csv")).expect("it is there");
    table.deserialize().map(|row| row.expect("a row of the table")).collect()
}

/// The shortest time that a message took from a node to another, in microseconds, by the trace of messages.
fn ways(out: &Path) -> BTreeMap<(u32, u32), u64> {
    let mut ways = BTreeMap::new();
    for line in fs::read_to_string(out.join("events.jsonl")).expect("it is there").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if line["kind"] != "network.sent" {
            continue;
        }
        let [from, to] = ["from", "to"].map(|end| line[end]["node"].as_u64().expect("a node") as u32);
        let took = line["arrives"].as_u64().expect("a time") - line["at"].as_u64().expect("a time");
        if from != to {
            let least = ways.entry((from, to)).or_insert(took);
            *least = took.min(*least);
        }
    }
    ways
}

const TOPOLOGIES: [(&str, usize); 9] = [
    ("'mesh'", 36),
    ("'star'", 8),
    ("{ ring = 2 }", 18),
    ("{ regular = 4 }", 18),
    ("{ scale-free = 2 }", 0),
    ("{ small-world = { reach = 2, rewired = 0.3 } }", 0),
    ("{ geometric = 0.5 }", 0),
    ("{ outgoing = [0.5, 1.0] }", 0),
    ("{ edges = [[7, 0], [0, 1], [8, 0]] }", 3),
];

/// Each direction of each link is there with the time that its messages take, and messages go over no other link.
#[test]
fn the_table_has_the_ways_of_all_messages() {
    let folder = Folder::new();
    for (number, (topology, count)) in TOPOLOGIES.into_iter().enumerate() {
        let (name, network) = (format!("way-{number}"), format!("delegates = 9\ntopology = {topology}"));
        folder.play(&name, &network, &["--trace-network"]);
        let table = links(&folder.file(&name));
        assert!(table.windows(2).all(|pair| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1)), "{topology}: {table:?}");
        assert!(count == 0 || table.len() == count, "{topology}: {} links", table.len());
        let ways = ways(&folder.file(&name));
        let both = table.iter().flat_map(|(a, b, there, back)| [((*a, *b), *there), ((*b, *a), *back)]);
        let table: BTreeMap<(u32, u32), u64> = both.map(|(way, us)| (way, us.expect("one for each link"))).collect();
        assert_eq!(table, ways, "{topology}");
    }
}

#[test]
fn a_run_over_the_links_of_another_has_the_same_links() {
    let folder = Folder::new();
    for (number, (topology, _)) in TOPOLOGIES.into_iter().enumerate() {
        let (first, again) = (format!("first-{number}"), format!("again-{number}"));
        let digest = folder.play(&first, &format!("delegates = 9\ntopology = {topology}"), &["--seed", "5"]);
        let file = format!("delegates = 9\ntopology = {{ edges = {{ file = \"{first}/links.csv\" }} }}");
        assert_eq!(folder.play(&again, &file, &["--seed", "5"]), digest, "{topology}");
        let read = |name: &str, file: &str| fs::read(folder.file(name).join(file)).expect("it is there");
        assert!(read(&first, "links.csv") == read(&again, "links.csv"), "{topology}");
        assert!(read(&first, "links.csv") == read(&again, "scenario/links.csv"), "{topology}: it is kept as it was");
    }
}

/// Both lists are read from the table, so that another seed has the same network, and with the seed of the table the same run.
#[test]
fn a_run_with_the_latencies_of_another_has_the_same_table_under_any_seed() {
    let folder = Folder::new();
    let digest = folder.play("first", "delegates = 9\ntopology = { scale-free = 2 }", &["--seed", "5"]);
    let table = "{ file = \"first/links.csv\" }";
    let both = format!("delegates = 9\ntopology = {{ edges = {table} }}\nlinks = {table}");
    assert_eq!(folder.play("again", &both, &["--seed", "5"]), digest);
    folder.play("other", &both, &["--seed", "6"]);
    let read = |name: &str| fs::read(folder.file(name).join("links.csv")).expect("it is there");
    assert!(read("first") == read("again") && read("first") == read("other"));
    // Without the file, latencies are those of the seed.
    folder.play("drawn", &format!("delegates = 9\ntopology = {{ edges = {table} }}"), &["--seed", "6"]);
    assert!(read("first") != read("drawn"));
    let twice = "from,to,latency_us\n0,1,5\n1,0,6\n0,1,7\n";
    folder.put("twice.csv", twice);
    let text = "version = 1\nrounds = 1\n[network]\ndelegates = 3\nlinks = { file = \"twice.csv\" }\n";
    folder.put("s.toml", text);
    let why = folder.refused("s.toml", &[]);
    assert!(why.starts_with("twice.csv:4: key 'network.links[2].from': found the link from 0 to 1, as "), "{why}");
}

/// A latency stands in the table if it is that of every message of the direction.
#[test]
fn latencies_are_there_by_direction_if_they_are_fixed() {
    let folder = Folder::new();
    let constant = "latency = { distribution = \"constant\", ms = 50 }";
    let table = |name: &str, network: &str| {
        folder.play(name, &format!("delegates = 3\ntopology = {{ edges = [[0, 1], [2, 1]] }}\n{network}"), &[]);
        links(&folder.file(name))
    };
    let all = table("a", constant);
    assert_eq!(all, [(0, 1, Some(50_000), Some(50_000)), (1, 2, Some(50_000), Some(50_000))]);
    let one = "{ distribution = \"constant\", ms = 1.5 }";
    let drawn = "{ min_ms = 1, max_ms = 9, per = \"message\" }";
    let special =
        format!("links = [{{ from = 1, to = 0, latency = {one} }}, {{ from = 1, to = 2, latency = {drawn} }}]");
    let some = table("b", &format!("{constant}\n{special}"));
    assert_eq!(some, [(0, 1, Some(50_000), Some(1_500)), (1, 2, None, Some(50_000))]);
    assert_eq!(table("c", &format!("latency = {drawn}")), [(0, 1, None, None), (1, 2, None, None)]);
    let regions = "regions = { shares = [1, 2], latency_ms = [[1, 20], [30, 4]]";
    let between = table("d", &format!("{regions} }}"));
    assert_eq!(between, [(0, 1, Some(20_000), Some(30_000)), (1, 2, Some(4_000), Some(4_000))]);
    let between = table("f", &format!("{regions} }}\n{special}"));
    assert_eq!(between, [(0, 1, Some(20_000), Some(1_500)), (1, 2, None, Some(4_000))]);
    let pareto = "regions = { shares = [1], latency_ms = [[20]], pareto = true }";
    assert_eq!(table("e", pareto), [(0, 1, None, None), (1, 2, None, None)]);
}

#[test]
fn a_mesh_of_many_nodes_has_no_table_and_keeps_none_of_an_earlier_run() {
    let folder = Folder::new();
    folder.play("mesh", "delegates = 2\nrelays = 126", &["--without", "events"]);
    assert_eq!(links(&folder.file("mesh")).len(), 128 * 127 / 2);
    folder.play("mesh", "delegates = 2\nrelays = 127", &["--without", "events"]);
    let is_there = |name: &str| folder.file("mesh").join(name).exists();
    assert!(!is_there("links.csv") && !is_there("links.parquet") && is_there("blocks.parquet"));
    folder.play("ring", "delegates = 2\nrelays = 127\ntopology = { ring = 3 }", &["--without", "events"]);
    assert_eq!(links(&folder.file("ring")).len(), 129 * 3);
    folder.play("none", "delegates = 3", &["--without", "links"]);
    assert!(!folder.file("none/links.csv").exists() && folder.file("none/blocks.csv").exists());
}

/// Files of edges and of weights are kept byte for byte, and a study is played from its folder when they are gone.
#[test]
fn a_study_repeats_from_the_files_that_its_scenario_names() {
    let folder = Folder::new();
    let (edges, weights) =
        ("\"from\",\"to\"\r\n1,0\r\n2, 1\r\n", "username,weight\ngenesis_3,3\ngenesis_1,5\ngenesis_2,4");
    folder.put("other/net.csv", edges);
    folder.put(
        "other/base.toml",
        "version = 1\nrounds = 2\n[network]\ndelegates = 3\ntopology = { edges = { file = \"net.csv\" } }\n",
    );
    folder.put("of/w.csv", weights);
    folder.put(
        "of/s.toml",
        "include = [\"../other/base.toml\"]\ncrypto = \"modelled\"\n[network]\nvote_weights = { list = { file = \"w.csv\" } }\n",
    );
    let scenario = folder.path("of/s.toml");
    let done = |arguments: &[&str]| {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        told
    };
    let vary = "rounds=2,3";
    done(&["run", &scenario, "--out", &folder.path("run")]);
    done(&["sweep", &scenario, "--seeds", "0..2", "--vary", vary, "--out", &folder.path("sweep")]);
    for out in ["run", "sweep"] {
        let read = |name: &str| fs::read_to_string(folder.file(out).join(name)).expect("it is there");
        assert_eq!((read("scenario/net.csv"), read("scenario/w.csv")), (edges.to_owned(), weights.to_owned()), "{out}");
        let about: Value = serde_json::from_str(&read("ro-crate-metadata.json")).expect("JSON");
        for name in ["scenario/net.csv", "scenario/w.csv"] {
            let entity = about["@graph"].as_array().expect("a list").iter().find(|entity| entity["@id"] == name);
            let entity = entity.unwrap_or_else(|| panic!("{out}: the crate has no {name}"));
            assert_eq!(entity["encodingFormat"], "text/csv");
        }
    }
    for name in ["of", "other"] {
        fs::remove_dir_all(folder.file(name)).expect("it was there");
    }
    for out in ["run", "sweep"] {
        let told = done(&[out, &folder.path(out)]);
        assert!(told.contains("the same: "), "{told}");
    }
    folder.put("run/scenario/net.csv", &edges.replace("2, 1", "2, 0"));
    let output = run(&["run", &folder.path("run")]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("scenario/net.csv: found SHA256"), "{told}");
}

#[test]
fn a_wrong_line_of_a_file_is_named_with_its_number() {
    let folder = Folder::new();
    folder.put("base.toml", "[network]\ntopology = { edges = { file = \"net.csv\" } }\n");
    folder.put("s.toml", "include = [\"base.toml\"]\nversion = 1\nrounds = 2\n[network]\ndelegates = 5\n");
    let key = "key 'network.topology.edges";
    for (rows, why) in [
        ("0,1\n1,x\n", format!("net.csv:3: {key}': found 'x', allowed is the number of a node")),
        ("0,1\n1,2\n1,5\n", format!("net.csv:4: {key}[2]': found nodes 1 and 5, allowed is 0 to 4")),
        ("0,1\n1,1\n", format!("net.csv:3: {key}[1]': found node 1 twice, allowed is two nodes")),
        ("0,1\n1,2\n1,0\n", format!("net.csv:4: {key}[2]': found nodes 1 and 0 again, allowed is each edge once")),
    ] {
        folder.put("net.csv", &format!("from,to\n{rows}"));
        assert_eq!(folder.refused("s.toml", &[]), why);
    }
    // An entry that is set, and a list that takes the place of the file's, are named where they stand.
    folder.put("net.csv", "from,to\n0,1\n1,2\n");
    let set = "network.topology.edges[1]=[1, 7]";
    let why = format!("s.toml with '{set}': {key}[1]': found nodes 1 and 7, allowed is 0 to 4");
    assert_eq!(folder.refused("s.toml", &[set]), why);
    let text = fs::read_to_string(folder.file("s.toml")).expect("it was written");
    folder.put("s.toml", &format!("{text}topology = {{ edges = [[0, 1], [1, 9]] }}\n"));
    assert_eq!(folder.refused("s.toml", &[]), format!("s.toml:6: {key}[1]': found nodes 1 and 9, allowed is 0 to 4"));
    // Only a name is a file.
    for value in ["{ file = 3 }", "{ file = \"net.csv\", from = 1 }", "{}"] {
        folder.put("s.toml", &format!("{text}topology.edges = {value}\n").replace("include = [\"base.toml\"]\n", ""));
        let why =
            format!("s.toml:5: {key}': found {value}, allowed is a list, or in a scenario file {{ file = NAME }}");
        assert_eq!(folder.refused("s.toml", &[]), why);
    }
}

/// A run writes its links over those of an earlier run, and over no other file: a scenario may read that one.
#[test]
fn a_run_takes_no_list_of_a_user_for_its_own() {
    let folder = Folder::new();
    folder.put("out/links.csv", "from,to\n0,1\n");
    folder.put("mesh.toml", "version = 1\nrounds = 1\ncrypto = \"modelled\"\n[network]\ndelegates = 4\n");
    let play = || run(&["run", &folder.path("mesh.toml"), "--out", &folder.path("out")]);
    let output = play();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("links.csv: found a file that no study has left there"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(folder.file("out/links.csv")).expect("it is there"), "from,to\n0,1\n");
    fs::remove_file(folder.file("out/links.csv")).expect("it is there");
    assert!((0..2).all(|_| play().status.success()), "the second run writes over the first one's links");
}
