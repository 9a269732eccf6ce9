// Formulas as MathML, which are loaded when they are first needed.

import temml from "temml";

/** Shows a formula in an element. One that can't be read is shown as it is written. Nothing is made of strings of HTML, and no link. */
export function show(formula: string, isDisplay: boolean, into: HTMLElement): void {
	try {
		temml.render(formula, into, { displayMode: isDisplay, throwOnError: true, trust: false, maxSize: [20, 10], maxExpand: 200, annotate: false });
		for (const named of into.querySelectorAll("[id]")) named.removeAttribute("id"); // \label: the page has its own
	} catch {
		into.textContent = formula;
	}
}
