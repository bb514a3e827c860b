// Builds the page into the Python package, with every file compressed ahead of time, and refuses a first view that has
// grown beyond its budget.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const outDir = "../src/fairlead/web";
/** JavaScript that the first view loads, in bytes after gzip. */
const budget = 120 * 1024;

function packFiles(): Plugin {
  let firstView: string[] = [];
  return {
    name: "pack-files",
    apply: "build",
    generateBundle(_options, bundle) {
      const entry = Object.values(bundle).find((file) => file.type === "chunk" && file.isEntry);
      firstView = entry?.type === "chunk" ? [entry.fileName, ...entry.imports] : [];
    },
    closeBundle() {
      let size = 0;
      for (const name of readdirSync(outDir, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|html|svg)$/.test(name)) continue;
        const content = readFileSync(join(outDir, name));
        const zipped = gzipSync(content, { level: 9 });
        writeFileSync(join(outDir, `${name}.gz`), zipped);
        const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
        writeFileSync(join(outDir, `${name}.br`), brotliCompressSync(content, { params: quality }));
        if (firstView.includes(name)) size += zipped.length;
      }
      console.log(`first view: ${(size / 1024).toFixed(1)} KB of JavaScript after gzip, of ${budget / 1024} KB`);
      if (size > budget) throw new Error("The first view has more JavaScript than its budget; load parts of it later");
    },
  };
}

export default defineConfig({
  base: "/ui/",
  build: { outDir, emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, reportCompressedSize: false },
  worker: { format: "es" },
  plugins: [packFiles()],
});
