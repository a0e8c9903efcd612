// Throughput and pool over virtual time, with the faults that were in force.
import { Plot } from "./drawing.js";
import { clock, number } from "./show.js";

/** The least time between two drawings [ms], and points of a line. */
const EACH = 500;
const POINTS = 150;

export class Flow {
  constructor(where) {
    this.where = where;
    this.drawn = -Infinity;
    this.plot = new Plot(where, this.spec([], []));
  }

  /** Confirmed transactions a second between samples that are at least a slot apart, and the pool at each. */
  spec(samples, spans, slotSeconds = 8) {
    const span = samples.length ? samples.at(-1).now - samples[0].now : 0;
    const apart = Math.max(slotSeconds, span / POINTS);
    const rate = { x: [], y: [] };
    let from = samples[0];
    for (const sample of samples) {
      if (sample.now - from.now < apart) continue;
      rate.x.push(from.now);
      // A chain that was left for another may have confirmed less.
      rate.y.push(Math.max(0, (sample.confirmed - from.confirmed) / (sample.now - from.now)));
      from = sample;
    }
    const last = samples.length ? samples.at(-1).now : 0;
    const pools = samples.filter(
      (sample, index) => sample.pool !== null && (index === samples.length - 1 || index % Math.ceil(samples.length / POINTS) === 0),
    );
    const begin = samples.length ? samples[0].now : 0;
    // A scale of what is past reads the same on the first day and the hundredth.
    const ago = (time) => time - last;
    const shown = spans
      .filter((one) => one.to === null || one.to > begin)
      .map((one) => ({ ...one, from: ago(Math.max(one.from, begin)), to: one.to === null ? null : ago(one.to) }));
    return {
      title: "Throughput and pool",
      x: { label: "virtual time before now", short: "at", tight: true, unit: "seconds", tell: (value) => clock(Math.floor(value + last)) },
      spans: shown,
      panels: [
        ...(shown.length ? [{ lanes: true, height: 19, series: [] }] : []),
        {
          y: { label: "transactions a second, confirmed", zero: true },
          height: 96,
          series: [
            {
              kind: "line",
              name: "throughput",
              color: "good",
              step: true,
              fill: true,
              hold: from ? Math.max(0, last - (rate.x.at(-1) ?? last)) : 0,
              x: rate.x.map(ago),
              y: rate.y,
            },
          ],
        },
        {
          y: { label: "transactions in a pool, mean of live nodes", zero: true },
          height: 96,
          series: [
            {
              kind: "line",
              name: "pool",
              color: "fourth",
              dash: "dash",
              x: pools.map((sample) => ago(sample.now)),
              y: pools.map((sample) => sample.pool),
            },
          ],
        },
      ],
    };
  }

  draw(network) {
    const now = performance.now();
    // A plot does not change while a reader points at it, has the focus on it or has zoomed in.
    if (now - this.drawn < EACH || this.where.querySelector(".area:hover, .area:focus") || this.plot.zoom) return;
    const { samples, spans } = network.shown;
    const key = `${samples.length} ${samples.at(-1)?.now} ${samples.at(-1)?.pool} ${JSON.stringify(spans)}`;
    if (key === this.key) return;
    this.key = key;
    this.drawn = now;
    this.plot.spec = this.spec(samples, spans, network.round.slotSeconds);
    this.plot.draw();
  }

  /** The newest figures, for a tile. */
  rate(samples) {
    const last = samples.at(-1);
    const from = last && samples.findLast((sample) => last.now - sample.now >= 80);
    return from ? number((last.confirmed - from.confirmed) / (last.now - from.now), 2) : "–";
  }
}
