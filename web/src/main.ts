// The page: what is shown, what is changed, and the keys.
import "./style.css";
import { Clock, SPEEDS } from "./clock";
import { LOOKS, shade } from "./colours";
import { load } from "./engine";
import type { Source } from "./engine";
import { decode, encode } from "./link";
import { Mesh } from "./mesh";
import { Plots } from "./plots";
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
/** What is played instead of a scenario, if anything. */
let recording: Recording | null = null;
let meshes: Mesh[] = [];
let story: { story: Story; step: number } | null = null;
/** What is played: the scenario as it was loaded; the settings come on top. */
let base: Source;

const complain = (text: string): void => {
  message.textContent = text;
  message.hidden = text === "";
};

/** Runs what the settings say from time zero, and goes to `at`. False if the scenario is refused; then all stays as it was. */
function start(at: number): boolean {
  let fresh: Shown[] = [];
  try {
    fresh = recording ? [recording] : settings.sources(base).map((source) => new Run(source));
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
  meshes = runs.map((_, number) => {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const mesh = new Mesh(() => runs[number], `The mesh with ${transports(runs[number])}`);
    figure.append(caption, mesh.canvas, mesh.told);
    part("stage").append(figure);
    return mesh;
  });
  part("stage").className = runs.length > 1 ? "two" : "";
  document.title = `${runs[0].described.name} – meshpace view`;
  outline();
  part<HTMLInputElement>("seek").max = String(clock.end || runs[0].stage.duration_s);
  clock.use(runs, Math.min(at, runs[0].stage.duration_s));
  part<HTMLInputElement>("seek").max = String(clock.end);
  part<HTMLTextAreaElement>("text").value = base.text;
  measure();
  return true;
}

/** Lays out what has a place for each flow. */
function outline(): void {
  document.querySelectorAll("#stage figcaption").forEach((caption, number) => {
    const names = [transports(runs[number]), `seed ${runs[number].stage.seed}`, ...(recording ? ["recorded"] : [])].filter((name) => name !== "");
    caption.textContent = `${runs.length > 1 ? "AB"[number] + ": " : ""}${names.join(", ")}`;
  });
  shape(part("numbers"), runs);
  plots.use(runs);
}

function measure(): void {
  runs.forEach((run) => run.measure());
  numbers(runs, clock.seeking);
  plots.draw(clock.now);
  timeline.draw(part<HTMLCanvasElement>("marks"), runs, clock.end);
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
function picture(now: number): void {
  const elapsed = (now - last) / 1e3;
  last = now;
  if (runs.length) {
    clock.tick(elapsed);
    const pace = clock.pace;
    runs.forEach((run) => {
      run.look();
      run.forget(run.now - Math.max(0.05, 1.5 * pace));
    });
    meshes.forEach((mesh) => mesh.draw(pace));
    // Text is laid out anew with every change: nobody reads sixty a second.
    if (now - written > 60 || pace < 0.1) write(now, pace);
    // At most a twentieth of the time goes into numbers and plots.
    if (now - measured > Math.max(250, 20 * cost) && (clock.playing || clock.seeking)) {
      measured = now;
      const begun = performance.now();
      measure();
      cost = performance.now() - begun;
    }
  }
  requestAnimationFrame(picture);
}

function toggle(): void {
  if (runs.every((run) => run.over)) clock.seek(0);
  clock.playing = !clock.playing;
  measure();
}
function step(forward: boolean): void {
  if (forward) clock.step();
  else clock.stepBack();
  measure();
}
function pace(change: number): void {
  clock.speed = Math.max(0, Math.min(SPEEDS.length - 1, clock.speed + change));
  part<HTMLSelectElement>("speed").value = String(clock.speed);
}
function jump(forward: boolean): void {
  const all = timeline.moments(runs);
  const now = clock.now;
  const next = forward ? all.find((moment) => moment.at > now + 2e-3) : all.findLast((moment) => moment.at < now - 2e-3);
  part("mark").textContent = next ? `${next.at.toFixed(3)} s: ${next.text}` : "no event there in the time that was played";
  if (next) {
    clock.playing = false;
    // Just behind it, so that it is seen.
    clock.seek(next.at + 1e-3);
  }
}

/** Shows a step of a story. */
function tell(chosen: Story, number: number): void {
  const begins = story?.story !== chosen;
  story = { story: chosen, step: number };
  const now = chosen.steps[number];
  if (begins) {
    recording = null;
    base = { name: `${chosen.id}.toml`, text: chosen.scenario, files: {}, sets: [], point: 0, seed: 1 };
    settings.reset();
  }
  if (now.transport) settings.transport = now.transport;
  if (now.compare !== undefined) settings.compare = now.compare;
  if (begins || now.transport || now.compare !== undefined) start(now.seek ?? 0);
  else if (now.seek !== undefined) clock.seek(now.seek);
  if (now.speed !== undefined) clock.speed = now.speed;
  pace(0);
  clock.playing = now.play ?? false;
  const place = part("story");
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
  place.hidden = false;
  place.dataset.story = chosen.id;
  place.dataset.step = String(number + 1);
  if (!begins) title.focus({ preventScroll: true });
  document.querySelectorAll("#stories button").forEach((each) => each.setAttribute("aria-pressed", String((each as HTMLElement).dataset.story === chosen.id)));
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
  clock.onSeek = measure;
  settings.onChange = () => start(clock.now);
  part("apply").addEventListener("click", () => {
    const before = base;
    const recorded = recording;
    recording = null;
    base = { ...base, text: part<HTMLTextAreaElement>("text").value, sets: [], point: 0 };
    const kept = settings.keep();
    settings.reset();
    if (!start(0)) {
      base = before;
      recording = recorded;
      settings.restore(kept);
    }
  });
  part("open").addEventListener("change", async (event) => {
    const file = (event.target as HTMLInputElement).files?.[0];
    if (!file) return;
    try {
      playFile(file.name, new Uint8Array(await file.arrayBuffer()));
    } catch (error) {
      complain(String(error));
    }
  });
  part("link").addEventListener("click", async () => {
    const address = new URL(location.href);
    const [source] = settings.sources(base);
    address.hash = await encode({ source, compare: settings.compare, at: clock.now });
    history.replaceState(null, "", address);
    const copied = await navigator.clipboard?.writeText(address.href).then(
      () => true,
      () => false,
    );
    part("linked").textContent = copied ? "copied" : "it is in the address line";
  });
  for (const each of STORIES) {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: each.name });
    made.dataset.story = each.id;
    made.addEventListener("click", () => tell(each, 0));
    part("stories").append(made);
  }
  part("signs").append(
    ...LOOKS.map((look) => {
      const row = document.createElement("p");
      row.innerHTML = `<svg width="44" height="14" aria-hidden="true"><path d="M2 7H42" fill="none" stroke="${shade(look)}" stroke-width="${look.width}" stroke-dasharray="${look.dash.join(" ")}"/></svg> `;
      row.append(look.name);
      return row;
    }),
    Object.assign(document.createElement("p"), {
      textContent:
        "× a frame lost to another one · ▼ a packet dropped · ‖ a link given up · □ a route lost or found · bar at a node: its queue · dashed node: its NAV is set · broad line: the route of a flow, dashed if there is none",
    }),
  );
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
  addEventListener("resize", measure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => runs.length && plots.use(runs));
}

/** Plays a recorded run; whether it can be. */
function play(fresh: Recording, at = 0): boolean {
  const before = recording;
  recording = fresh;
  base = recording.source;
  story = null;
  part("story").hidden = true;
  settings.reset();
  const begun = start(at);
  if (!begun) recording = before;
  return begun;
}

/** Plays a recording of which there may be no more to come. */
function playFile(name: string, content: Uint8Array): void {
  const fresh = new Recording(name);
  fresh.take(content);
  fresh.close();
  if (play(fresh) && !fresh.complete) complain(`${name} ends before the run does: it was interrupted. What there is is played.`);
}

/** Plays what a run, or an emulation, writes: from its latest moment on if it is still under way, else from its beginning. Goes on where it was when the connection broke for a while. */
async function follow(name: string): Promise<void> {
  const fresh = new Recording(name);
  const pause = (): Promise<void> => new Promise((done) => setTimeout(done, AGAIN));
  let lost = false;
  /** What there is beyond what was taken; null if there is no connection. */
  const rest = async (): Promise<Uint8Array | null> => {
    try {
      const answer = await fetch(`recording.jsonl?from=${fresh.taken}`);
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
    const [content, before] = [await rest(), fresh.taken];
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
  if (!play(fresh, live ? Math.max(0, fresh.reach - BEHIND) : 0)) return;
  clock.playing = live;
  let [still, told] = [live ? 0 : PATIENCE, ""];
  for (;;) {
    const say = lost
      ? `There is no connection to the server of ${name}; as soon as it is back this goes on.`
      : still >= PATIENCE && !fresh.complete
        ? `${name} does not grow: its run was interrupted, or waits. What there is is played.`
        : "";
    if (say !== told) complain((told = say));
    if (fresh.complete) return;
    await pause();
    if (recording !== fresh) return;
    const flows = fresh.stage.flows.length;
    still = (await more()) > 0 ? 0 : still + 1;
    if (recording !== fresh) return;
    if (fresh.stage.flows.length > flows) outline();
    part<HTMLInputElement>("seek").max = String(clock.end);
    if (still === 0 && !clock.playing) measure();
  }
}

/** What the address or the server asks for; null if nothing. */
async function asked(): Promise<{ source: Source; compare: string | null; at: number } | "recording" | null> {
  const linked = await decode(location.hash);
  if (linked) return linked;
  const answer = await fetch("scenario.json").catch(() => null);
  const given = answer?.ok ? ((await answer.json()) as { source: Source | null; recording?: string; live?: boolean; error?: string }) : null;
  if (given?.error) throw given.error;
  if (given?.recording) {
    if (given.live) void follow(given.recording).catch((error) => complain(String(error)));
    else playFile(given.recording, new Uint8Array(await (await fetch("recording.jsonl")).arrayBuffer()));
    return "recording";
  }
  return given?.source ? { source: given.source, compare: null, at: 0 } : null;
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
  wire();
  const begin = async (): Promise<void> => {
    const before = base;
    try {
      const view = await asked();
      // What somebody has opened in the meantime stays.
      if (view === "recording" || base !== before) return;
      recording = null;
      if (view) {
        base = view.source;
        settings.reset();
        settings.compare = view.compare;
        if (!start(view.at)) part<HTMLTextAreaElement>("text").value = base.text;
      } else {
        const named = STORIES.find((each) => location.hash === `#${each.id}`);
        tell(named ?? STORIES[2], 0);
        if (!named) clock.playing = false;
      }
    } catch (error) {
      tell(STORIES[2], 0);
      clock.playing = false;
      complain(String(error));
    }
  };
  await begin();
  addEventListener("hashchange", () => void begin());
  requestAnimationFrame(picture);
}

void main();
