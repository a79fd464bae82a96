// The page: what is shown, what is changed, and the keys.
import "./style.css";
import { Clock, SPEEDS } from "./clock";
import * as air from "./air";
import { LOOKS, MOST_PINS, flowColour, shade } from "./colours";
import { load, transportNames } from "./engine";
import type { Source } from "./engine";
import { flowWithEnds } from "./flows";
import { decode, encode } from "./link";
import { Mesh } from "./mesh";
import { Opening } from "./opening";
import { MOST_FLOWS, Plots } from "./plots";
import { Recording } from "./recording";
import { Run } from "./run";
import type { Shown } from "./run";
import { Settings } from "./settings";
import { STORIES } from "./stories";
import type { Story } from "./stories";
import { numbers, shape, transports } from "./numbers";
import * as timeline from "./timeline";

/** How often there is asked for more of a recording, milliseconds. */
const AGAIN = 250;
/** How often there is looked at first whether it grows. */
const TRIES = 4;
/** After how many times that brought nothing a recording that grew is said to stand still: 10 s. */
const PATIENCE = 40;
/** An answer that brings no more has caught up with what is written, bytes. */
const LITTLE = 1 << 20;
/** How far behind its latest moment the playing of one begins that is still written, seconds: what is asked for and comes every so often is there by then. */
const BEHIND = 1;

const part = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const message = part("message");
const clock = new Clock();
const plots = new Plots(part("plots"));
const settings = new Settings(part<HTMLFormElement>("settings"));
let runs: Shown[] = [];
/** The nodes that are pinned, in both runs. */
let pins: number[] = [];
let meshes: Mesh[] = [];
/** What the page shows: the scenario as it was loaded (the settings come on top) or a recording, and the story that it is of, if it is of one. */
type View = { base: Source; recording: Recording | null; story: Story | null };
/** Null until something is shown; only `show` sets it. */
let view: View | null = null;
/** What the text in the editor is of: its name and its files. */
let draft: Source = { name: "scenario.toml", text: "", files: {}, sets: [], point: 0, seed: 1 };
/** How many openings are under way, also of those that do not count any more. */
let loading = 0;
/** How often a link was asked for. */
let links = 0;

const complain = (text: string): void => {
  message.textContent = text;
  message.hidden = text === "";
};

/** Opens what has to be loaded. `load` shows it, or throws what is wrong with it, which is told by `wrong`; neither happens if something else was opened meanwhile. */
async function open(load: (opening: Opening) => Promise<void>, wrong: (error: unknown, opening: Opening) => void = (error) => complain(String(error))): Promise<void> {
  const opening = new Opening();
  document.body.dataset.loading = String(++loading);
  try {
    await load(opening);
  } catch (error) {
    if (opening.counts) wrong(error, opening);
  }
  document.body.dataset.loading = String(--loading);
}

/** Shows what was opened from `at` on. False if something else was opened after it, or its scenario is refused; then all stays as it was. */
function show(opening: Opening, fresh: View, at: number, transport = "", compare: string | null = null): boolean {
  return opening.show(() => {
    const [before, kept] = [view, settings.keep()];
    view = fresh;
    settings.reset();
    settings.transport = transport;
    settings.compare = compare;
    if (start(at)) {
      part("story").hidden = view.story === null;
      document.querySelectorAll<HTMLElement>("#stories button").forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.story === view?.story?.id)));
      return true;
    }
    view = before;
    settings.restore(kept);
    return false;
  });
}

/** Runs what the settings say from time zero, and goes to `at`. False if the scenario is refused; then all stays as it was. */
function start(at: number): boolean {
  if (!view) return false;
  const { base, recording } = view;
  const fresh: Shown[] = [];
  try {
    if (recording) fresh.push(recording);
    else settings.sources(base).forEach((source) => fresh.push(new Run(source)));
  } catch (error) {
    fresh.forEach((run) => run.free());
    complain(String(error));
    return false;
  }
  complain("");
  runs.forEach((run) => run.free());
  runs = fresh;
  // A recording cannot be run otherwise than it was.
  part("settings").hidden = recording !== null;
  part("link").hidden = recording !== null;
  if (!recording) settings.show(base, runs[0].described, runs[0].stage);
  part("stage").replaceChildren();
  pins = pins.filter((node) => runs.every((run) => node < run.stage.nodes.length));
  meshes = runs.map((_, number) => {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const mesh = new Mesh(() => runs[number], `The mesh with ${transports(runs[number])}`, () => pins, pin);
    figure.append(caption, mesh.canvas, mesh.told, mesh.pinned);
    part("stage").append(figure);
    return mesh;
  });
  part("stage").className = runs.length > 1 ? "two" : "";
  document.title = `${runs[0].described.name} – meshpace view`;
  outline();
  part<HTMLInputElement>("seek").max = String(clock.end || runs[0].stage.duration_s);
  clock.use(runs, Math.min(at, runs[0].stage.duration_s));
  part<HTMLInputElement>("seek").max = String(clock.end);
  edit(base);
  refresh();
  return true;
}

/** Puts a scenario into the editor. */
function edit(source: Source): void {
  draft = source;
  part<HTMLTextAreaElement>("text").value = source.text;
}

/** Lays out what has a place for each flow. */
function outline(): void {
  document.querySelectorAll("#stage figcaption").forEach((caption, number) => {
    const names = [transports(runs[number]), `seed ${runs[number].stage.seed}`, ...(view?.recording ? ["recorded"] : [])].filter((name) => name !== "");
    caption.textContent = `${runs.length > 1 ? "AB"[number] + ": " : ""}${names.join(", ")}`;
  });
  shape(part("numbers"), runs);
  lines();
  plots.use(runs, pins);
}

/** Says under the mesh what its lines mean. */
function lines(): void {
  const entry = (text: string, colour: string, width: number, dash: number[] = [], twice = false): HTMLLIElement => {
    const line = document.createElement("li");
    const path = (y: number): string => `<path d="M1 ${y}H31" fill="none" stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash.join(" ")}"/>`;
    line.innerHTML = `<svg width="32" height="12" aria-hidden="true">${twice ? path(4) + path(8) : path(6)}</svg> `;
    line.append(text);
    return line;
  };
  const flows = runs[0].stage.flows.slice(0, MOST_FLOWS).map((_, number) => entry(flowWithEnds(runs[0].stage.flows, number), flowColour(number), 5));
  if (runs[0].stage.flows.length > MOST_FLOWS) flows.push(Object.assign(document.createElement("li"), { textContent: `${runs[0].stage.flows.length - MOST_FLOWS} more flows, in the same colours again` }));
  const kinds = LOOKS.map((look, kind) => entry(look.name + (kind === 2 || kind === 3 ? ", in its flow's colour" : ""), shade(look), look.width, look.dash, kind === 3));
  part("lines").replaceChildren(...flows, ...kinds);
}

function measure(): void {
  if (!runs.length) return;
  runs.forEach((run) => run.measure());
  numbers(runs, clock.seeking);
  plots.draw(clock.now);
  timeline.draw(part<HTMLCanvasElement>("marks"), runs, clock.end);
  if (part<HTMLDetailsElement>("air").open) air.draw(part("air-links"), runs);
}

const speedName = (speed: number): string => (speed === 0 ? "single frames" : speed < 1 ? `1/${Math.round(1 / speed)}` : `${speed} ×`);

/** Writes what is to be read while it plays. */
function write(now: number, pace: number): void {
  written = now;
  document.body.dataset.seeking = String(clock.seeking);
  document.body.dataset.now = String(clock.now);
  document.body.dataset.pictures = clock.pictures.toFixed(1);
  part("time").textContent = `${clock.now.toFixed(pace === 0 || pace < 0.1 ? 6 : 2)} s`;
  const seek = part<HTMLInputElement>("seek");
  if (document.activeElement !== seek || !clock.seeking) seek.value = String(clock.now);
  seek.setAttribute("aria-valuetext", `${clock.now.toFixed(2)} seconds of ${clock.end}`);
  part("play").textContent = clock.playing ? "Pause" : "Play";
  const wanted = SPEEDS[clock.speed];
  part("reached").textContent = clock.seeking
    ? "computing …"
    : clock.playing && wanted >= 1
      ? `reached ${clock.reached < 10 ? clock.reached.toFixed(1) : clock.reached.toFixed(0)} ×, ${clock.pictures.toFixed(0)} pictures/s`
      : "";
}

let last = performance.now();
let measured = 0;
let written = 0;
let cost = 0;

/** Brings everything that is to be read up to date, without waiting for the next picture: a click is answered at once, however rare pictures are. */
function refresh(): void {
  write(last, clock.pace);
  measure();
}

function picture(now: number): void {
  const elapsed = (now - last) / 1e3;
  last = now;
  if (runs.length) {
    const moved = clock.playing || clock.seeking;
    clock.tick(elapsed);
    const moves = clock.playing || clock.seeking;
    const pace = clock.pace;
    runs.forEach((run) => {
      run.look();
      run.forget(run.now - Math.max(0.05, 1.5 * pace));
    });
    meshes.forEach((mesh) => mesh.draw(pace));
    // Text is laid out anew with every change: nobody reads sixty a second.
    if (now - written > 60 || pace < 0.1) write(now, pace);
    // At most a twentieth of the time goes into numbers and plots while it moves; where it comes to rest they are of that time.
    if (moved && (!moves || now - measured > Math.max(250, 20 * cost))) {
      measured = now;
      const begun = performance.now();
      measure();
      cost = performance.now() - begun;
    }
  }
  requestAnimationFrame(picture);
}

function halt(): void {
  clock.playing = false;
  refresh();
}
function toggle(): void {
  if (!runs.length) return;
  if (runs.every((run) => run.over)) clock.seek(0);
  clock.playing = !clock.playing;
  refresh();
}
function step(forward: boolean): void {
  if (forward) clock.step();
  else clock.stepBack();
  refresh();
}
function pace(change: number): void {
  clock.speed = Math.max(0, Math.min(SPEEDS.length - 1, clock.speed + change));
  part<HTMLSelectElement>("speed").value = String(clock.speed);
}
function jump(forward: boolean): void {
  if (!runs.length) return;
  const begun = clock.now;
  const go = (next: timeline.Moment): number => {
    part("mark").textContent = `${next.at.toFixed(3)} s: ${next.text}`;
    // Just behind it, so that it is seen.
    return next.at + 1e-3;
  };
  if (!forward) {
    const before = timeline.moments(runs).findLast((moment) => moment.at < begun - 2e-3);
    if (!before) part("mark").textContent = "no event before";
    clock.playing = false;
    if (before) clock.seek(go(before));
    return;
  }
  part("mark").textContent = "looking for the next event …";
  clock.lookFor(
    () => {
      runs.forEach((run) => run.readMarks());
      const next = timeline.moments(runs).find((moment) => moment.at > begun + 2e-3);
      // What one run has not come to yet may be earlier.
      return next && runs.every((run) => run.known >= next.at || run.over) ? go(next) : null;
    },
    () => (part("mark").textContent = "no event from here to the end"),
  );
  refresh();
}

/** Pins a node, so that its state and its queue stay on view, or lets it go. */
function pin(node: number): void {
  pins = pins.includes(node) ? pins.filter((one) => one !== node) : [...pins, node].slice(-MOST_PINS);
  document.body.dataset.pins = pins.join(" ");
  plots.use(runs, pins);
  measure();
}

/** Shows a step of a story. */
function tell(chosen: Story, number: number, opening = new Opening()): void {
  const begins = view?.story !== chosen;
  const now = chosen.steps[number];
  const put = (): boolean => {
    if (now.transport) settings.transport = now.transport;
    if (now.compare !== undefined) settings.compare = now.compare;
    return (!now.transport && now.compare === undefined) || start(0);
  };
  const base = { name: `${chosen.id}.toml`, text: chosen.scenario, files: {}, sets: [], point: 0, seed: 1 };
  const shown = begins ? show(opening, { base, recording: null, story: chosen }, 0, now.transport, now.compare) : opening.show(put);
  if (!shown) return;
  clock.speed = now.speed;
  pace(0);
  const place = part("story");
  const scene = now.scene(runs);
  clock.seek(scene?.from ?? 0);
  clock.until = scene?.to ?? null;
  clock.playing = scene !== null && now.play;
  // Something was changed.
  complain(scene ? "" : "What this step speaks of does not happen in this run: begin the story again, or play what there is.");
  place.dataset.scene = scene ? `${scene.from} ${scene.to}` : "";
  const button = (text: string, to: number): HTMLButtonElement => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    made.disabled = to < 0 || to >= chosen.steps.length;
    made.addEventListener("click", () => tell(chosen, to));
    return made;
  };
  const title = Object.assign(document.createElement("h2"), {
    textContent: `${chosen.name}, ${number + 1} of ${chosen.steps.length}: ${now.title}`,
    tabIndex: -1,
  });
  const text = Object.assign(document.createElement("p"), { textContent: now.text });
  const row = Object.assign(document.createElement("div"), { className: "buttons" });
  row.append(button("Back", number - 1), button("On", number + 1));
  place.replaceChildren(title, text, row);
  place.dataset.story = chosen.id;
  place.dataset.step = String(number + 1);
  if (!begins) title.focus({ preventScroll: true });
  refresh();
}

function wire(): void {
  part("play").addEventListener("click", toggle);
  part("step").addEventListener("click", () => step(true));
  part("back").addEventListener("click", () => step(false));
  part("restart").addEventListener("click", () => clock.seek(0));
  part("mark-back").addEventListener("click", () => jump(false));
  part("mark-on").addEventListener("click", () => jump(true));
  const speed = part<HTMLSelectElement>("speed");
  SPEEDS.forEach((value, place) => speed.append(new Option(speedName(value), String(place))));
  speed.addEventListener("change", () => (clock.speed = Number(speed.value)));
  pace(0);
  part<HTMLInputElement>("seek").addEventListener("input", (event) => clock.seek(Number((event.target as HTMLInputElement).value)));
  clock.onSeek = refresh;
  settings.onChange = () => start(clock.now);
  part("apply").addEventListener("click", () => {
    const base = { ...draft, text: part<HTMLTextAreaElement>("text").value, sets: [], point: 0 };
    show(new Opening(), { base, recording: null, story: view?.story ?? null }, 0);
  });
  const files = part<HTMLInputElement>("open");
  files.addEventListener("change", () => {
    const file = files.files?.[0];
    if (file) void open(async (opening) => playFile(opening, file.name, new Uint8Array(await opening.still(file.arrayBuffer()))));
  });
  // It is closed until then, so that no file is chosen that nobody takes.
  files.disabled = false;
  part("link").addEventListener("click", async () => {
    if (!view) return;
    const [mine, last] = [++links, Opening.last];
    const address = new URL(location.href);
    const [source] = settings.sources(view.base);
    address.hash = await encode({ source, compare: settings.compare, at: clock.now });
    // The address line is of what is opened now, and the link in it the one that was asked for last.
    const stands = mine === links && last === Opening.last;
    if (stands) history.replaceState(null, "", address);
    const copied = await navigator.clipboard?.writeText(address.href).then(
      () => true,
      () => false,
    );
    part("linked").textContent = copied ? "copied" : stands ? "it is in the address line" : "";
  });
  for (const each of STORIES) {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: each.name });
    made.dataset.story = each.id;
    made.addEventListener("click", () => tell(each, 0));
    part("stories").append(made);
  }
  part("signs").textContent =
    "× a frame lost to another one · ▼ a packet dropped · ‖ a link given up · □ a route lost or found · bar at a node: its queue · dashed node: its NAV is set · broad line: the route of a flow, dashed if there is none · ring around a node: it is pinned";
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("textarea, select, input:not([type=range])")) return;
    const keys: Record<string, () => void> = {
      " ": toggle,
      ArrowRight: () => step(true),
      ArrowLeft: () => step(false),
      Home: () => clock.seek(0),
      End: () => clock.seek(clock.end),
      "[": () => jump(false),
      "]": () => jump(true),
      "-": () => pace(-1),
      "+": () => pace(1),
      "=": () => pace(1),
    };
    const act = keys[event.key];
    // Keys that a button or the slider has a meaning of its own for.
    if (!act || (event.key === " " && target.closest("button, summary")) || (target.closest("input") && /Arrow|Home|End/.test(event.key))) return;
    event.preventDefault();
    act();
  });
  part("air").addEventListener("toggle", measure);
  addEventListener("resize", measure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!runs.length) return;
    outline();
    measure();
  });
}

/** Plays a recorded run; whether it is shown. */
const play = (opening: Opening, recording: Recording, at = 0): boolean => show(opening, { base: recording.source, recording, story: null }, at);

/** Plays a recording of which there may be no more to come. */
function playFile(opening: Opening, name: string, content: Uint8Array): void {
  const fresh = new Recording(name);
  fresh.take(content);
  fresh.close();
  if (play(opening, fresh) && !fresh.complete) complain(`${name} ends before the run does: it was interrupted. What there is is played.`);
}

/** Plays what a run, or an emulation, writes: from its latest moment on if it is still under way, else from its beginning. Goes on where it was when the connection broke for a while. */
async function follow(opening: Opening, name: string): Promise<void> {
  const fresh = new Recording(name);
  const pause = (): Promise<void> => opening.still(new Promise((done) => setTimeout(done, AGAIN)));
  let lost = false;
  /** What there is beyond what was taken; null if there is no connection. */
  const rest = async (): Promise<Uint8Array | null> => {
    try {
      const answer = await fetch(`recording.jsonl?from=${fresh.taken}`, { signal: opening.signal });
      if (answer.status === 410) throw `${name} was replaced by another recording: load the page anew to play that one.`;
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return new Uint8Array(await answer.arrayBuffer());
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return null;
    }
  };
  /** Takes it; how many bytes of whole lines it was. */
  const more = async (): Promise<number> => {
    const [content, before] = [await opening.still(rest()), fresh.taken];
    lost = content === null;
    if (content) fresh.take(content);
    return fresh.taken - before;
  };
  // The server sends a large one in pieces.
  while ((await more()) > LITTLE);
  if (fresh.taken === 0) throw `There is no connection to the server of ${name}.`;
  let live = false;
  for (let look = 0; look < TRIES && !live && !fresh.complete; look++) {
    await pause();
    live = (await more()) > 0;
  }
  live &&= !fresh.complete;
  if (!play(opening, fresh, live ? Math.max(0, fresh.reach - BEHIND) : 0)) return;
  clock.playing = live;
  refresh();
  let [still, told] = [live ? 0 : PATIENCE, ""];
  const grow = async (): Promise<void> => {
    for (;;) {
      const say = lost
        ? `There is no connection to the server of ${name}; as soon as it is back this goes on.`
        : still >= PATIENCE && !fresh.complete
          ? `${name} does not grow: its run was interrupted, or waits. What there is is played.`
          : "";
      if (say !== told) complain((told = say));
      if (fresh.complete) return;
      await pause();
      const flows = fresh.stage.flows.length;
      still = (await more()) > 0 ? 0 : still + 1;
      if (fresh.stage.flows.length > flows) outline();
      part<HTMLInputElement>("seek").max = String(clock.end);
      if (still === 0 && !clock.playing) measure();
    }
  };
  // It is shown, and for as long as it is; nobody waits for the end.
  grow().catch((error) => opening.counts && complain(String(error)));
}

type Given = { source: Source | null; recording?: string; live?: boolean; error?: string };

/** Opens what the address asks for, or else the server, or else a story. */
const begin = (): Promise<void> =>
  open(
    async (opening) => {
      const linked = await opening.still(decode(location.hash));
      const given = linked ? null : await opening.still(asked(opening.signal));
      if (given?.error) throw given.error;
      if (given?.recording && given.live) return follow(opening, given.recording);
      if (given?.recording) {
        const content = (await fetch("recording.jsonl", { signal: opening.signal })).arrayBuffer();
        return playFile(opening, given.recording, new Uint8Array(await opening.still(content)));
      }
      const base = linked?.source ?? given?.source;
      if (base) {
        const shown = show(opening, { base, recording: null, story: null }, linked?.at ?? 0, "", linked?.compare);
        // One that is refused can be changed.
        if (!shown && opening.counts) edit(base);
        return;
      }
      const named = STORIES.find((each) => location.hash === `#${each.id}`);
      tell(named ?? STORIES[2], 0, opening);
      if (!named) halt();
    },
    (error, opening) => {
      tell(STORIES[2], 0, opening);
      halt();
      complain(String(error));
    },
  );

/** What the server asks for; null if nothing. */
async function asked(signal: AbortSignal): Promise<Given | null> {
  const answer = await fetch("scenario.json", { signal }).catch(() => null);
  return answer?.ok ? ((await answer.json()) as Given) : null;
}

async function main(): Promise<void> {
  try {
    const model = await load();
    document.body.dataset.model = String(model);
  } catch (error) {
    complain(
      `The simulator cannot run here: ${String(error)}. It is WebAssembly and must be fetched from a server: open the page through ` +
        "`meshpace view`, or serve the folder with any file server (for example python3 -m http.server). `meshpace run` needs no browser.",
    );
    return;
  }
  settings.offer(transportNames());
  wire();
  addEventListener("hashchange", () => void begin());
  requestAnimationFrame(picture);
  await begin();
}

void main();
