// Names of flows: those that the scenario gives them, as in the command's tables.
import type { Flow } from "./engine";

/** What people call a flow: its name, or else its number. */
export const flowName = (flows: Flow[], number: number): string => flows[number]?.name ?? `flow ${number}`;
/** The same with its ends. */
export const flowWithEnds = (flows: Flow[], number: number): string => `${flowName(flows, number)}: node ${flows[number].from} to node ${flows[number].to}`;
