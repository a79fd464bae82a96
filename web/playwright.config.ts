import { defineConfig } from "@playwright/test";

// Chromium of the machine (MESHPACE_CHROMIUM, or Debian's), no download.
export default defineConfig({
  testDir: "tests",
  testMatch: "*.spec.ts",
  fullyParallel: true,
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 20_000 },
  reporter: "line",
  use: {
    launchOptions: {
      executablePath: process.env.MESHPACE_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    },
  },
});
