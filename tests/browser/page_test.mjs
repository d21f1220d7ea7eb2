// What a person does with the page, in Chromium, beside what the command line says: node page_test.mjs AHA
// AHA_SCREENSHOTS=DIR keeps pictures of it.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const aha = process.argv[2], shots = process.env.AHA_SCREENSHOTS;
const run = (...args) => execFileSync(aha, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

// ---- what the command line says ----
run("data", "export", "cifar10:sample", "--limit", "3", "--out", ".");
const image = "00000_cat.png";
const explained = (...more) => JSON.parse(run("explain", "--target", "cifar10-vit4", "--json", ...more, image))[0];
const others = { drop: "00001_ship.png", paste: "00002_ship.png" };
const plain = explained("--out", "plain"), refined = explained("--out", "refined", "--refine", "3");
run("eval", "--quiet", "--target", "cifar10-vit4", "--data", "cifar10:sample", "--limit", "4", "--methods", "center,aha", "--timing-runs", "0", "--keep-maps", "--out", "results");
fs.writeFileSync("broken.png", fs.readFileSync(image).subarray(0, 200));
fs.writeFileSync("words.png", "not an image");

// ---- the server ----
const server = spawn(aha, ["serve", "--port", "0", "--results", "results", "--target", "cifar10-vit4,cifar10-convnext"], { stdio: ["ignore", "pipe", "pipe"] });
const address = await new Promise((resolve, reject) => {
  let said = "";
  server.stdout.on("data", (text) => {
    const found = /look: (\S+)/.exec((said += text));
    if (found) resolve(found[1]);
  });
  server.on("exit", (code) => reject(new Error(`aha serve ended with ${code}: ${said}`)));
});

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--headless", "--no-sandbox", "--disable-gpu",
  "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const trouble = [];
async function open(hash, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 }, ...options });
  page.setDefaultTimeout(30000);
  page.on("pageerror", (error) => trouble.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) trouble.push(message.text());
  });
  await page.addInitScript(() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(address + hash);
  return page;
}
let count = 0;
async function check(truth, work) {
  const start = Date.now();
  await work();
  console.log(`ok ${++count} ${truth} (${Date.now() - start} ms)`);
}

// The probability that is shown, once it is the one of this share.
async function probability(page, share, how = "delete black", box = "#probability") {
  await page.locator(`${box}[data-asked="${share} ${how}"]`).waitFor();
  return Number(await page.locator(box).getAttribute("data-value"));
}
const slide = (page, id, value) => page.locator(id).evaluate((slider, value) => {
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}, value);
const settled = (page, share = 0) => probability(page, share);
const insDel = ({ insertion, deletion }) => (insertion < deletion ? "−" : "+") + Math.abs(insertion - deletion).toFixed(3);
const fact = (page, name) => page.locator("#facts div", { hasText: name }).locator("dd").first().innerText();
// Share of the canvas that is exactly black.
const blackShare = (page) => page.locator("#scrubbed").evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let black = 0;
  for (let i = 0; i < data.length; i += 4) black += data[i] + data[i + 1] + data[i + 2] === 0;
  return black / (data.length / 4);
});
async function downloaded(page, id) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(id)]);
  return { name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path()) };
}

let failed = null;
try {
  const page = await open("#tab=explain");
  await check("an uploaded photo gets its class, and a map with the score of the command line", async () => {
    await page.setInputFiles("#file", image);
    await settled(page);
    assert.equal(await page.locator(".class[aria-pressed=true] .name").innerText(), "cat");
    assert.equal(await page.locator(".class[aria-pressed=true] .p").innerText(), `${(100 * plain.class.probability).toFixed(1)} %`);
    assert.equal(await fact(page, "Ins-Del"), insDel(plain));
  });
  await check("scrubbing to 30 % removes pixels, and the probability is the curve's", async () => {
    const before = await blackShare(page);
    await slide(page, "#share", 30);
    const found = await probability(page, 30);
    assert.ok(Math.abs(found - plain.curves.black.top[3]) < 1e-4, `${found} against ${plain.curves.black.top[3]}`);
    const gone = (await blackShare(page)) - before;
    assert.ok(gone > 0.27 && gone < 0.31, `${gone} of the image became black`);
  });
  await check("inserting, and other references, follow the curves too", async () => {
    await page.click("#modes [data-value=insert]");
    await page.click("#references [data-value=blur]");
    await page.waitForFunction(() => document.querySelector("#references [data-value=blur]").ariaPressed === "true");
    await slide(page, "#share", 40);
    const found = await probability(page, 40, "insert blur");
    assert.ok(Math.abs(found - plain.curves.blur.bottom[6]) < 1e-4, `${found} against ${plain.curves.blur.bottom[6]}`);
    await page.click("#references [data-value=black]");
    await page.click("#modes [data-value=delete]");
    await slide(page, "#share", 30);
    await probability(page, 30);
  });
  await check("the .npy is the command line's, bit for bit", async () => {
    const { name, bytes } = await downloaded(page, "#get-npy");
    assert.equal(name, "00000_cat.map.npy");
    assert.deepEqual(bytes, fs.readFileSync(plain.map.file));
  });
  await check("PNG and JSON can be had", async () => {
    assert.deepEqual([...(await downloaded(page, "#get-heat")).bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
    assert.deepEqual((await downloaded(page, "#get-heat")).bytes, fs.readFileSync("plain/00000_cat.heat.png"));
    assert.equal(JSON.parse((await downloaded(page, "#get-json")).bytes).deletion, plain.deletion);
  });
  await check("T = 3 shows the score of each step and the command line's map", async () => {
    await slide(page, "#T", 3);
    await page.waitForFunction(() => document.querySelector("tr[data-step='3'] td").textContent !== "–" && !document.body.classList.contains("busy"));
    assert.equal(await page.locator("#steps td:nth-child(2)", { hasText: /[+−]/ }).count(), 4);
    assert.equal(await page.locator("tr[data-step='3'] td").first().innerText(), insDel(refined));
    assert.deepEqual((await downloaded(page, "#get-npy")).bytes, fs.readFileSync(refined.map.file));
    await slide(page, "#T", 0);
    await page.waitForFunction(() => !document.body.classList.contains("busy"));
  });
  await check("another class gets another map, and a second one stands beside it", async () => {
    await page.click(".class[data-class='5']");
    await page.waitForFunction(() => document.getElementById("map-caption").textContent.startsWith("dog"));
    await page.locator(".classes li", { hasText: "cat" }).locator(".beside").click();
    await page.waitForFunction(() => document.getElementById("contrast-caption").textContent.startsWith("cat"));
    await page.locator(".classes li", { hasText: "cat" }).locator(".beside").click();
    await page.click(".class[data-class='3']");
    await page.waitForFunction(() => document.getElementById("map-caption").textContent.startsWith("cat") && !document.body.classList.contains("busy"));
  });
  await check("methods stand side by side, each with its score, driven by one slider", async () => {
    await page.click("#compare-go");
    await page.waitForFunction(() => document.querySelectorAll(".method-card output[data-value]").length >= 4);
    assert.match(await page.locator(".method-card[data-method=aha] b").innerText(), new RegExp(insDel(plain).replace("+", "\\+")));
    await slide(page, "#share-all", 50);
    const mine = await probability(page, 50, "delete black", ".method-card[data-method=aha] output");
    assert.ok(Math.abs(mine - plain.curves.black.top[5]) < 1e-4, `${mine} against ${plain.curves.black.top[5]}`);
    if (shots) await page.screenshot({ path: `${shots}/page.png`, fullPage: true });
  });
  await check("the views differ, and the pointer reads the map's values", async () => {
    const seen = new Set();
    for (const key of ["h", "r", "c", "i", "o"]) {
      await page.keyboard.press(key);
      seen.add(await page.locator("#map").evaluate((canvas) => canvas.toDataURL()));
    }
    assert.equal(seen.size, 5);
    await page.locator("#map").hover();
    assert.match(await page.locator("#readout").innerText(), /map -?[\d.e+-]+ +rank \d+ of 1024/);
    await page.click("#zoom-in");
    assert.equal(await page.locator("#zoom-value").innerText(), "2×");
    await page.click("#zoom-out");
  });
  await check("painting pixels away changes the probability", async () => {
    await slide(page, "#share", 0);
    const before = await probability(page, 0);
    await page.click("#brush");
    await page.locator("#scrubbed").scrollIntoViewIfNeeded();
    const box = await page.locator("#scrubbed").boundingBox();
    await page.mouse.move(box.x + 0.3 * box.width, box.y + 0.4 * box.height);
    await page.mouse.down();
    for (let x = 0.3; x < 0.8; x += 0.05) await page.mouse.move(box.x + x * box.width, box.y + (0.4 + 0.2 * (x - 0.3)) * box.height);
    await page.mouse.up();
    await page.waitForFunction((before) => Math.abs(Number(document.getElementById("probability").dataset.value) - before) > 1e-6, before);
    assert.ok((await blackShare(page)) > 0.02);
    await page.click("#brush-clear");
    await page.waitForFunction((before) => Math.abs(Number(document.getElementById("probability").dataset.value) - before) < 1e-9, before);
    await page.click("#brush");
  });
  await check("the keyboard alone is enough", async () => {
    await page.locator("#share").focus();
    for (let i = 0; i < 10; ++i) await page.keyboard.press("ArrowRight");
    const found = await probability(page, 10);
    assert.ok(Math.abs(found - plain.curves.black.top[1]) < 1e-4, `${found} against ${plain.curves.black.top[1]}`);
    const reached = new Set();
    await page.locator("#model").focus();
    for (let i = 0; i < 80; ++i) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
    }
    for (const id of ["file", "class", "beside", "method", "map", "opacity", "T", "scrubbed", "share", "brush", "compare-go"])
      assert.ok(reached.has(id), `${id} is not reached by Tab`);
  });
  await check("an unreadable file is said clearly, and the page goes on", async () => {
    for (const [file, words] of [["broken.png", /broken\.png/], ["words.png", /words\.png/]]) {
      await page.setInputFiles("#file", file);
      await page.locator("#message").waitFor();
      assert.match(await page.locator("#message-text").innerText(), words);
    }
    await page.click("#message-close");
    assert.equal(await page.locator("#map-caption").innerText().then((text) => text.startsWith("cat")), true);
  });
  await check("a dropped and a pasted image open like a chosen one", async () => {
    for (const kind of ["drop", "paste"]) {
      await page.evaluate(async ({ kind, name, bytes }) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name, { type: "image/png" }));
        document.dispatchEvent(kind === "drop" ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
          : new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
      }, { kind, name: `${kind}.png`, bytes: fs.readFileSync(others[kind]).toString("base64") });
      await page.waitForFunction((name) => document.getElementById("get-npy").download === name && !document.body.classList.contains("busy"), `${kind}.map.npy`);
      assert.match(await page.locator("#map-caption").innerText(), /^ship/);
    }
    await page.setInputFiles("#file", image);
    await page.waitForFunction(() => document.getElementById("get-npy").download === "00000_cat.map.npy" && !document.body.classList.contains("busy"));
  });
  await check("two tabs at once, the second from the address of the first", async () => {
    await slide(page, "#share", 20);
    const first = await probability(page, 20);
    await page.waitForFunction(() => location.hash.includes("share=20"));
    const other = await open(new URL(page.url()).hash);
    assert.ok(Math.abs((await probability(other, 20)) - first) < 1e-9);
    const work = async (tab, shares) => {
      for (const share of shares) {
        await slide(tab, "#share", share);
        const found = await probability(tab, share);
        assert.ok(Math.abs(found - plain.curves.black.top[share / 10]) < 1e-4);
      }
    };
    await Promise.all([work(page, [10, 50, 70, 90]), work(other, [80, 60, 40, 10])]);
    await other.close();
  });
  await check("the address holds class, view, zoom and what was painted", async () => {
    await page.click(".class[data-class='5']");
    await page.waitForFunction(() => document.getElementById("map-caption").textContent.startsWith("dog") && !document.body.classList.contains("busy"));
    await page.keyboard.press("r");
    await page.click("#zoom-in");
    await slide(page, "#share", 40);
    await page.click("#brush");
    await page.locator("#scrubbed").scrollIntoViewIfNeeded();
    const box = await page.locator("#scrubbed").boundingBox();
    await page.mouse.click(box.x + 0.1 * box.width, box.y + 0.9 * box.height);
    await page.click("#brush");
    await page.waitForFunction(() => /share=40/.test(location.hash) && /paint=/.test(location.hash));
    const here = await probability(page, 40);
    const other = await open(new URL(page.url()).hash);
    await settled(other, 40);
    await other.waitForFunction((here) => Math.abs(Number(document.getElementById("probability").dataset.value) - here) < 1e-9, here);
    assert.match(await other.locator("#map-caption").innerText(), /^dog/);
    assert.equal(await other.locator("#zoom-value").innerText(), "2×");
    assert.equal(await other.locator("#views [aria-pressed=true]").innerText(), "Rank");
    for (const id of ["#map", "#scrubbed"]) {
      const [mine, theirs] = await Promise.all([page, other].map((tab) => tab.locator(id).evaluate((canvas) => canvas.toDataURL())));
      assert.ok(mine === theirs, `${id} differs in the second tab`);
    }
    await other.close();
    await page.click("#brush-clear");
    await page.click("#zoom-out");
    await page.keyboard.press("o");
    await page.click(".class[data-class='3']");
    await page.waitForFunction(() => document.getElementById("map-caption").textContent.startsWith("cat") && !document.body.classList.contains("busy"));
  });
  await check("nothing moves by itself", async () => {
    for (const width of [1300, 390]) {
      const fresh = await open("#sample=2", { viewport: { width, height: 900 } });
      await settled(fresh);
      const shift = await fresh.evaluate(() => window.shift);
      assert.ok(shift < 0.03, `layout shift ${shift} at ${width} pixels`);
      await fresh.close();
    }
  });
  await page.close();

  await check("an evaluation folder opens, worst images first, and an image opens from it", async () => {
    const results = await open("");
    await results.locator("#results-images li").nth(3).waitFor();
    const figures = await results.locator("#results-images .mine b").allInnerTexts();
    assert.deepEqual(figures.map(Number), [...figures.map(Number)].sort((a, b) => a - b));
    assert.equal(await results.locator("#results-table tbody tr").count(), 2);
    await results.locator("#results-images li").first().locator("[data-method=aha] img").waitFor();
    // The maps are those that the evaluation kept.
    const shown = await results.locator("#results-images li").first().locator("[data-method] img").evaluateAll((all) => all.map((one) => one.src));
    assert.equal(shown.length, 2);
    for (const src of shown) assert.match(src, /\/api\/results\/maps\/\d+\.png$/);
    await results.waitForFunction(() => [...document.querySelectorAll("#results-images li:first-child [data-method] img")].every((one) => one.naturalWidth > 0));
    await results.selectOption("#results-order", "best");
    await results.waitForFunction(() => location.hash.includes("sort="));
    const best = await results.locator("#results-images .mine b").allInnerTexts();
    assert.deepEqual(best.map(Number), figures.map(Number).reverse());
    const same = await open(new URL(results.url()).hash);
    await same.locator("#results-images li").nth(3).waitFor();
    assert.deepEqual(await same.locator("#results-images .mine b").allInnerTexts(), best);
    await same.close();
    if (shots) await results.screenshot({ path: `${shots}/results.png`, fullPage: true });
    await results.locator("#results-images .thumb").first().click();
    await settled(results);
    assert.ok(await results.locator("#explain").isVisible());
    await results.close();
  });
  await check("on a phone nothing is wider than the screen, light and dark", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const phone = await open("#sample=1&share=20", { viewport: { width: 390, height: 844 }, colorScheme, hasTouch: true });
      await settled(phone, 20);
      // A classifier of the user's own has a long name.
      await phone.evaluate(() => { document.querySelector("#model option").textContent = "vit_ti_16:vit_tiny_patch16_224_with_a_long_name.safetensors"; });
      const [wide, screen] = await phone.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= screen, `${wide} of ${screen} pixels`);
      if (shots) await phone.screenshot({ path: `${shots}/phone-${colorScheme}.png`, fullPage: true });
      await phone.close();
    }
  });
  assert.deepEqual(trouble, []);
} catch (error) {
  failed = error;
}
await browser.close();
server.removeAllListeners("exit");
const gone = new Promise((resolve) => server.once("exit", (code, signal) => resolve(signal || code)));
server.kill("SIGINT");
const how = await Promise.race([gone, new Promise((resolve) => setTimeout(() => resolve("still running"), 10000))]);
if (how === "still running") server.kill("SIGKILL");
if (failed) {
  console.error(failed);
  process.exit(1);
}
assert.equal(how, 0, "aha serve ends with 0 after Ctrl-C");
console.log(`${count} checks passed`);
process.exit(0);
