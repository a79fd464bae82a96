// What can be changed in place: transports, hops, routing, load, seed, the point of a sweep. Each change is a `--set` argument on top of the scenario.
import type { Described, Source, Stage } from "./engine";

/** Combinations that are compared often and that the table of transports does not name. Others can be written into the scenario. */
const COMBINED = ["newreno+dyn-delack", "tcp-ap+dyn-delack"];
const ROUTINGS = ["static", "aodv", "olsr"];

type Values = { transport: string; compare: string; hops: string; routing: string; load: string; seed: string; point: string };
const EMPTY: Values = { transport: "", compare: "", hops: "", routing: "", load: "", seed: "", point: "" };

/** The value as TOML has it. */
const written = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(written).join(", ")}]`
    : value !== null && typeof value === "object"
      ? `{${Object.entries(value).map(([key, one]) => `${key} = ${written(one)}`).join(", ")}}`
      : JSON.stringify(value);

export class Settings {
  private values: Values = { ...EMPTY };
  private fields: Record<string, HTMLSelectElement | HTMLInputElement> = {};
  private points: Described["points"] = [];
  private hopped = false;
  onChange: () => boolean = () => true;

  constructor(form: HTMLFormElement) {
    const field = (name: keyof Values, label: string, element: HTMLSelectElement | HTMLInputElement): void => {
      const wrap = document.createElement("label");
      wrap.append(`${label} `, element);
      element.name = name;
      element.addEventListener("change", () => {
        const before = this.values;
        this.values = { ...this.values, [name]: element.value };
        if (!this.onChange()) this.values = before;
      });
      this.fields[name] = element;
      form.append(wrap);
    };
    const list = (options: [string, string][]): HTMLSelectElement => {
      const select = document.createElement("select");
      options.forEach(([value, text]) => select.append(new Option(text, value)));
      return select;
    };
    const number = (min: number, max: number): HTMLInputElement =>
      Object.assign(document.createElement("input"), { type: "number", min: String(min), max: String(max), inputMode: "numeric" });
    field("transport", "Transport A", list([["", "as in the scenario"]]));
    field("compare", "beside it, B", list([["", "nothing"]]));
    field("hops", "Hops", number(1, 60));
    field("routing", "Routing", list([["", "as in the scenario"], ...ROUTINGS.map((name): [string, string] => [name, name])]));
    field("load", "Flows alike", list([["", "as in the scenario"], ["1", "1"], ["2", "2"], ["3", "3"], ["5", "5"]]));
    field("seed", "Seed", number(1, 1e9));
    field("point", "Point of the sweep", list([["", "the first"]]));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Puts the names of all transports into both lists. */
  offer(transports: string[]): void {
    const names = [...transports, ...COMBINED.filter((name) => !transports.includes(name))];
    for (const field of [this.fields.transport, this.fields.compare]) {
      field.append(...names.map((name) => new Option(name, name)));
    }
  }

  get compare(): string | null {
    return this.values.compare || null;
  }
  set compare(name: string | null) {
    this.values.compare = name ?? "";
  }
  set transport(name: string) {
    this.values.transport = name;
  }
  reset(): void {
    this.values = { ...EMPTY };
  }
  keep(): Values {
    return { ...this.values };
  }
  restore(values: Values): void {
    this.values = values;
  }

  /** The scenario as it is to be run, once or twice. */
  sources(base: Source): Source[] {
    const { transport, compare, hops, routing, load, seed, point } = this.values;
    const common: string[] = [];
    if (hops) {
      common.push(`topology.hops=${hops}`);
      // A chain whose flow says where it ends.
      if (this.hopped) common.push(`flow.to=${hops}`);
    }
    if (routing) common.push(`routing.protocol="${routing}"`);
    if (load) common.push(`flow.count=${load}`);
    const number = point === "" ? base.point : Number(point);
    const source = (name: string): Source => {
      const changes = name ? [...common, `flow.transport="${name}"`] : common;
      const changed = new Set(changes.map((change) => change.split("=")[0]));
      const values = this.points[number]?.values ?? [];
      // A key that a sweep varies can only be changed without the sweep: its other values are set as the point has them.
      const swept = values.some(([key]) => changed.has(key) || (key === "flow.transport" && name));
      const sets = swept
        ? ["sweep={}", ...values.filter(([key]) => !changed.has(key)).map(([key, value]) => `${key}=${written(value)}`), ...changes]
        : changes;
      return { ...base, sets: [...base.sets, ...sets], point: swept ? 0 : number, seed: seed ? Number(seed) : base.seed };
    };
    const first = source(transport);
    return compare ? [first, source(compare)] : [first];
  }

  /** Shows what is run. */
  show(base: Source, described: Described, stage: Stage): void {
    if (!base.sets.includes("sweep={}") && described.points.length > 1) this.points = described.points;
    const text = base.text;
    this.hopped = /^\s*to\s*=/m.test(text) && /kind\s*=\s*"chain"/.test(text);
    const hops = this.fields.hops as HTMLInputElement;
    hops.placeholder = /kind\s*=\s*"(chain|parallel)"/.test(text) ? String(this.hopped || /chain/.test(text) ? stage.nodes.length - 1 : 4) : "";
    hops.disabled = !/kind\s*=\s*"(chain|parallel)"/.test(text);
    (this.fields.seed as HTMLInputElement).placeholder = String(base.seed);
    const point = this.fields.point as HTMLSelectElement;
    if (point.options.length !== Math.max(1, this.points.length)) {
      point.replaceChildren(
        ...(this.points.length ? this.points : [{ values: [] }]).map(({ values }, number) => {
          const name = values.map(([key, value]) => `${key} = ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
          return new Option(name || "the only one", number === 0 ? "" : String(number));
        }),
      );
    }
    (point.parentElement as HTMLElement).hidden = this.points.length < 2;
    for (const [name, element] of Object.entries(this.fields)) {
      const value = this.values[name as keyof Values];
      if (element instanceof HTMLSelectElement && value && ![...element.options].some((option) => option.value === value)) {
        element.append(new Option(value, value));
      }
      element.value = value;
    }
  }
}
