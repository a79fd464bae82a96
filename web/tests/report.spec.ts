// The pages that the command writes, as people meet them: of a scenario, of a comparison, of one published experiment and of several. MESHPACE is the command;
// MESHPACE_SHOTS, if set, is where pictures go.
import { expect, test } from "@playwright/test";
import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { MESHPACE } from "./folder";

const SHOTS = process.env.MESHPACE_SHOTS;
const SCENARIO = resolve("../scenarios/examples/long-and-short.toml");
/** It sweeps another key than the one that is compared, so that the page has a wide table of points. */
const SWEPT = resolve("../scenarios/qt/X1.toml");

let place: string;
const address = (page: string): string => `file://${join(place, page)}`;
const command = (...told: string[]): Buffer => execFileSync(MESHPACE, told, { stdio: ["ignore", "pipe", "ignore"] });

test.beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "meshpace-report-"));
  const short = ["--seeds", "3", "--set", "duration=40 s"];
  command("run", SCENARIO, ...short, "--report", join(place, "run.html"));
  command("compare", SCENARIO, ...short, "--set", "flow.transport=newreno,quiet-train", "--robust", "--report", join(place, "compare.html"));
  command("compare", SWEPT, ...short, "--by", "flow.1.transport", "--report", join(place, "points.html"));
  command("reproduce", "AP05-X1", "--out", join(place, "one"));
  command("reproduce", "AP05-X1", "AP05-X2", "--out", join(place, "several"));
});
test.afterAll(() => rmSync(place, { recursive: true }));

const PAGES = { run: "run.html", compare: "compare.html", points: "points.html", experiment: "one/index.html", index: "several/index.html" };

/** Opens every part of a page that is folded. */
const unfold = (page: Page): Promise<void> => page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));

for (const [name, file] of Object.entries(PAGES)) {
  for (const width of [1280, 390]) {
    for (const colorScheme of ["light", "dark"] as const) {
      test(`the page "${name}" at ${width} px, ${colorScheme}: nothing beyond the edge`, async ({ browser }) => {
        const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
        const page = await context.newPage();
        await page.goto(address(file));
        if (SHOTS) await page.screenshot({ path: join(SHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        await unfold(page);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        // Drawn in the colours of the scheme.
        const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g)!.map(Number));
        expect(Math.max(...paper) < 80, `paper ${paper}`).toBe(colorScheme === "dark");
        await context.close();
      });
    }
  }
}

for (const width of [1280, 390]) {
  test(`the models of a comparison at ${width} px have their heads, above the columns or before what the cells say`, async ({ browser }) => {
    const context = await browser.newContext({ viewport: { width, height: 900 } });
    const page = await context.newPage();
    await page.goto(address(PAGES.compare));
    await unfold(page);
    const shown = await page.locator(".row .number, .row .who").evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, "::before").content));
    expect(shown.length).toBeGreaterThan(4);
    for (const head of shown) expect(head).toMatch(width < 500 ? /difference|better/ : /none/);
    const clip = await page.locator(".row.head").first().evaluate((heads) => getComputedStyle(heads).clipPath);
    expect(clip === "none", "the row of heads is seen").toBe(width > 500);
    await context.close();
  });
}

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`the find bar at ${width} px, ${colorScheme}, stays above what is scrolled below it`, async ({ browser }) => {
      const context = await browser.newContext({ viewport: { width, height: 700 }, colorScheme });
      const page = await context.newPage();
      await page.goto(address(PAGES.index));
      const bar = page.locator(".find");
      for (const chart of [0, 1, 2]) {
        // A chart half under the bar.
        await page.locator("section.experiment svg[role=img]").nth(chart).evaluate((svg) => scrollBy(0, svg.getBoundingClientRect().top + svg.getBoundingClientRect().height / 2));
        const box = (await bar.boundingBox())!;
        expect(box.y).toBe(0);
        expect(box.height, "it leaves room for what is read").toBeLessThan(width < 500 ? 80 : 120);
        const covered = await bar.evaluate((form) => {
          const { width, height } = form.getBoundingClientRect();
          const points = [...Array(20).keys()].map((place) => [((place + 0.5) * Math.min(width, innerWidth)) / 20, height / 2]);
          return points.filter(([x, y]) => !form.contains(document.elementFromPoint(x + form.getBoundingClientRect().left, y)));
        });
        expect(covered, "points at which something else is above it").toEqual([]);
        const paper = await bar.evaluate((form) => getComputedStyle(form).backgroundColor);
        expect(paper, "nothing shines through").not.toMatch(/transparent|, 0\)/);
      }
      // It finds one of the two.
      await bar.locator("input[type=search]").fill("AP05-X2");
      await expect(page.locator("section.experiment:visible")).toHaveCount(1);
      await context.close();
    });
  }
}

test("an experiment's page says its verdicts first, in a bar with a name and a legend", async ({ page }) => {
  await page.goto(address(PAGES.experiment));
  const bar = page.locator(".verdicts [role=img]");
  await expect(bar).toHaveAttribute("aria-label", /^verdicts on the published claims: \d+ /);
  await expect(page.locator(".verdicts .key li").first()).toHaveText(/^\S+ [a-z ]+ \d+$/);
  const order = await page.evaluate(() => [".verdicts", ".sentence", ".source", "figure", ".claims", ".colophon"].map((part) => document.querySelector(part)!.getBoundingClientRect().top));
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

test("the page of a run names every plot differently and says what its signs mean", async ({ page }) => {
  await page.goto(address(PAGES.run));
  const titles = await page.locator("figure svg").evaluateAll((plots) => plots.map((plot) => plot.getAttribute("aria-label")));
  expect(titles.length).toBeGreaterThan(5);
  expect(new Set(titles).size).toBe(titles.length);
  const text = (await page.locator("main").textContent()) ?? "";
  for (const said of ["flow 0 (node 0 to node 6) delivered nothing", "±: half the width of the 95 % confidence interval", "✗: runs in which a flow was starved"]) expect(text).toContain(said);
});
