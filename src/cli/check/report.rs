//! The findings of a search, as text and as JSON.

use super::{Check, FileOutcome, RUNS, ReplayedFinding, ReportedFinding, SearchResult, counted};
use crate::{
    check::{
        INTERESTING, Signature,
        conduct::is_modelled,
        database::Build,
        known_causes::{ALARM, KnownCauses, Rate},
        search::{Search, Summary},
        seeds::SeedSet,
        swarm::ModelledRuns,
    },
    cli::span::SearchTime,
    ledger::Rules,
    protocol::crypto::{CryptoMode, sha256},
    scenario::Scenario,
    statistics::{Interval, interval, rates::Count},
};
use serde_json::{Value, json};

impl Check {
    /// The rules that all runs of a search have.
    fn rules_of(search: &Search) -> &toml::Table {
        search.frame.base.as_ref().map_or(&search.frame.rules, |base| &base.rules)
    }

    fn rules_in_words(search: &Search) -> String {
        Scenario { rules: Self::rules_of(search).clone(), ..search.scenario(0) }.rules_in_words()
    }

    /// The frame around which the runs are drawn, and their rules.
    fn frame_in_words(&self, search: &Search) -> String {
        let what = self.scenario.as_ref().map_or("networks as drawn".to_owned(), |file| file.display().to_string());
        format!("{what}; {}", Self::rules_in_words(search))
    }

    /// Describes how runs are drawn, as far as that decides the rate of a cause.
    pub(super) fn drawn(&self, search: &Search) -> String {
        let sizes = [("delegates", self.delegates), ("rounds", self.rounds)];
        let sizes = sizes.into_iter().filter_map(|(what, value)| Some(format!("; {what} {}", value?)));
        let behaviour = match self.behaviour {
            ModelledRuns::Never => "",
            ModelledRuns::Always => "; each held against the model",
            ModelledRuns::Drawn => "; one of four quick and without flaws",
        };
        // One file can have several paths.
        let name =
            self.scenario.as_ref().and_then(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned());
        let what = name.unwrap_or_else(|| "networks as drawn".to_owned());
        // All values of a scenario decide, with those of its rules. A search without a scenario has only a name of rules.
        let decides = match (&search.frame.base, search.frame.crypto) {
            (Some(base), crypto) => {
                let played = Scenario { crypto: crypto.unwrap_or(base.crypto), ..base.clone() };
                format!("; scenario {}", hex::encode(&sha256(played.identity().as_bytes())[..8]))
            }
            (None, Some(CryptoMode::Real)) => "; real signatures".to_owned(),
            (None, _) => String::new(),
        };
        let frame = format!("{what}; {}{decides}", Self::rules_in_words(search));
        [frame].into_iter().chain(sizes).chain([behaviour.to_owned()]).collect()
    }

    pub(super) fn as_text(
        &self,
        search: &Search,
        searched: &SearchResult,
        told: &[ReportedFinding],
        known: &KnownCauses,
    ) -> String {
        let (summary, session) = (&searched.summary, &searched.summary.session);
        let rules = Self::rules_in_words(search);
        let mut text = format!("{}\n", self.frame_in_words(search));
        text.extend(told.iter().map(|told| self.finding_in_words(search, searched, told, known)));
        text.extend(searched.mended().map(|one| {
            let (signature, file) = (&one.signature, one.file.display());
            format!("mended: {signature}\n  {file} shows it no more{}\n", searched.earlier_in_words(signature))
        }));
        text.extend(searched.replayed.iter().filter_map(|one| match &one.outcome {
            FileOutcome::NotPlayed(why) => Some(format!("note: {}\n  {}: {why}\n", one.signature, one.file.display())),
            _ => None,
        }));
        text.extend(self.rarer(summary, known).map(|(signature, found, recorded)| {
            format!(
                "note: {signature}\n  in {} of {} runs, which is rarer than recorded: {} of {}\n",
                found.so, found.of, recorded.so, recorded.of
            )
        }));
        let sometimes: Vec<String> =
            INTERESTING.iter().map(|what| format!("{what} {}", session.sometimes.of(what))).collect();
        let never: Vec<&str> = INTERESTING.into_iter().filter(|what| session.sometimes.of(what) == 0).collect();
        if session.runs < summary.runs() {
            text += &format!("in the {} runs played now:\n", session.runs);
        }
        text += &format!("sometimes: {}\n", sometimes.join(", "));
        if !never.is_empty() {
            text += &format!("never: {}\n", never.join(", "));
        }
        let asked = self.asked_of_part(search, summary);
        let of = asked.map(|runs| format!(" of {runs}")).unwrap_or_default();
        let time = match self.time {
            Some(SearchTime::Limited(span)) => format!(" in {span} at a time"),
            Some(SearchTime::Forever) | None => String::new(),
        };
        let modelled = match modelled(search, summary) {
            0 => String::new(),
            runs => format!(", {runs} with the model of a node"),
        };
        let branched = match self.guided {
            true => format!(", {} branched from earlier ones", session.branched),
            false => String::new(),
        };
        text + &format!(
            "summary: {}{of} runs{time} from seed {}, {rules}{modelled}{branched}, {} slots, {} things do not hold{}",
            summary.runs(),
            self.seed,
            session.slots,
            told.iter().filter(|told| !told.is_known).count(),
            match told.iter().filter(|told| told.is_known).count() {
                0 => String::new(),
                count => format!(", {count} more are known"),
            },
        )
    }

    /// The causes of the list that come more rarely than recorded, with both counts.
    fn rarer<'k>(
        &self,
        summary: &Summary,
        known: &'k KnownCauses,
    ) -> impl Iterator<Item = (&'k Signature, Count, Count)> {
        let counts = known.causes().filter_map(|(signature, recorded)| {
            let found = counted(summary, signature);
            (known.rate(signature, found) == Rate::Fewer).then_some((signature, found, recorded?))
        });
        counts.filter(|_| self.known.is_some())
    }

    fn finding_in_words(
        &self,
        search: &Search,
        searched: &SearchResult,
        told: &ReportedFinding,
        known: &KnownCauses,
    ) -> String {
        let (summary, found, signature) = (&searched.summary, &told.found, &told.signature);
        let runs = runs_that_judge(search, summary, signature.invariant);
        let Interval { low, high } = interval::of_share(found.seeds.count(), runs);
        // Branches of one run are not independent.
        let share = if self.guided { String::new() } else { format!(" ({} to {})", percent(low), percent(high)) };
        let often = format!("in {} of {runs} runs{share}", found.seeds.count());
        let first = match found.seeds.first() {
            Some(seed) => format!("first in that of seed {seed}"),
            None => "shown by its file".to_owned(),
        };
        let often = format!("{often}, {first}{}", searched.earlier_in_words(signature));
        if told.is_known {
            let word = if told.comes_too_often() { "too often" } else { "known" };
            let mut text = format!("{word}: {signature}\n  {often}\n");
            if let (Rate::More(chance), Some(Count { so, of })) = (told.rate, known.recorded(signature)) {
                text += &format!(
                    "  recorded: {so} of {of} runs; the chance of as many as found, or more, is {chance:.1e}, {ALARM:e} is allowed\n"
                );
            }
            return text;
        }
        let word = if searched.is_new(signature) == Some(true) { "new" } else { "broken" };
        let mut text = format!("{word}: {} ({})\n", signature.invariant, found.finding.origin);
        if !signature.cause.is_empty() {
            text += &format!("  cause: {}\n", signature.cause);
        }
        let finding = told.minimal.as_ref().map_or(&found.finding, |minimal| &minimal.finding);
        if let Some(missing) = finding.certificate.missing() {
            text += &format!("  no certificate of this cause: {missing}\n");
        }
        let node = finding.node.map(|node| format!("{node}")).unwrap_or_else(|| "the network".to_owned());
        let height = finding.height.map(|height| format!(", height {height}")).unwrap_or_default();
        text += &format!("  {often}\n  {node}{height}: {}\n", finding.what);
        if let Some(minimal) = &told.minimal {
            let (faults, actions) = (minimal.scenario.faults.len(), minimal.scenario.actions.len());
            let (nodes, rounds) = (minimal.scenario.network.nodes(), minimal.scenario.rounds);
            let how = match (minimal.runs, minimal.shown) {
                (_, false) | (0, true) => "as it was found".to_owned(),
                (runs, true) if minimal.cut_short => format!("made small in {runs} runs (all that were allowed)"),
                (runs, true) => format!("made small in {runs} runs"),
            };
            text += &format!("  {how}: {nodes} nodes, {faults} faults, {actions} actions, {rounds} rounds\n");
        }
        if let Some(file) = &told.file {
            text += &format!("  dposlab run {}\n", file.display());
        }
        text
    }

    /// The number of runs for this process to play. `None` if only a time is given, or if the folder also holds other runs.
    pub(super) fn asked_of_part(&self, search: &Search, summary: &Summary) -> Option<u64> {
        let is_all = search.asks_for(&summary.done);
        let asked = self.runs_asked().filter(|_| is_all).map(|_| search.runs_of_part());
        asked.filter(|asked| summary.runs() <= *asked)
    }

    /// The number of requested runs, or `None` if only a time is given.
    pub(super) fn runs_asked(&self) -> Option<u64> {
        self.runs.or(self.time.is_none().then_some(RUNS))
    }

    pub(super) fn as_json(
        &self,
        search: &Search,
        searched: &SearchResult,
        told: &[ReportedFinding],
        known: &KnownCauses,
        interrupted: bool,
    ) -> Value {
        let (summary, session) = (&searched.summary, &searched.summary.session);
        let found: Vec<Value> = told
            .iter()
            .map(|told| {
                let found = &told.found;
                let runs = runs_that_judge(search, summary, told.signature.invariant);
                let Interval { low, high } = interval::of_share(found.seeds.count(), runs);
                json!({
                    "invariant": told.signature.invariant,
                    "cause": told.signature.cause,
                    "source": found.finding.origin,
                    "known": told.is_known,
                    "certified": told.signature.is_certified,
                    "recorded": known.recorded(&told.signature).map(|Count { so, of }| [so, of]),
                    "too_often": told.comes_too_often(),
                    "runs": found.seeds.count(),
                    "share": (!self.guided).then_some([low, high]),
                    "seed": found.seeds.first(),
                    "new": searched.is_new(&told.signature),
                    "earlier": searched.played_by_others(&told.signature).map(|(build, Count { so, of })| json!({
                        "version": build.version,
                        "build": build.runs,
                        "runs": [so, of],
                    })).collect::<Vec<_>>(),
                    "finding": found.finding,
                    "file": told.file.as_ref().map(|file| file.display().to_string()),
                    "minimal": told.minimal.as_ref().map(|minimal| json!({
                        "runs": minimal.runs,
                        "cut_short": minimal.cut_short,
                        "shown": minimal.shown,
                        "nodes": minimal.scenario.network.nodes(),
                        "faults": minimal.scenario.faults.len(),
                        "actions": minimal.scenario.actions.len(),
                        "rounds": minimal.scenario.rounds,
                        "finding": minimal.finding,
                    })),
                })
            })
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "rules": Self::rules_of(search).get("base").and_then(toml::Value::as_str).unwrap_or(Rules::DEFAULT_BASE),
            "seed": self.seed,
            "runs": summary.runs(),
            "runs_now": session.runs,
            "runs_asked": self.runs_asked(),
            "runs_modelled": modelled(search, summary),
            "runs_branched": self.guided.then_some(session.branched),
            "seconds_asked": self.time.and_then(super::SearchTime::seconds),
            "interrupted": interrupted,
            "slots": session.slots,
            "delivered": session.delivered,
            "sometimes": session.sometimes,
            "broken": summary.broken(),
            "found": found,
            "replayed": searched.replayed.iter().map(|one| json!({
                "invariant": one.signature.invariant,
                "cause": one.signature.cause,
                "certified": one.signature.is_certified,
                "file": one.file.display().to_string(),
                "shown": match &one.outcome {
                    FileOutcome::Shown(_) => Some(true),
                    FileOutcome::Gone => Some(false),
                    FileOutcome::NotPlayed(_) => None,
                },
            })).collect::<Vec<_>>(),
            "rarer": self.rarer(summary, known).map(|(signature, found, recorded)| json!({
                "invariant": signature.invariant,
                "cause": signature.cause,
                "runs": found.so,
                "recorded": [recorded.so, recorded.of],
            })).collect::<Vec<_>>(),
        })
    }
}

impl SearchResult {
    /// The findings that neither their file nor any run shows now.
    fn mended(&self) -> impl Iterator<Item = &ReplayedFinding> {
        let is_gone = |one: &&ReplayedFinding| {
            matches!(one.outcome, FileOutcome::Gone) && !self.summary.found.contains_key(&one.signature)
        };
        self.replayed.iter().filter(is_gone)
    }

    /// Returns whether earlier searches of this frame lack a finding. `None` if there was none.
    fn is_new(&self, signature: &Signature) -> Option<bool> {
        self.earlier.as_ref().map(|earlier| !earlier.contains(signature))
    }

    /// The other builds whose runs showed a finding, with their counts.
    fn played_by_others<'s>(&'s self, signature: &'s Signature) -> impl Iterator<Item = (&'s Build, Count)> + 's {
        let (database, place) = self.kept.as_ref().map(|(database, place)| (database, place)).unzip();
        let frame = place.and_then(|place| database?.frames.get(&place.frame));
        let played = frame.into_iter().flat_map(|frame| &frame.played);
        played.filter(move |(build, _)| place.is_some_and(|place| place.build != **build)).filter_map(
            |(build, played)| {
                let so = played.found.get(signature).map_or(0, SeedSet::count);
                (so > 0).then(|| (build, Count { so, of: played.seeds.count() }))
            },
        )
    }

    /// The counts of the other builds that showed a finding, in words.
    fn earlier_in_words(&self, signature: &Signature) -> String {
        let counts = self.played_by_others(signature).map(|(Build { version, runs }, Count { so, of })| {
            format!("; {so} of {of} runs of dposlab {version}, build {runs}")
        });
        counts.collect()
    }
}

/// Formats a share in percent. A share below 0.1 % gets more digits.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        ..0.1 if percent > 0.0 => format!("{percent:.4} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// The number of runs that compared each node with the model of an honest one.
fn modelled(search: &Search, summary: &Summary) -> u64 {
    search.frame.modelled_among(&summary.done)
}

/// The number of runs that judge this invariant.
fn runs_that_judge(search: &Search, summary: &Summary, invariant: &str) -> u64 {
    if is_modelled(invariant) { modelled(search, summary) } else { summary.runs() }
}
