// Places for texts on a canvas, so that none covers another, a node or what else is taken.

type Box = { left: number; top: number; right: number; bottom: number };

export class Labels {
  private taken: Box[] = [];

  /** A place where no text comes. */
  take(left: number, top: number, width: number, height: number): void {
    this.taken.push({ left, top, right: left + width, bottom: top + height });
  }

  /** The first of the places, centres of a box of this size, that is free and inside of the canvas; takes it. Null if there is none. */
  place(places: [number, number][], width: number, height: number, inside: [number, number]): [number, number] | null {
    for (const [x, y] of places) {
      const box = { left: x - width / 2, top: y - height / 2, right: x + width / 2, bottom: y + height / 2 };
      if (box.left < 0 || box.top < 0 || box.right > inside[0] || box.bottom > inside[1]) continue;
      if (this.taken.some((one) => one.left < box.right && box.left < one.right && one.top < box.bottom && box.top < one.bottom)) continue;
      this.taken.push(box);
      return [x, y];
    }
    return null;
  }
}
