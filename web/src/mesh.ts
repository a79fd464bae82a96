// The mesh of one run on a canvas.
import { LOOKS, bad, dark, faint, flowColour, good, ink, lookOf, paper, pinColour, shade, still } from "./colours";
import { NODE_FIELDS } from "./engine";
import { flowName } from "./flows";
import { Labels } from "./labels";
import type { Frame, Shown } from "./run";

/** How long a ring stays at least, seconds of the clock on the wall. */
const AFTERGLOW = 0.35;
/** Frames that are drawn at a time above real time. */
const MOST_DRAWN = 24;
/** Frames that are drawn at once otherwise: what they cost to draw is the most of a picture. */
const MOST_AT_ONCE = 48;
/** How long a collision or a drop stays marked. */
const SPOT = 0.9;

/** How long a frame is to be seen, simulated seconds. */
const life = (frame: Frame, speed: number): number => (speed === 0 ? frame.air + 2e-4 : Math.max(frame.air, AFTERGLOW * speed));

/** A text to be written near a place. */
type Text = { text: string; colour: string; x: number; y: number };

/** The least distance between two places; what is farther apart than nodes are large does not matter. */
function closest(places: [number, number][]): number {
  const sorted = [...places].sort((a, b) => a[0] - b[0]);
  let least = 20;
  sorted.forEach(([x, y], one) => {
    for (let other = one + 1; other < sorted.length && sorted[other][0] - x < least; other++) {
      least = Math.min(least, Math.hypot(sorted[other][0] - x, sorted[other][1] - y));
    }
  });
  return least;
}

export class Mesh {
  readonly canvas = document.createElement("canvas");
  readonly told = document.createElement("output");
  /** How it stands with the pinned nodes. */
  readonly pinned = document.createElement("ul");
  private ground = document.createElement("canvas");
  private made = "";
  private hovered = -1;
  private focused = -1;
  private labels = new Labels();
  private radius = 9;
  /** One frame in so many is drawn. */
  private stride = 1;
  private box: { scale: number; x: number; y: number } = { scale: 1, x: 0, y: 0 };
  constructor(
    private run: () => Shown,
    label: string,
    private pins: () => number[],
    onPin: (node: number) => void,
  ) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `${label}. Arrow keys go from node to node, Enter pins one.`);
    this.told.className = "told";
    this.pinned.className = "pinned";
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const node = this.nearest(event.clientX - box.left, event.clientY - box.top);
      if (node >= 0) onPin(node);
    });
    this.told.setAttribute("aria-live", "polite");
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.hovered = this.nearest(event.clientX - box.left, event.clientY - box.top);
    });
    this.canvas.addEventListener("pointerleave", () => (this.hovered = -1));
    this.canvas.addEventListener("focus", () => (this.focused = Math.max(0, this.focused)));
    this.canvas.addEventListener("blur", () => (this.focused = -1));
    this.canvas.addEventListener("keydown", (event) => {
      const count = this.run().stage.nodes.length;
      if (event.key === "Enter" && this.focused >= 0) onPin(this.focused);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      this.focused = (this.focused + step + count) % count;
      this.tell();
    });
  }

  /** The height that suits the places of the nodes at this width. */
  private fit(width: number): number {
    const places = this.run().stage.nodes;
    const xs = places.map((place) => place[0]);
    const ys = places.map((place) => place[1]);
    const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const margin = Math.max(24, Math.min(60, width * 0.07));
    const wide = Math.max(right - left, 1);
    const high = Math.max(top - bottom, 1);
    const most = width < 500 ? 300 : 380;
    const scale = Math.min((width - 2 * margin) / wide, (most - 2 * margin) / high);
    const height = Math.max(170, Math.min(most, high * scale + 2 * margin));
    this.box = { scale, x: (width - wide * scale) / 2 - left * scale, y: (height + high * scale) / 2 + bottom * scale };
    return height;
  }
  private at(place: [number, number]): [number, number] {
    return [this.box.x + place[0] * this.box.scale, this.box.y - place[1] * this.box.scale];
  }
  private nearest(x: number, y: number): number {
    const run = this.run();
    let best = -1;
    let least = 22 * 22;
    for (let node = 0; node < run.stage.nodes.length; node++) {
      const [nx, ny] = this.at(run.place(node));
      const distance = (nx - x) ** 2 + (ny - y) ** 2;
      if (distance < least) [best, least] = [node, distance];
    }
    return best;
  }

  private tell(): void {
    const node = this.hovered >= 0 ? this.hovered : this.focused;
    const text = node >= 0 ? this.run().tell(node) : "";
    if (this.told.textContent !== text) this.told.textContent = text;
    const pins = this.pins();
    while (this.pinned.children.length > pins.length) this.pinned.lastElementChild?.remove();
    pins.forEach((pin, place) => {
      const line = this.pinned.children[place] ?? this.pinned.appendChild(document.createElement("li"));
      const told = this.run().tell(pin);
      if (line.textContent !== told) line.textContent = told;
      (line as HTMLElement).style.borderColor = pinColour(place);
    });
  }

  /** Draws the run; `speed` is simulated seconds per second, 0 while it stands still. */
  draw(speed: number): void {
    const run = this.run();
    const width = this.canvas.clientWidth;
    // Not laid out: there is nothing to draw on.
    if (width === 0) return;
    const height = this.fit(width);
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const crowded = run.stage.nodes.length > 60;
    this.links(pen, run, width, height, ratio);
    this.routes(pen, run);
    const places = run.stage.nodes.map((_, node) => this.at(run.place(node)));
    this.radius = crowded ? 4 : Math.max(4, Math.min(9, closest(places) / 2 - 1));
    this.labels = new Labels();
    places.forEach(([x, y]) => this.labels.take(x - this.radius - 1, y - this.radius - 1, 2 * this.radius + 2, 2 * this.radius + 2));
    const texts: Text[] = [];
    let drawn = 0;
    for (const frame of this.chosen(run, speed)) if (this.frame(pen, run, frame, speed, crowded, texts)) drawn++;
    this.canvas.dataset.frames = String(drawn);
    this.nodes(pen, run, places, crowded, [width, height]);
    this.write(pen, texts, [width, height]);
    this.spots(pen, run, speed);
    this.tell();
  }

  /** The links, which do not change while nodes stand still, as a picture. */
  private links(pen: CanvasRenderingContext2D, run: Shown, width: number, height: number, ratio: number): void {
    if (run.stage.moves) return;
    const made = `${width} ${height} ${ratio} ${dark()}`;
    if (made !== this.made) {
      this.made = made;
      this.ground.width = Math.round(width * ratio);
      this.ground.height = Math.round(height * ratio);
      const under = this.ground.getContext("2d");
      if (!under) return;
      under.setTransform(ratio, 0, 0, ratio, 0, 0);
      under.strokeStyle = dark() ? "#2c333b" : "#dfe3e8";
      under.beginPath();
      for (const [a, b] of run.stage.links) {
        under.moveTo(...this.at(run.place(a)));
        under.lineTo(...this.at(run.place(b)));
      }
      under.stroke();
    }
    pen.drawImage(this.ground, 0, 0, width, height);
  }

  private routes(pen: CanvasRenderingContext2D, run: Shown): void {
    run.routes.forEach((way, number) => {
      const flow = run.stage.flows[number];
      const whole = way.at(-1) === flow.to;
      pen.strokeStyle = flowColour(number);
      pen.globalAlpha = 0.45;
      pen.lineWidth = 5;
      pen.setLineDash(whole ? [] : [3, 5]);
      const shift = (number % 4) * 3;
      pen.beginPath();
      (whole ? way : [flow.from, flow.to]).forEach((node, place) => {
        const [x, y] = this.at(run.place(node));
        if (place === 0) pen.moveTo(x + shift, y + shift);
        else pen.lineTo(x + shift, y + shift);
      });
      if (whole || run.routes.length <= 8) pen.stroke();
    });
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  /** The frames that are drawn: all, if there are not more than can be seen and drawn. */
  private chosen(run: Shown, speed: number): Frame[] {
    // Faster than real time the last ones stand for all.
    if (speed > 1) return run.frames.slice(-MOST_DRAWN);
    const there = run.frames.filter((frame) => run.now >= frame.start && run.now - frame.start <= life(frame, speed));
    // By their numbers, so that a frame that is drawn is drawn until its end; and not to and fro at the limit.
    while (there.length > MOST_AT_ONCE * this.stride) this.stride *= 2;
    while (this.stride > 1 && there.length < MOST_AT_ONCE * this.stride * 0.35) this.stride /= 2;
    return this.stride === 1 ? there : there.filter((frame) => frame.number % this.stride === 0);
  }

  /** Whether it is to be seen now. */
  private frame(pen: CanvasRenderingContext2D, run: Shown, frame: Frame, speed: number, crowded: boolean, texts: Text[]): boolean {
    const age = run.now - frame.start;
    if (age < 0) return false;
    const lasts = life(frame, speed);
    if (age > lasts) return false;
    const progress = speed === 0 || still() ? 0.5 : age / lasts;
    const look = lookOf(frame.kind, frame.carried);
    const [x, y] = this.at(run.place(frame.from));
    const colour = frame.flow >= 0 ? flowColour(frame.flow) : shade(look);
    pen.strokeStyle = colour;
    pen.globalAlpha = speed === 0 ? 1 : 1 - progress * 0.8;
    pen.setLineDash(look.dash);
    pen.lineWidth = crowded ? look.width * 0.7 : look.width;
    const range = run.stage.range_m * this.box.scale;
    pen.beginPath();
    pen.arc(x, y, Math.max(6, range * progress), 0, 2 * Math.PI);
    pen.stroke();
    if (look === LOOKS[3]) {
      pen.beginPath();
      pen.arc(x, y, Math.max(3, range * progress - 4), 0, 2 * Math.PI);
      pen.stroke();
    }
    if (frame.to >= 0 && !crowded) {
      const [tx, ty] = this.at(run.place(frame.to));
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(tx, ty);
      pen.stroke();
      if (speed === 0) {
        const text = `${look.name}${frame.retry ? " again" : ""}${frame.flow >= 0 ? `, ${flowName(run.stage.flows, frame.flow)}` : ""}`;
        texts.push({ text, colour, x: (x + tx) / 2, y: (y + ty) / 2 });
      }
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    return true;
  }

  /** Writes what frames are beside them, where there is room. */
  private write(pen: CanvasRenderingContext2D, texts: Text[], inside: [number, number]): void {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    let written = 0;
    for (const { text, colour, x, y } of texts) {
      const width = pen.measureText(text).width + 6;
      const places = [-18, 18, -34, 34, -50, 50].flatMap((dy) => [0, -0.5, 0.5].map((dx): [number, number] => [Math.max(width / 2, Math.min(inside[0] - width / 2, x + dx * width)), y + dy]));
      const place = this.labels.place(places, width, 15, inside);
      if (!place) continue;
      written++;
      pen.fillStyle = paper();
      pen.fillRect(place[0] - width / 2, place[1] - 7.5, width, 15);
      pen.fillStyle = colour;
      pen.fillText(text, place[0], place[1] + 0.5);
    }
    pen.textBaseline = "alphabetic";
    this.canvas.dataset.labels = `${written} of ${texts.length}`;
  }

  private nodes(pen: CanvasRenderingContext2D, run: Shown, places: [number, number][], crowded: boolean, inside: [number, number]): void {
    const radius = this.radius;
    const chosen = this.hovered >= 0 ? this.hovered : this.focused;
    const pins = this.pins();
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const rings = (nodes: [number, number][]): void => {
      pen.beginPath();
      for (const [x, y] of nodes) {
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 2 * Math.PI);
      }
    };
    // Those that look the same are one path.
    const isReserved = (node: number): boolean => run.nodes[node * NODE_FIELDS + 3] > 0;
    pen.fillStyle = paper();
    pen.strokeStyle = ink();
    for (const reserved of [false, true]) {
      rings(places.filter((_, node) => node !== chosen && isReserved(node) === reserved));
      pen.fill();
      pen.lineWidth = 1.5;
      pen.setLineDash(reserved ? [3, 2] : []);
      pen.stroke();
    }
    if (chosen >= 0 && chosen < places.length) {
      rings([places[chosen]]);
      pen.fill();
      pen.lineWidth = 4;
      pen.setLineDash(isReserved(chosen) ? [3, 2] : []);
      pen.stroke();
    }
    pen.setLineDash([]);
    pins.forEach((node, place) => {
      if (node >= places.length) return;
      pen.strokeStyle = pinColour(place);
      pen.lineWidth = 3;
      pen.beginPath();
      pen.arc(...places[node], radius + 4, 0, 2 * Math.PI);
      pen.stroke();
    });
    for (let node = 0; node < places.length; node++) {
      const [x, y] = places[node];
      const queue = run.nodes[node * NODE_FIELDS + 2];
      pen.fillStyle = ink();
      if (radius >= 7) pen.fillText(String(node), x, y + 0.5);
      else if (!crowded || node === chosen || pins.includes(node)) {
        // It does not fit in: beside it, if there is room.
        const width = pen.measureText(String(node)).width + 2;
        const off = radius + 7;
        const place = this.labels.place([[x, y - off], [x, y + off], [x - off - width / 2, y], [x + off + width / 2, y]], width, 11, inside);
        if (place) pen.fillText(String(node), place[0], place[1] + 0.5);
      }
      if (queue > 0) {
        // How full the queue is: a bar beside the node.
        const high = Math.min(1, queue / run.stage.queue) * 28;
        pen.fillStyle = bad();
        pen.fillRect(x + radius + 3, y + 10 - high, 4, high);
        pen.strokeStyle = faint();
        pen.lineWidth = 0.5;
        pen.strokeRect(x + radius + 3, y - 18, 4, 28);
      }
    }
    pen.textBaseline = "alphabetic";
  }

  private spots(pen: CanvasRenderingContext2D, run: Shown, speed: number): void {
    pen.lineWidth = 3;
    for (const spot of speed > 1 ? run.spots.slice(-MOST_DRAWN) : run.spots) {
      const age = run.now - spot.at;
      if (age < 0 || age > (speed === 0 ? 0.004 : SPOT * speed)) continue;
      const [x, y] = this.at(run.place(spot.node));
      pen.strokeStyle = bad();
      pen.fillStyle = bad();
      pen.beginPath();
      if (spot.kind === "collision") {
        for (const [dx, dy] of [
          [1, 1],
          [1, -1],
        ]) {
          pen.moveTo(x - 8 * dx, y - 8 * dy);
          pen.lineTo(x + 8 * dx, y + 8 * dy);
        }
        pen.stroke();
      } else if (spot.kind === "drop") {
        pen.moveTo(x - 7, y + 14);
        pen.lineTo(x + 7, y + 14);
        pen.lineTo(x, y + 26);
        pen.fill();
      } else if (spot.kind === "link" && spot.other >= 0) {
        const [ox, oy] = this.at(run.place(spot.other));
        const [mx, my] = [(x + ox) / 2, (y + oy) / 2];
        const [ux, uy] = [(oy - y) / Math.hypot(ox - x, oy - y), -(ox - x) / Math.hypot(ox - x, oy - y)];
        for (const side of [-3, 3]) {
          const [sx, sy] = [-uy * side, ux * side];
          pen.moveTo(mx - ux * 12 + sx, my - uy * 12 + sy);
          pen.lineTo(mx + ux * 12 + sx, my + uy * 12 + sy);
        }
        pen.stroke();
      } else {
        pen.strokeStyle = spot.kind === "found" ? good() : bad();
        pen.strokeRect(x - 14, y - 14, 28, 28);
      }
    }
  }
}
