import { defineConfig } from "vite";

// Names without hashes: the command embeds these files one by one (crates/cli/src/view.rs). Relative addresses: any web host will do.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: "viewer.js",
        chunkFileNames: "viewer-[name].js",
        assetFileNames: (asset) => (asset.names[0]?.endsWith(".wasm") ? "meshpace.wasm" : "viewer[extname]"),
      },
    },
  },
});
