// Colours that colour-blind people tell apart (M. Okabe, K. Ito, "Color universal design", 2008), each kind with a shape of its own, too.

// Asked once: a query costs more than what is drawn by its answer.
const scheme = matchMedia("(prefers-color-scheme: dark)");
const motion = matchMedia("(prefers-reduced-motion: reduce)");
export const dark = (): boolean => scheme.matches;
export const still = (): boolean => motion.matches;

export type Look = { name: string; light: string; dark: string; dash: number[]; width: number };

/** By kind of frame: RTS, CTS, data, ACK; then messages of routing and ARP, which are data frames. */
export const LOOKS: Look[] = [
  { name: "RTS", light: "#0b7bb5", dark: "#56b4e9", dash: [2, 4], width: 2 },
  { name: "CTS", light: "#b06a00", dark: "#e69f00", dash: [8, 4], width: 2 },
  { name: "data", light: "#0056a3", dark: "#6aa9ff", dash: [], width: 4 },
  { name: "ACK", light: "#00775a", dark: "#2fd0a5", dash: [], width: 1.5 },
  { name: "routing, ARP", light: "#a04a80", dark: "#e0a0c8", dash: [8, 3, 2, 3], width: 2 },
];
export const lookOf = (kind: number, carried: number): Look => LOOKS[carried >= 3 ? 4 : kind];
export const shade = (look: Look): string => (dark() ? look.dark : look.light);

const FLOWS = [
  ["#0056a3", "#6aa9ff"],
  ["#b34700", "#ff9a57"],
  ["#00775a", "#2fd0a5"],
  ["#a04a80", "#e0a0c8"],
  ["#7a6a00", "#e8d84a"],
  ["#0b7bb5", "#56b4e9"],
  ["#444444", "#bbbbbb"],
  ["#6b3fa0", "#b99cf0"],
];
export const flowColour = (flow: number): string => FLOWS[flow % FLOWS.length][dark() ? 1 : 0];
export const bad = (): string => (dark() ? "#ff8a5c" : "#b93a00");
export const ink = (): string => (dark() ? "#e8eaed" : "#1b1f24");
export const faint = (): string => (dark() ? "#58606a" : "#9aa3ad");
export const paper = (): string => (dark() ? "#14181d" : "#ffffff");
