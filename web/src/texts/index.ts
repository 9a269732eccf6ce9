import { english } from "./en";

/** What a file of texts has: a text, or a function of what is put into it, for each that the page says. */
export type Texts = typeof english;

/**
 * The languages of the page, by their names in the browser. To add one, translate en.ts into a file beside it, such as de.ts with
 * `export const german: Texts = {`, whose type has the compiler find what is missing, and name it here.
 */
const languages: Record<string, Texts> = { en: english };

/** The language of the page: that of the browser if there is one, or else English. */
export const language = (globalThis.navigator?.languages ?? []).map((l) => l.split("-")[0] ?? "").find((l) => l in languages) ?? "en";

export const texts: Texts = languages[language] ?? english;
