// Colours that colour-blind people tell apart (M. Okabe, K. Ito, "Color universal design", 2008), each kind with a shape of its own, too.

// Asked once: a query costs more than what is drawn by its answer.
const scheme = matchMedia("(prefers-color-scheme: dark)");
const motion = matchMedia("(prefers-reduced-motion: reduce)");
export const dark = (): boolean => scheme.matches;
export const still = (): boolean => motion.matches;

export type Look = { name: string; light: string; dark: string; dash: number[]; width: number };

/** By kind of frame: RTS, CTS, data, ACK; then messages of routing and ARP, which are data frames. Frames of a flow have its colour instead. */
export const LOOKS: Look[] = [
  { name: "RTS", light: "#5b6570", dark: "#a8b2bd", dash: [2, 4], width: 2 },
  { name: "CTS", light: "#5b6570", dark: "#a8b2bd", dash: [8, 4], width: 2 },
  { name: "data", light: "#1b1f24", dark: "#e8eaed", dash: [], width: 4 },
  { name: "ACK", light: "#1b1f24", dark: "#e8eaed", dash: [], width: 1.5 },
  { name: "routing, ARP", light: "#a04a80", dark: "#e0a0c8", dash: [8, 3, 2, 3], width: 2 },
];
export const lookOf = (kind: number, carried: number): Look => (carried >= 3 ? LOOKS[4] : kind === 5 ? LOOKS[3] : kind === 6 ? LOOKS[0] : LOOKS[kind]);
export const shade = (look: Look): string => (dark() ? look.dark : look.light);

const FLOWS = [
  ["#0056a3", "#6aa9ff"],
  ["#b34700", "#ff9a57"],
  ["#00775a", "#2fd0a5"],
  ["#6b3fa0", "#b99cf0"],
  ["#7a6a00", "#e8d84a"],
  ["#0b7bb5", "#56b4e9"],
  ["#444444", "#bbbbbb"],
  ["#8a4b2a", "#d9a07a"],
];
export const flowColour = (flow: number): string => FLOWS[flow % FLOWS.length][dark() ? 1 : 0];
/** Of pinned nodes. */
const PINS = [
  ["#c2185b", "#ff7aa8"],
  ["#00707a", "#4dd0e1"],
  ["#4a7a1f", "#aed581"],
  ["#5d4037", "#d7b9a8"],
];
export const MOST_PINS = PINS.length;
export const pinColour = (place: number): string => PINS[Math.max(0, place) % PINS.length][dark() ? 1 : 0];
export const bad = (): string => (dark() ? "#ff8a5c" : "#b93a00");
export const good = (): string => (dark() ? "#2fd0a5" : "#00775a");
export const ink = (): string => (dark() ? "#e8eaed" : "#1b1f24");
export const faint = (): string => (dark() ? "#58606a" : "#9aa3ad");
export const paper = (): string => (dark() ? "#14181d" : "#ffffff");
