// Builds the page: dist/index.html, one file with its script and its style inline, dist/NAME.js for each of src/parts, which the page loads when it
// needs it, what a browser needs to install it, and src/schema.ts, the types of the API.
// Usage: node build.mjs [INTO]     INTO is a folder for all in place of dist and src, for the test that compares them.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import openapiTS, { astToString } from "openapi-typescript";

const here = fileURLToPath(new URL(".", import.meta.url));
const into = process.argv[2];

const schema = astToString(await openapiTS(new URL("../api/openapi.json", import.meta.url), { alphabetize: true }));
await write(into ?? join(here, "src"), "schema.ts", `// Made by \`make page\` from api/openapi.json.\n\n${schema}`);

const options = {
	absWorkingDir: here,
	bundle: true,
	minify: true,
	write: false,
	charset: "utf8",
	legalComments: "none",
	target: ["chrome123", "firefox120", "safari17.5"],
	logLevel: "warning",
};
const [script, style] = await Promise.all([
	esbuild.build({ ...options, entryPoints: ["src/main.tsx"], format: "iife", jsx: "automatic", jsxImportSource: "preact" }),
	esbuild.build({ ...options, entryPoints: ["src/style/index.css"] }),
]);
for (const [name, libraries] of Object.entries({ highlight: ["lowlight", "highlight.js"], math: ["temml"], pdf: ["unpdf"] })) {
	const part = await esbuild.build({ ...options, entryPoints: [`src/parts/${name}.ts`], format: "esm" });
	await write(into ?? join(here, "dist"), name + ".js", `/*\n${(await licenses(libraries)).join("\n")}\n*/\n${text(part)}\n`);
}
for (const name of ["manifest.json", "icon.svg"]) await write(into ?? join(here, "dist"), name, await readFile(join(here, "src", name), "utf8"));
const notice = `<!--\n${(await licenses(["preact", "marked", "uplot"])).join("\n")}\n-->`;
const page = (await readFile(join(here, "src/index.html"), "utf8"))
	.replace("<!-- notice -->", () => notice)
	.replace("/* style */", () => text(style))
	.replace("/* script */", () => text(script).replaceAll("</script", "<\\/script"));
await write(into ?? join(here, "dist"), "index.html", page);

function text(result) {
	return result.outputFiles[0].text.trim();
}

// The libraries' licenses ask for their notice to be in every copy.
async function licenses(packages) {
	const all = [];
	for (const name of packages) {
		const folder = join(here, "node_modules", name);
		const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
		const copyright = (await readFile(join(folder, "LICENSE"), "utf8").catch(() => readFile(join(folder, "LICENSE.md"), "utf8")).catch(() => readFile(join(folder, "license"), "utf8")))
			.match(/Copyright.*/g).map((line) => line.trim()).slice(0, 2).join(", ");
		if (name === "unpdf") all.push("PDF.js, Apache-2.0 license, Mozilla Foundation");
		all.push(`${name} ${version}, ${license} license, ${copyright}`, `https://opensource.org/license/${license.toLowerCase()}`);
	}
	return all;
}

async function write(folder, name, content) {
	await mkdir(folder, { recursive: true });
	await writeFile(join(folder, name), content);
}
