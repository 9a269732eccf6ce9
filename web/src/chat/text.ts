// Text of answers as it may be shown.

const overrides = /[\u202A-\u202E\u2066-\u2069]/g;

/** Returns text with the characters that reorder text around them made visible. Right-to-left scripts don't need them. */
export function visible(text: string): string {
	return text.replace(overrides, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase()}⟩`);
}

/** Returns a link that may be followed, or an empty string. */
export function safeLink(href: string): string {
	// As browsers read it: without the characters that they drop.
	const given = href.replace(/[\u0000-\u0020\u007F]/g, "");
	if (!/^(?:https?:\/\/|mailto:)/i.test(given) || given.length > 4096) return "";
	try {
		const url = new URL(given);
		return /^(?:https?|mailto):$/.test(url.protocol) ? url.href : "";
	} catch {
		return "";
	}
}

const entities: Record<string, string> = {
	amp: "&",
	lt: "<",
	gt: ">",
	quot: '"',
	apos: "'",
	nbsp: "\u00A0",
	copy: "©",
	reg: "®",
	trade: "™",
	hellip: "…",
	mdash: "—",
	ndash: "–",
	lsquo: "‘",
	rsquo: "’",
	ldquo: "“",
	rdquo: "”",
	laquo: "«",
	raquo: "»",
	bull: "•",
	middot: "·",
	deg: "°",
	plusmn: "±",
	times: "×",
	divide: "÷",
	le: "≤",
	ge: "≥",
	ne: "≠",
	larr: "←",
	rarr: "→",
	uarr: "↑",
	darr: "↓",
	euro: "€",
	pound: "£",
	sect: "§",
	para: "¶",
};

/** Returns text in which the usual entities are characters. */
export function textOf(text: string): string {
	return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (all, decimal, hex, name) => {
		if (name) return entities[name as string] ?? all;
		const code = decimal ? Number(decimal) : Number.parseInt(hex as string, 16);
		return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "\uFFFD";
	});
}
