// Recordings for models that take audio: read, sent as they are, and played.

import { useEffect, useState } from "preact/hooks";
import { texts } from "../texts";
import { dataURL } from "./images";

export interface Recording {
	/** Of its file; empty: it is stored. */
	name: string;
	url: string; // a data URL
}

export const mostRecordings = 8; // in a question
const largest = 20 << 20; // bytes, as the server takes them

export const isRecording = (file: File): boolean => file.type.startsWith("audio/") || /\.(?:wav|mp3|flac)$/i.test(file.name);

/** Returns a recording. The error says what is wrong with the file. */
export async function readRecording(file: File): Promise<Recording> {
	const name = file.name || texts.files.theFile;
	const type = typeOf(new Uint8Array(await file.slice(0, 12).arrayBuffer()));
	if (!type) throw new Error(texts.files.recordingOfNoKind(name));
	if (file.size > largest) throw new Error(texts.files.largerMibTakePart(name, largest >> 20));
	return { name, url: await dataURL(new Blob([file], { type })) };
}

/** Returns the type of a recording by its first bytes; empty: it is none that models take. */
function typeOf(bytes: Uint8Array): string {
	const text = String.fromCharCode(...bytes);
	if (/^RIFF[^]{4}WAVE/.test(text)) return "audio/wav";
	if (text.startsWith("fLaC")) return "audio/flac";
	return text.startsWith("ID3") || (bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe6) === 0xe2) ? "audio/mpeg" : "";
}

/** Plays a recording, from the memory of the page: its policy lets it load none from elsewhere. */
export function Player({ of: { name, url }, label }: { of: Recording; label: string }) {
	const [source, setSource] = useState("");
	useEffect(() => {
		const [, type = "", encoded = ""] = /^data:(audio\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(url) ?? [];
		const decoded = atob(encoded);
		const bytes = new Uint8Array(decoded.length);
		for (let i = 0; i < decoded.length; i++) bytes[i] = decoded.charCodeAt(i); // from() would take a second
		const blob = URL.createObjectURL(new Blob([bytes], { type }));
		setSource(blob);
		return () => URL.revokeObjectURL(blob);
	}, [url]);
	return (
		<>
			{name && <span class="file-name">{name}</span>}
			{source && <audio controls preload="metadata" src={source} aria-label={label} />}
		</>
	);
}
