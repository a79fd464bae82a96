// The simulator in WebAssembly, with types. What the numbers mean stands in crates/wasm.
import init, { Player, Scenario, modelRevision, tellPanics, transports as named } from "../build/meshpace.js";
import wasm from "../build/meshpace_bg.wasm?url";

export type Point = { values: [string, unknown][]; transports: string[] };
export type Described = { name: string; points: Point[]; warnings: string[] };
/** `name` is null, or missing in older recordings, where the scenario gives the flow none. */
export type Flow = { name?: string | null; from: number; to: number; transport: string; start_s: number };
export type Stage = {
  model: number;
  seed: number;
  duration_s: number;
  warmup_s: number;
  nodes: [number, number][];
  moves: boolean;
  links: [number, number][];
  range_m: number;
  sensed_m: number;
  queue: number;
  flows: Flow[];
};
export type Measured = {
  aggregate_goodput_bps: number | null;
  jain: number | null;
  jain_2s: number | null;
  retransmission_index: number | null;
  frames: number;
  /** Null where it was not recorded, as below. */
  collisions: number | null;
  mac_drops: number | null;
  queue_drops: number | null;
  fingerprint: string;
  duration_s: number;
  flows: { delivered_bytes: number; longest_gap_s: number | null; longest_gap_with_path_s?: number | null; goodput_bps: number | null; retransmissions: number; timeouts: number | null; cov_rtt: number | null; transport: string }[];
};

export const EVENT_FIELDS = 12;
export const NODE_FIELDS = 6;
export const SAMPLE_HEAD = 2;
/** Bytes delivered, window, pacing interval, sum of cov, how many, retransmissions, timeouts, sum of RTTs, how many, sum of delays, how many. */
export const SAMPLE_PER_FLOW = 11;
export const AIR_FIELDS = 5;

/** What a view is of: a scenario as text, the files it names, `--set` arguments, the point of the sweep, the seed. */
export type Source = { name: string; text: string; files: Record<string, string>; sets: string[]; point: number; seed: number };

/** Loads the module. Fails if the browser has no WebAssembly, or if it cannot be fetched. */
export async function load(): Promise<number> {
  if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, or it is switched off");
  await init({ module_or_path: wasm });
  tellPanics();
  return modelRevision();
}

/** The names of all transports; the module has to be loaded. */
export const transportNames = (): string[] => JSON.parse(named()) as string[];

/** Reads a scenario. Throws the text of what is wrong with it, with line and key. */
export function read(source: Source): { scenario: Scenario; described: Described } {
  const scenario = new Scenario(source.name, source.text);
  for (const [name, content] of Object.entries(source.files)) {
    scenario.addFile(name, new TextEncoder().encode(content));
  }
  try {
    return { scenario, described: JSON.parse(scenario.read(source.sets)) as Described };
  } catch (error) {
    scenario.free();
    throw error;
  }
}

export { Player, Scenario };
