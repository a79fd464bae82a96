// Air time by link: which links had how much of the time until now, and for what.
import { faint, ink } from "./colours";
import type { Air, Shown } from "./run";

const MOST_LINKS = 12;

type Part = { field: "data" | "again" | "control"; name: string };
const PARTS: Part[] = [
  { field: "data", name: "data" },
  { field: "again", name: "data again" },
  { field: "control", name: "RTS, CTS, ACK" },
];
const all = (link: Air): number => link.data + link.again + link.control;
const name = (link: Air): string => (link.to < 0 ? `${link.from} to all` : `${link.from}→${link.to}`);
const share = (seconds: number, now: number): string => `${((100 * seconds) / now).toFixed(1)} %`;

/** Puts a table with bars into `place`, of every run. */
export function draw(place: HTMLElement, runs: Shown[]): void {
  place.replaceChildren(
    ...runs.map((run, number) => {
      const links = run.air().sort((a, b) => all(b) - all(a));
      const table = document.createElement("table");
      const total = links.reduce((sum, link) => sum + all(link), 0);
      const caption = table.createCaption();
      caption.textContent = `${runs.length > 1 ? `${"AB"[number]}: ` : ""}share of the time until now, ${run.now.toFixed(1)} s; all links together ${run.now > 0 ? share(total, run.now) : "–"}, for links far apart use it at once`;
      const head = table.createTHead().insertRow();
      for (const text of ["link", "all", ...PARTS.map((part) => part.name), ""]) head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: text }));
      const body = table.createTBody();
      const most = links.length ? all(links[0]) : 1;
      for (const link of links.slice(0, MOST_LINKS)) {
        const row = body.insertRow();
        row.dataset.link = name(link);
        row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: name(link) }));
        for (const seconds of [all(link), ...PARTS.map((part) => link[part.field])]) row.insertCell().textContent = share(seconds, run.now);
        const bar = row.insertCell();
        bar.className = "bar";
        const wide = (seconds: number): string => ((100 * seconds) / most).toFixed(1);
        bar.innerHTML = `<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect x="0" width="${wide(link.data)}" height="10" fill="${ink()}"/><rect x="${wide(link.data)}" width="${wide(link.again)}" height="10" class="again"/><rect x="${wide(link.data + link.again)}" width="${wide(link.control)}" height="10" fill="${faint()}"/></svg>`;
      }
      const wrap = document.createElement("div");
      wrap.className = "wide";
      wrap.tabIndex = 0;
      wrap.append(table);
      if (links.length > MOST_LINKS) wrap.append(Object.assign(document.createElement("p"), { className: "note", textContent: `${links.length - MOST_LINKS} more links, with less.` }));
      return wrap;
    }),
  );
}
