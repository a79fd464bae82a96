// The table of numbers: the record so far, under the names that records have, of every run beside the other.
import type { Measured } from "./engine";
import type { Shown } from "./run";
import { silent } from "./starved";

type Row = { field: string; name: string; value: (measured: Measured) => number | null; text: (value: number) => string };
const whole = (value: number): string => value.toLocaleString("en");
const ROWS: Row[] = [
  { field: "aggregate_goodput_bps", name: "Goodput, all flows", value: (m) => m.aggregate_goodput_bps, text: (v) => `${(v / 1e3).toFixed(1)} kbit/s` },
  { field: "jain", name: "Jain's index", value: (m) => m.jain, text: (v) => v.toFixed(3) },
  { field: "jain_2s", name: "its mean over 2-second windows", value: (m) => m.jain_2s, text: (v) => v.toFixed(3) },
  { field: "retransmission_index", name: "Retransmission index", value: (m) => m.retransmission_index, text: (v) => v.toFixed(4) },
  { field: "timeouts", name: "Timeouts", value: (m) => (m.flows.some((flow) => flow.timeouts === null) ? null : m.flows.reduce((sum, flow) => sum + (flow.timeouts ?? 0), 0)), text: whole },
  { field: "frames", name: "Frames on the air", value: (m) => m.frames, text: whole },
  { field: "collisions", name: "Collisions", value: (m) => m.collisions, text: whole },
  { field: "mac_drops", name: "Links given up", value: (m) => m.mac_drops, text: whole },
  { field: "queue_drops", name: "Dropped by queues", value: (m) => m.queue_drops, text: whole },
];
const MOST_NAMES = 4;
let cells: HTMLTableCellElement[][] = [];
let place: HTMLElement;
/** What is said of silent flows above the table: those that others starve, and those without a path. */
const ALARMS = [
  { name: "starved", word: "STARVED", noPath: false },
  { name: "no-path", word: "NO PATH", noPath: true },
];
let alarms: HTMLParagraphElement[][] = [];

/** The transports of a run, each once, and not more than can be read. */
export function transports(run: Shown): string {
  const names = [...new Set(run.stage.flows.map((flow) => flow.transport))];
  return names.slice(0, MOST_NAMES).join(", ") + (names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "");
}

/** Makes the table for these runs. */
export function shape(into: HTMLElement, runs: Shown[]): void {
  place = into;
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = `From ${runs[0].stage.warmup_s} s (goodput, Jain, retransmission index) or from the start (counts) until now`;
  const head = table.createTHead().insertRow();
  head.append(Object.assign(document.createElement("td")));
  runs.forEach((run, number) => {
    const cell = Object.assign(document.createElement("th"), { scope: "col", textContent: (runs.length > 1 ? `${"AB"[number]}: ` : "") + transports(run) });
    head.append(cell);
  });
  const body = table.createTBody();
  cells = ROWS.map((row) => {
    const line = body.insertRow();
    line.append(Object.assign(document.createElement("th"), { scope: "row", textContent: row.name }));
    return runs.map((_, number) => {
      const cell = line.insertCell();
      cell.dataset.field = row.field;
      cell.dataset.run = "AB"[number];
      return cell;
    });
  });
  alarms = runs.map((_, number) =>
    ALARMS.map(({ name }) => {
      const alarm = Object.assign(document.createElement("p"), { className: name, hidden: true });
      alarm.dataset.run = "AB"[number];
      return alarm;
    }),
  );
  into.replaceChildren(...alarms.flat(), table);
}

/** Fills it. */
export function numbers(runs: Shown[], computing: boolean): void {
  place.setAttribute("aria-busy", String(computing));
  place.dataset.fingerprints = runs.map((run) => run.measured.fingerprint).join(" ");
  runs.forEach((run, number) => {
    ALARMS.forEach(({ word, noPath }, place) => {
      const [alarm, said] = [alarms[number][place], silent(run, noPath)];
      alarm.hidden = said.length === 0;
      alarm.textContent = `${word}${runs.length > 1 ? ` in ${"AB"[number]}` : ""}: ${said.join("; ")}`;
    });
  });
  ROWS.forEach((row, line) =>
    runs.forEach((run, number) => {
      const value = row.value(run.measured);
      const cell = cells[line][number];
      cell.dataset.value = value === null ? "" : String(value);
      cell.textContent = value === null ? "–" : row.text(value);
    }),
  );
}
