import { defineConfig } from "@playwright/test";

// Chromium of the machine (MESHPACE_CHROMIUM, or Debian's), no download.
export default defineConfig({
  testDir: "tests",
  testMatch: "*.spec.ts",
  fullyParallel: true,
  workers: 2,
  // Bounds of what hangs, not of what is slow: nothing here is a question of the machine's time, and the machine may be several times overloaded.
  timeout: 600_000,
  expect: { timeout: 120_000 },
  reporter: "line",
  use: {
    launchOptions: {
      executablePath: process.env.MESHPACE_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    },
  },
});
