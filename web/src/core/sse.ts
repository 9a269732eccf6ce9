/** A server-sent event. */
export interface ServerEvent {
	id: string;
	event: string;
	data: string;
}

/** Reads server-sent events from a response, as they arrive. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
	if (!response.body) return;
	const reader = response.body.getReader();
	const decoder = new TextDecoder();
	const parser = new Parser();
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			yield* parser.push(decoder.decode(value, { stream: true }));
		}
	} finally {
		await reader.cancel().catch(() => undefined);
	}
}

/** Splits text into events. A line may come in many pieces: each piece is looked at once. */
export class Parser {
	#pieces: string[] = []; // of a line whose end hasn't come
	#endedInCR = false;
	#event = "";
	#id = "";
	#data: string[] = [];

	*push(text: string): Generator<ServerEvent> {
		let from = 0;
		if (this.#endedInCR && text.startsWith("\n")) from = 1;
		if (text !== "") this.#endedInCR = false;
		const ends = /\r\n|\n|\r/g;
		ends.lastIndex = from;
		for (let end = ends.exec(text); end; end = ends.exec(text)) {
			this.#pieces.push(text.slice(from, end.index));
			from = ends.lastIndex;
			this.#endedInCR = end[0] === "\r" && from === text.length;
			const line = this.#pieces.join("");
			this.#pieces = [];
			const event = this.#line(line);
			if (event) yield event;
		}
		if (from < text.length) this.#pieces.push(text.slice(from));
	}

	#line(line: string): ServerEvent | null {
		if (line === "") {
			const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
			const isEmpty = this.#data.length === 0;
			this.#event = "";
			this.#data = [];
			return isEmpty ? null : event;
		}
		const colon = line.indexOf(":");
		if (colon === 0) return null; // a comment
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
		if (field === "event") this.#event = value;
		else if (field === "data") this.#data.push(value);
		else if (field === "id" && !value.includes("\0")) this.#id = value;
		return null;
	}
}
