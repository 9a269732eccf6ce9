// Runs the tests in test with Node's own runner. Usage: node test.mjs
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const into = await mkdtemp(join(tmpdir(), "page"));
try {
	const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.js"));
	await esbuild.build({
		absWorkingDir: here,
		entryPoints: names.map((name) => join("test", name)),
		outdir: into,
		outExtension: { ".js": ".mjs" },
		bundle: true,
		platform: "node",
		format: "esm",
		jsx: "automatic",
		jsxImportSource: "preact",
		logLevel: "warning",
	});
	const files = names.map((name) => join(into, name.replace(/js$/, "mjs")));
	process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
	await rm(into, { recursive: true });
}
