// A view in an address: everything behind the `#`, packed, so that no server ever sees it.
import type { Source } from "./engine";

/** What a link holds besides the scenario. */
export type View = { source: Source; compare: string | null; at: number };

const pack = async (data: Uint8Array, through: CompressionStream | DecompressionStream): Promise<Uint8Array> => {
  const stream = new Blob([data as BlobPart]).stream().pipeThrough(through as ReadableWritablePair<Uint8Array, Uint8Array>);
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

export async function encode(view: View): Promise<string> {
  const packed = await pack(new TextEncoder().encode(JSON.stringify(view)), new CompressionStream("deflate-raw"));
  let text = "";
  packed.forEach((byte) => (text += String.fromCharCode(byte)));
  return "v1." + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The view of an address, or null if it holds none. Throws if it is damaged. */
export async function decode(hash: string): Promise<View | null> {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith("v1.")) return null;
  try {
    const bytes = Uint8Array.from(atob(text.slice(3).replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const view = JSON.parse(new TextDecoder().decode(await pack(bytes, new DecompressionStream("deflate-raw")))) as View;
    const source = view.source;
    if (typeof source?.text !== "string" || !Array.isArray(source.sets)) throw new Error();
    source.files ??= {};
    source.point ??= 0;
    source.seed ??= 1;
    return { source, compare: view.compare ?? null, at: Number(view.at) || 0 };
  } catch {
    throw new Error("the link is damaged: the scenario behind the # cannot be unpacked. Copy the whole address again.");
  }
}
