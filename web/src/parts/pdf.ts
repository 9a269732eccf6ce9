// The text of PDFs, which is loaded when one is first added to a question.

import { getDocument } from "unpdf/pdfjs";

const mostPages = 2000;

/** Returns the text of a PDF, a paragraph for each page. It is empty if the PDF has only pictures. */
export async function textOf(data: ArrayBuffer): Promise<string> {
	const loading = getDocument({ data: new Uint8Array(data), useSystemFonts: false, disableFontFace: true, verbosity: 0 });
	try {
		const pdf = await loading.promise;
		const pages: string[] = [];
		for (let n = 1; n <= Math.min(pdf.numPages, mostPages); n++) {
			const { items } = await (await pdf.getPage(n)).getTextContent();
			pages.push(items.map((i) => ("str" in i ? i.str + (i.hasEOL ? "\n" : "") : "")).join("").trim());
		}
		return pages.filter(Boolean).join("\n\n");
	} finally {
		await loading.destroy();
	}
}
