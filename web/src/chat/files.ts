// Text files of a question: they are sent as a part of its text, each between tags with its name, which the page folds.

import { load } from "../core/parts";
import { texts } from "../texts";

export interface TextFile {
	name: string;
	text: string;
}

export const mostFiles = 16; // in a question
const largestFile = 1 << 20; // bytes
const largestPDF = 64 << 20;

/** Returns a text file, or the text of a PDF. The error says what is wrong with it. */
export async function readText(file: File): Promise<TextFile> {
	const name = (file.name || "file").replace(/["\n<>]/g, "_").slice(0, 120);
	const isPDF = file.type === "application/pdf" || /\.pdf$/i.test(name);
	const most = isPDF ? largestPDF : largestFile;
	if (file.size > most) throw new Error(texts.files.largerMibTakePart(name, most >> 20));
	const text = isPDF ? await pdfText(name, file) : await plainText(name, file);
	if (text.length > largestFile) throw new Error(texts.files.moreMibTextTake(name, largestFile >> 20));
	return { name, text };
}

async function plainText(name: string, file: File): Promise<string> {
	try {
		const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
		if (!text.includes("\0")) return text.replace(/\r\n?/g, "\n");
	} catch {
		// shown below
	}
	throw new Error(texts.files.textPageCanRead(name));
}

async function pdfText(name: string, file: File): Promise<string> {
	const part = await load("pdf");
	const text = await part.textOf(await file.arrayBuffer()).catch(() => null);
	if (text === null) throw new Error(texts.files.pdfPageCanRead(name));
	if (text === "") throw new Error(texts.files.noTextButPerhaps(name));
	return text;
}

/** Returns a question's text with its files. */
export function withFiles(text: string, files: readonly TextFile[]): string {
	return [text, ...files.map((f) => `<file name="${f.name}">\n${f.text}\n</file>`)].filter((t) => t !== "").join("\n\n");
}

/** Returns the text of a question and its files, as they were put together. */
export function splitFiles(text: string): { text: string; files: TextFile[] } {
	const at = text.search(/(?:^|\n\n)<file name="[^"\n]*">\n/);
	if (at < 0) return { text, files: [] };
	const files: TextFile[] = [];
	const all = /\s*<file name="([^"\n]*)">\n([^]*?)\n<\/file>(?=\n\n<file name="|$)/y;
	all.lastIndex = at;
	for (let end = at; end < text.length; end = all.lastIndex) {
		const found = all.exec(text);
		if (!found) return { text, files: [] };
		files.push({ name: found[1] ?? "", text: found[2] ?? "" });
	}
	return { text: text.slice(0, at), files };
}

/** About how many tokens a text has. */
export const tokensOf = (text: string): number => Math.ceil(text.length / 3.5);
