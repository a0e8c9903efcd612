//! All figures as of one moment, and their text.

use super::process::Process;
use crate::{
    api::{
        context::ApiContext,
        http::tally::{Counted, Key},
        webhooks::Totals,
    },
    sim::Pace,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use std::{collections::BTreeMap, fmt};

/// Figures, in the order in which they are served.
#[derive(Debug, Default)]
struct Figures {
    rows: Vec<Figure>,
    requests: BTreeMap<Key, Counted>,
}

/// One figure.
#[derive(Debug)]
struct Figure {
    /// Without unit, and without the `_total` of counters.
    name: &'static str,
    unit: Option<Unit>,
    is_counter: bool,
    about: &'static str,
    samples: Vec<(Vec<Label>, f64)>,
}

type Label = (&'static str, String);

/// The text that Prometheus reads.
pub async fn text(context: &ApiContext) -> String {
    let mut figures = Figures { requests: context.requests.all(), ..Figures::default() };
    figures.run(context).await;
    figures.network(context);
    figures.served(context);
    figures.webhooks(context.webhooks.as_ref().map(|webhooks| webhooks.totals()).unwrap_or_default());
    figures.process(Process::now());
    let (mut registry, mut out) = (Registry::default(), String::with_capacity(16_384));
    registry.register_collector(Box::new(figures));
    text::encode(&mut out, &registry).expect("a text takes all");
    out
}

impl Figures {
    async fn run(&mut self, context: &ApiContext) {
        let run = context.live.now().await.ok();
        let now = run.map_or_else(|| context.view.now(), |(now, _)| now);
        let pace = run.map(|(_, pace)| match pace {
            Pace::Speed(speed) => speed,
            Pace::Max => f64::INFINITY,
            Pace::Manual | Pace::OnDemand => 0.0,
        });
        let seconds = now.micros() as f64 / 1e6;
        self.gauge(
            "dposlab_up",
            None,
            "1 while the simulation runs, 0 after it has ended",
            f64::from(run.is_some() as u8),
        );
        self.gauge("dposlab_virtual_time", Some(Unit::Seconds), "Virtual time since the network's epoch", seconds);
        let about = "Virtual seconds that pass in a real one, 0 for manual and on-demand, +Inf for max";
        self.add("dposlab_pace_ratio", None, false, about, pace.map(|pace| (Vec::new(), pace)));
    }

    fn network(&mut self, context: &ApiContext) {
        let state = context.board.state();
        let by_node = |value: &dyn Fn(usize) -> f64| -> Vec<(Vec<Label>, f64)> {
            (0..state.tips.nodes()).map(|node| (vec![("node", node.to_string())], value(node))).collect()
        };
        let height = |node: usize| f64::from(state.tips.all()[node].height().0);
        self.add("dposlab_node_height", None, false, "Height of the block a node stands on", by_node(&height));
        let live = |node: usize| f64::from(state.down[node].is_none() as u8);
        self.add("dposlab_node_live", None, false, "1 for a live node, 0 for one that is down", by_node(&live));
        let pool = |node: usize| state.pools[node] as f64;
        let about = "Transactions in a node's pool";
        self.add("dposlab_node_pool_transactions", None, false, about, by_node(&pool));
        let branches = state.tips.branches();
        self.gauge(
            "dposlab_branches",
            None,
            "Chains of live nodes that have parted, 1 without a fork",
            branches.branches.into(),
        );
        let about = "Most blocks that a losing chain has above its common height with the winning one";
        self.gauge("dposlab_branch_depth_blocks", None, about, branches.depth.into());
        self.gauge("dposlab_faults_in_force", None, "Faults in force", state.faults.len() as f64);
        let counts = state.counts;
        self.counter("dposlab_blocks_forged", None, "Blocks that delegates have forged", counts.forged);
        self.counter("dposlab_rollbacks", None, "Rollbacks of all nodes", counts.rollbacks);
        self.counter(
            "dposlab_blocks_reverted",
            None,
            "Blocks that rollbacks have taken off nodes' chains",
            counts.reverted,
        );
        let about = "Slots left empty before blocks that node 0 has applied, again where it applies a block again";
        self.counter("dposlab_missed_slots", None, about, counts.missed);
        self.counter("dposlab_events", None, "Events of the run", context.feed.last());
        self.gauge("dposlab_event_streams", None, "Open streams of events", context.feed.readers() as f64);
    }

    fn served(&mut self, context: &ApiContext) {
        let connections = context.connections.counts();
        self.gauge("dposlab_http_connections", None, "Open connections", connections.open as f64);
        self.counter("dposlab_http_connections_accepted", None, "Connections taken in", connections.accepted);
        let about = "Connections closed to make room for others";
        self.counter("dposlab_http_connections_spared", None, about, connections.spared.closed);
        let about = "Connections refused because all others were at work";
        self.counter("dposlab_http_connections_refused", None, about, connections.spared.refused);
        let receiving = context.receiving.bytes() as f64;
        self.gauge("dposlab_http_receiving", Some(Unit::Bytes), "Bytes of bodies on their way now", receiving);
        let received = context.receiving.total();
        self.counter("dposlab_http_received", Some(Unit::Bytes), "Bytes of requests' bodies", received);
    }

    fn webhooks(&mut self, totals: Totals) {
        let outcomes = [("delivered", totals.delivered), ("failed", totals.failed), ("dropped", totals.dropped)];
        let samples = outcomes.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count as f64));
        let about = "Posts of webhooks by what became of them: taken, not taken, or never sent because too many waited";
        self.add("dposlab_webhook_posts", None, true, about, samples);
        let about = "Events of which no webhook heard because too many waited";
        self.counter("dposlab_webhook_events_overlooked", None, about, totals.overlooked);
    }

    fn process(&mut self, process: Process) {
        let rows = [
            ("process_cpu", Some(Unit::Seconds), true, "Processor time of the process", process.cpu),
            ("process_resident_memory", Some(Unit::Bytes), false, "Resident memory of the process", process.resident),
            ("process_virtual_memory", Some(Unit::Bytes), false, "Virtual memory of the process", process.virtual_size),
            ("process_threads", None, false, "Threads of the process", process.threads),
            ("process_open_fds", None, false, "Open files of the process", process.open_files),
        ];
        for (name, unit, is_counter, about, value) in rows {
            self.add(name, unit, is_counter, about, value.map(|value| (Vec::new(), value)));
        }
    }

    fn gauge(&mut self, name: &'static str, unit: Option<Unit>, about: &'static str, value: f64) {
        self.add(name, unit, false, about, [(Vec::new(), value)]);
    }

    fn counter(&mut self, name: &'static str, unit: Option<Unit>, about: &'static str, value: u64) {
        self.add(name, unit, true, about, [(Vec::new(), value as f64)]);
    }

    fn add(
        &mut self,
        name: &'static str,
        unit: Option<Unit>,
        is_counter: bool,
        about: &'static str,
        samples: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) {
        self.rows.push(Figure { name, unit, is_counter, about, samples: samples.into_iter().collect() });
    }
}

impl Figure {
    fn write(&self, sample: MetricEncoder<'_>, value: f64) -> fmt::Result {
        match self.is_counter {
            true => ConstCounter::new(value).encode(sample),
            false => ConstGauge::new(value).encode(sample),
        }
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for figure in &self.rows {
            let kind = if figure.is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(figure.name, figure.about, figure.unit.as_ref(), kind)?;
            if let [(labels, value)] = &figure.samples[..]
                && labels.is_empty()
            {
                figure.write(metric, *value)?;
                continue;
            }
            for (labels, value) in &figure.samples {
                figure.write(metric.encode_family(labels)?, *value)?;
            }
        }
        let about = "Time from a request's head to its answer";
        let seconds = Some(&Unit::Seconds);
        let mut metric =
            encoder.encode_descriptor("dposlab_http_request_duration", about, seconds, MetricType::Histogram)?;
        for ((route, method, class), Counted { seconds, buckets }) in &self.requests {
            let status = format!("{class}xx");
            let labels = [("route", *route), ("method", method), ("status", &status)];
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(*seconds, count, buckets, None)?;
        }
        Ok(())
    }
}
